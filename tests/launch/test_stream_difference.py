"""Two epochs of a flow: what is not equal in them, and whether one application can run both."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_dagsched.launch.protocol.identity import TryId
from airflow_dagsched.launch.protocol.manifest import StepSpec
from airflow_dagsched.launch.protocol.tables import Table
from airflow_dagsched.launch.streams.difference import explain_difference, needs_application
from airflow_dagsched.launch.streams.fingerprint import FlowCode, fingerprint_flow, list_differences
from airflow_dagsched.launch.streams.manifest import QuerySpec, SourceSpec, StreamManifest
from airflow_dagsched.launch.streams.settings import StreamSettings

OLD = StreamManifest(
    package_version="1",
    python="3.11",
    dag_id="dag",
    flow="flow",
    work_dir="/work",
    folder="a",
    fingerprint="1",
    run_id="run",
    try_id=TryId(),
    steps=(StepSpec("clicks", "c1"), StepSpec("out", "o1")),
    sources=(SourceSpec("clicks", "json", "ts", "/in"),),
    queries=(QuerySpec("out", Table("/out", mode="append"), 8),),
    settings=StreamSettings(600, 300, 10),
    session={"spark.sql.ansi.enabled": "true"},
    application={"spark.executor.memory": "1g", "spark.jars": "a.jar"},
    workers=("w1", "w2"),
)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({}, ()),
        ({"folder": "b", "fingerprint": "2", "run_id": "next"}, ()),
        ({"steps": (StepSpec("clicks", "c1"), StepSpec("out", "o2"))}, ("step out: code",)),
        ({"steps": (StepSpec("clicks", "c1"), StepSpec("more", "m"))}, ("step out: gone", "step more: new")),
        ({"sources": (SourceSpec("clicks", "json", "ts", "/in", start={"logOffset": 3}),)}, ("source clicks: start",)),
        ({"queries": (QuerySpec("out", Table("/out", mode="append"), 4),)}, ("query out: partitions",)),
        ({"settings": StreamSettings(600, 60, 10, channel="inbox")}, ("setting lateness_s", "setting channel")),
        ({"session": {"spark.sql.ansi.enabled": "false"}}, ("Spark setting spark.sql.ansi.enabled",)),
    ],
)
def test_what_a_running_application_takes(changed: dict[str, Any], told: tuple[str, ...]) -> None:
    new = replace(OLD, **changed)
    assert explain_difference(OLD, new) == told
    assert needs_application(OLD, new) == ""


@pytest.mark.parametrize(
    ("changed", "why", "told"),
    [
        ({"package_version": "2"}, "another version of airflow_dagsched: 2", "another version of airflow_dagsched"),
        ({"python": "3.12"}, "another Python: 3.12", "another Python"),
        ({"workers": ("w3",)}, "other workers: w3", "other workers"),
        ({"workers": ()}, "other workers: any", "other workers"),
        ({"work_dir": "/else"}, "another work folder: /else", "another work folder"),
        ({"lease_s": 5.0}, "another time of a lease: 5.0", "another time of a lease"),
        (
            {"application": {"spark.executor.memory": "2g", "spark.jars": "a.jar"}},
            "other settings of an application: spark.executor.memory",
            "application setting spark.executor.memory",
        ),
        (
            {"application": {"spark.executor.memory": "1g"}},
            "other settings of an application: spark.jars",
            "application setting spark.jars",
        ),
    ],
)
def test_what_only_another_application_has(changed: dict[str, Any], why: str, told: str) -> None:
    new = replace(OLD, **changed)
    assert needs_application(OLD, new) == why
    assert explain_difference(OLD, new) == (told,)


def test_values_of_settings_are_not_told() -> None:
    """They may be secret."""
    old, new = (replace(OLD, application={"spark.password": each}) for each in ("one", "two"))
    assert explain_difference(old, new) == ("application setting spark.password",)
    assert needs_application(old, new) == "other settings of an application: spark.password"


def test_looks_at_a_flow_differ_where_a_part_does() -> None:
    one = FlowCode({"a": {"code": "1", "global 'X'": "2"}, "b": {"code": "3"}}, {"window_s": "4"})
    same = FlowCode({"a": {"global 'X'": "2", "code": "1"}, "b": {"code": "3"}}, {"window_s": "4"})
    other = FlowCode({"a": {"code": "1", "global 'X'": "9"}, "c": {"code": "3"}}, {"window_s": "5"})
    assert fingerprint_flow(one) == fingerprint_flow(same) != fingerprint_flow(other)
    assert list(list_differences(one, same)) == []
    found = [("", "window_s"), ("a", "global 'X'"), ("b", "code"), ("c", "code")]
    assert list(list_differences(one, other)) == found
