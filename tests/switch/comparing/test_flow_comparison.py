"""What is said of a flow of which one graph waits for a person's word."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_dagsched.cli import main
from airflow_dagsched.switch.comparing.flow_comparison import Comparison, Difference, compare_flow, find_emitted
from airflow_dagsched.switch.comparing.summary import Summary
from airflow_dagsched.switch.comparing.summary_files import SummaryFiles
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.places import FlowPlaces, name_flow
from airflow_dagsched.switch.reasons import Reason
from airflow_dagsched.switch.records import Record
from airflow_dagsched.switch.story import EpochStory
from tests.switch.drawn import FIRST, make_batch, make_epoch, make_fence, make_started, number

OLD, NEW = (f"{epoch:08x}" for epoch in (1, 2))
WAITS: tuple[Record, ...] = (
    *FIRST,
    make_batch(1, 1, 10, 20, watermark=20.0),
    make_epoch(2, x_confirm="manual", boundary=10.0),
    make_started(2),
    make_batch(2, 0, 20, 40, kept=0, watermark=40.0),
    make_batch(1, 2, 30, 50, watermark=50.0),
)
TWO = Summary(2, {"n": "7"}, "1")


def write_log(flow: FlowPlaces, records: tuple[Record, ...]) -> None:
    log = FlowLog(flow.log, clock=lambda: 100.0)
    for each in records:
        log.append(lambda story, n, at, each=each: replace(number((each,), n)[0], at=at))  # type: ignore[misc]


@pytest.fixture
def flow(tmp_path: Path) -> FlowPlaces:
    """The new graph has window 30 as the old one has it, and window 40 otherwise."""
    places = name_flow(tmp_path, "dag", "flow")
    write_log(places, WAITS)
    SummaryFiles(places.name_epoch(NEW), "out").write(0, 2, {20.0: TWO, 30.0: TWO, 40.0: Summary(1, {"n": "5"})}, None)
    SummaryFiles(places.name_epoch(OLD), "out").write(2, 2, {30.0: TWO, 40.0: TWO, 50.0: TWO}, 20.0)
    return places


def test_windows_that_both_have_emitted_are_compared(flow: FlowPlaces):
    """Not 20, which the old graph had emitted before; not 50, which the new one has not."""
    unlike = (Difference(40.0, TWO, Summary(1, {"n": "5"})),)
    assert compare_flow(flow.folder) == (Comparison("out", 1, 2, 20.0, 40.0, 1, unlike),)
    assert compare_flow(flow.folder, "other") == ()


def test_it_is_said(flow: FlowPlaces, capsys: pytest.CaptureFixture[str]):
    ends = [f"1970-01-01 00:00:{second} UTC" for second in (20, 40)]
    assert main(["stream", "compare", str(flow.folder)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"out: epochs 1 and 2, windows behind {ends[0]} up to {ends[1]}: 1 are the same, 1 differ",
        f"  {ends[1]}: 2 and 1 rows, sum of n 7 and 5",
        "  (sums of floating-point numbers differ in their last digits where rows come in another order)",
    ]
    assert main(["stream", "compare", str(flow.folder), "--step", "out", "--format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["step"], [each["window"] for each in found["differences"]]) == ("out", [40.0])


def test_nothing_in_common_yet(flow: FlowPlaces, capsys: pytest.CaptureFixture[str]):
    write_log(flow, (make_batch(1, 3, 60, 60, watermark=60.0),))
    SummaryFiles(flow.name_epoch(OLD), "out").write(3, 3, {}, 60.0)  # of another switch: none of this one is left
    SummaryFiles(flow.name_epoch(OLD), "out").write(4, 2, {60.0: TWO}, 60.0)
    assert main(["stream", "compare", str(flow.folder)]) == 0
    told = "out: epochs 1 and 2 have no window behind 1970-01-01 00:01:00 UTC in common yet\n"
    assert capsys.readouterr().out == told


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        (FIRST, Reason("no switch")),
        ((*FIRST, make_epoch(2)), Reason("needs no word", 2)),
        ((*WAITS, make_fence(1, 60.0)), Reason("only forward", 1)),
    ],
)
def test_where_nobody_waits_nothing_is_compared(
    tmp_path: Path, records: tuple[Record, ...], reason: Reason, capsys: pytest.CaptureFixture[str]
):
    places = name_flow(tmp_path, "dag", "flow")
    write_log(places, records)
    assert compare_flow(places.folder) == reason
    assert main(["stream", "compare", str(places.folder)]) == 2
    assert "nothing is compared" in capsys.readouterr().err


def test_rows_need_a_batch_from_one_operator_with_state_to_the_next():
    epoch = EpochStory(make_epoch(1, x_drain=2))
    batches: list[Any] = [make_batch(1, at, watermark=10.0 * at) for at in (2, 0, 1)]
    assert find_emitted(batches, epoch) == 10.0
    assert find_emitted(batches[:1], epoch) is None
