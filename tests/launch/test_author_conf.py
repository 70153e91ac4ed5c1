"""What is a Spark setting of an author's, and what is none."""

from __future__ import annotations

import re
from typing import Any

import pytest

from airflow_dagsched.launch.managers.author_conf import find_settings_mistake


@pytest.mark.parametrize(
    ("settings", "mistake"),
    [
        ("spark.x=5", "must be a dict of Spark settings, not str"),
        ({"foo": "1"}, "'foo' is no Spark setting: .*'spark.hadoop.'"),
        ({5: "1"}, "5 is no Spark setting"),
        ({"spark.": "1"}, "'spark.' is no Spark setting"),
        ({"spark.a b": "1"}, "is no Spark setting"),
        ({"spark.x": None}, "'spark.x' must be a text or a number, not NoneType"),
        ({"spark.x": {"a": 1}}, "'spark.x' must be a text or a number, not dict"),
        ({"spark.x": ["a"]}, "'spark.x' must be a text or a number, not list"),
        ({"spark.x": float("nan")}, "'spark.x' must be a text or a finite number, not nan"),
        ({"spark.x": float("-inf")}, "'spark.x' must be a text or a finite number, not -inf"),
        ({"spark.a": "fine", "spark.x": "hunter2 "}, "'spark.x' begins or ends with a blank"),
        ({"spark.master": "yarn"}, "'spark.master' is not the author's to give: the connection"),
        ({"spark.remote": "sc://x"}, "'spark.remote' is not the author's to give"),
        ({"spark.submit.deployMode": "cluster"}, "'spark.submit.deployMode' is not the author's .*client mode"),
    ],
)
def test_refused_by_its_name(settings: Any, mistake: str) -> None:
    """Never by its value, which may be a secret."""
    found = find_settings_mistake(settings)
    assert re.search(mistake, found), found
    assert "hunter2" not in found


def test_fine() -> None:
    settings = {
        "spark.a": "1", "spark.b": 2, "spark.c": 0.5, "spark.d": True, "spark.e": "", "spark.f": "one\ntwo\n",
        "spark.submit.pyFiles": "/x.zip", "spark.hadoop.fs.s3a.bucket.my-bucket.access.key": "{{ conn.x.login }}",
        "spark.g": " {{ x }} ",
    }  # fmt: skip
    assert find_settings_mistake(settings) == ""


def test_ends_count_once_templates_are_rendered() -> None:
    assert find_settings_mistake({"spark.g": " {{ x }}"}) == ""
    assert "begins or ends" in find_settings_mistake({"spark.g": " {{ x }}"}, rendered=True)
