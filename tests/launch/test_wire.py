"""What crosses the process boundary comes out as it went in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from airflow_dagsched.launch.protocol.calls import Output
from airflow_dagsched.launch.protocol.events import (
    Failure,
    Finished,
    Heartbeat,
    Marked,
    Started,
    StepDone,
    decode_batch,
    decode_marker,
    encode_batch,
    encode_marker,
)
from airflow_dagsched.launch.protocol.manifest import Manifest, Repeat, StepSpec, read_manifest
from airflow_dagsched.launch.protocol.tables import Table
from airflow_dagsched.launch.protocol.wire import DEEPEST, encode_plain, parse_dataclass
from tests.garbled import TEXTS, nested

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
    assert decode_batch(encode_batch(EVENTS)) == EVENTS


def test_a_marker_needs_its_nonce() -> None:
    """What a step prints can't pass as an event."""
    line = encode_marker("secret", 3, EVENTS)
    assert decode_marker(f"26/11/21 INFO {line}", "secret") == Marked(3, EVENTS)
    assert decode_marker(line, "other") is None
    assert decode_marker("plain text", "secret") is None


def test_unknown_kinds_are_left_out() -> None:
    """A newer driver's extra events don't stop an older launch task."""
    assert decode_batch('[{"kind":"fireworks"},{"kind":"heartbeat"}]') == (Heartbeat(),)


def test_sets_are_written_in_order() -> None:
    assert encode_plain(frozenset({"b", "a"})) == ["a", "b"]


@dataclass(frozen=True)
class Each:
    """One field of every sort."""

    text: str = ""
    number: int = 0
    seconds: float = 0.0
    sure: bool = False
    texts: tuple[str, ...] = ()
    pair: tuple[str, int] = ("", 0)
    by_name: Mapping[str, float] = field(default_factory=dict)
    by_number: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    kind: Literal["a", "b"] = "a"
    maybe: str | None = None
    inner: Output = Output("a")  # noqa: RUF009 - frozen
    anything: Any = None


WHOLE = Each("t", 1, 2.5, True, ("x",), ("x", 1), {"m": 1}, {3: ("x",)}, "b", "m", Output("b"), {"n": [1, None]})


def test_a_value_of_every_type_is_read() -> None:
    assert parse_dataclass(Each, json.dumps(encode_plain(WHOLE))) == WHOLE
    assert parse_dataclass(Each, "{}") == Each()


@pytest.mark.parametrize(
    "wrong",
    [
        {"text": 5}, {"text": None}, {"text": "\0"}, {"text": "\ud800"}, {"number": True}, {"number": 1.5},
        {"number": 2**63}, {"seconds": float("inf")}, {"seconds": float("nan")}, {"seconds": 10**400}, {"seconds": "1"},
        {"seconds": True}, {"sure": 1}, {"texts": "xy"}, {"texts": {"x": 1}}, {"texts": [5]}, {"texts": None},
        {"pair": ["x"]}, {"pair": ["x", 1, 2]}, {"by_name": {"m": None}}, {"by_name": {"m": "1"}}, {"by_name": []},
        {"by_number": {"x": []}}, {"by_number": {"1": 3}}, {"kind": "c"}, {"kind": ["a"]}, {"maybe": 5}, {"inner": "b"},
        {"inner": []}, {"inner": None}, {"inner": {"step": 5}}, {"anything": float("inf")}, {"anything": "\0"},
        {"anything": nested(DEEPEST)}, {"anything": [{"x": "\ud800"}]}, [], "x", 5, None, True,
    ],
)  # fmt: skip
def test_what_is_of_another_type_is_none(wrong: Any) -> None:
    """As deep as it goes: a text is no list of its letters, an object no list of its names."""
    assert parse_dataclass(Each, json.dumps(wrong)) is None


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_no_json_is_none(text: bytes) -> None:
    assert parse_dataclass(Output, text.decode(errors="surrogateescape")) is None


def test_a_value_may_be_nested_but_not_too_deep() -> None:
    assert parse_dataclass(Each, json.dumps({"anything": nested(DEEPEST - 1)})) is not None
    assert parse_dataclass(Each, json.dumps({"a field of a newer version": nested(300)})) == Each()
