"""Settings through a properties file and back; Java's own reader has the last word in ``provider/test_submit.py``."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_dagsched.launch.secrecy.properties import is_kept, read_properties, write_properties

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
VALUES = st.text(st.characters(exclude_categories=["Cs"])).filter(is_kept)


@given(st.dictionaries(NAMES, VALUES))
def test_what_is_written_is_read(settings: dict[str, str]) -> None:
    text = write_properties(settings)
    assert text.isascii()
    assert read_properties(text) == settings


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("spark.a 1\nspark.b=2\nspark.c : 3\n", {"spark.a": "1", "spark.b": "2", "spark.c": "3"}),
        ("# comment\n! too\n\n   spark.a    x y  \n", {"spark.a": "x y"}),
        ("spark.a one,\\\n        two\r\nspark.b", {"spark.a": "one,two", "spark.b": ""}),
        ("spark.path C:\\\\dir\\tx\\u00e9", {"spark.path": "C:\\dir\txé"}),
        ("spark.a 1 \\", {"spark.a": "1"}),
    ],
)
def test_files_that_people_write(text: str, settings: dict[str, str]) -> None:
    assert read_properties(text) == settings
