"""What crosses the process boundary comes out as it went in."""

from __future__ import annotations

import pytest

from airflow_dagsched.launch.calls import Output
from airflow_dagsched.launch.events import (
    Failure,
    Finished,
    Heartbeat,
    Marked,
    Started,
    StepDone,
    from_line,
    from_marker,
    marker_line,
    to_line,
)
from airflow_dagsched.launch.manifest import Manifest, Repeat, StepSpec, read_manifest
from airflow_dagsched.launch.tables import Table
from airflow_dagsched.launch.wire import encode

MANIFEST = Manifest(
    package_version="1",
    python="3.11",
    dag_id="d",
    dataflow="f",
    group="launch",
    run_id="r",
    try_number=1,
    clear_number=0,
    work_dir="/w",
    events="/w/e",
    payload="/p",
    interval_key="2024",
    targets=("a",),
    steps=(
        StepSpec(
            "a", "c0de", (Output("b", "good"),), ("b",), {"t": "success"},
            reads=(Table("/in", where="day = interval.start"),), location=("dag.py", 1, 9),
            writes=Table("/out", partition_by=["day"]),
        ),
    ),
    repeats=(Repeat("a", ("a",), 3, {"a.x": "a"}),),
    context={"params": {"n": 1}},
)  # fmt: skip
EVENTS = (
    Started("app-1", "http://localhost:4040"),
    StepDone(
        "a",
        "failed",
        rows=None,
        metrics={"x": 1.5},
        fused=("b",),
        datasets={"": "/d"},
        failure=Failure("author", "m", "t"),
    ),
    Heartbeat(),
    Finished(False, 1.5, Failure("out_of_memory", "heap")),
)


def test_manifest_round_trip() -> None:
    """JSON and back, down to tuples in tuples."""
    assert read_manifest(MANIFEST.to_json(), "1") == MANIFEST


def test_manifest_of_another_version_is_refused() -> None:
    """The message says which side is which."""
    with pytest.raises(ValueError, match=r"manifest is of airflow_dagsched 1 .* driver program of 2 .*same version"):
        read_manifest(MANIFEST.to_json(), "2")


def test_events_round_trip() -> None:
    assert from_line(to_line(EVENTS)) == EVENTS


def test_a_marker_needs_its_nonce() -> None:
    """What a step prints can't pass as an event."""
    line = marker_line("secret", 3, EVENTS)
    assert from_marker(f"26/11/21 INFO {line}", "secret") == Marked(3, EVENTS)
    assert from_marker(line, "other") is None
    assert from_marker("plain text", "secret") is None


def test_unknown_kinds_are_left_out() -> None:
    """A newer driver's extra events don't stop an older launch task."""
    assert from_line('[{"kind":"fireworks"},{"kind":"heartbeat"}]') == (Heartbeat(),)


def test_sets_are_written_in_order() -> None:
    assert encode(frozenset({"b", "a"})) == ["a", "b"]
