"""The driver's output as its launch task sees it: lines torn, lost, interleaved; each batch is taken in once."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_dagsched.launch.protocol.events import (
    Event,
    Finished,
    Heartbeat,
    StepDone,
    StepLog,
    StepRunning,
    encode_batch,
    encode_marker,
)
from airflow_dagsched.launch.protocol.feed import Feed
from airflow_dagsched.provider.following.follower import Follower

BATCHES: list[tuple[Event, ...]] = [
    (StepRunning("a"),),
    (StepLog("a", ("hello", "again")),),
    (StepDone("a", "success", rows=1), StepRunning("b")),
    (StepDone("b", "success", rows=2),),
    (Finished(True, 1.0),),
]
MARKERS = [encode_marker("n0nce", number, batch) for number, batch in enumerate(BATCHES, 1)]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("follow") / "events.jsonl"


def follower(file: Path) -> tuple[Follower, list[StepDone]]:
    published: list[StepDone] = []
    made = Follower(Feed(nonce="f"), lambda feed: None, published.append, lambda event: None)
    made.open(str(file))
    return made, published


@settings(deadline=None)
@given(st.lists(st.sampled_from(["whole", "torn", "lost", "beat"]), min_size=len(MARKERS), max_size=len(MARKERS)))
def test_each_batch_is_taken_in_once(file: Path, fates: list[str]) -> None:
    """The file is always there; a line may be torn by Java's output, or never come."""
    file.write_text("")
    ours, published = follower(file)
    for number, (fate, marker, batch) in enumerate(zip(fates, MARKERS, BATCHES, strict=True), 1):
        with file.open("a") as out:
            out.write(encode_batch(batch) + "\n")
        if fate == "torn":
            assert ours.line("n0nce", marker[:-9] + "26/11/21 WARN TaskSetManager: Lost task\n")
        if fate == "beat":
            assert ours.line("n0nce", encode_marker("n0nce", number, [Heartbeat()]))
        if fate in ("whole", "beat"):
            assert ours.line("n0nce", marker)
    ours.catch_up()
    assert [done.step for done in published] == ["a", "b"]
    assert ours.feed.logs["a"].lines == ("hello", "again")
    assert ours.finished == Finished(True, 1.0)


def test_what_is_no_event_is_left_to_the_log(tmp_path: Path) -> None:
    ours, _ = follower(tmp_path / "events")
    assert not ours.line("n0nce", "26/11/21 INFO SparkContext: Running Spark version 4")
    assert not ours.line("n0nce", encode_marker("0ther", 1, BATCHES[0]))


def test_batch_that_is_being_written_is_left_for_later(tmp_path: Path) -> None:
    """The last line of the file has no end yet."""
    file = tmp_path / "events"
    file.write_text(encode_batch(BATCHES[0]) + "\n" + encode_batch(BATCHES[3])[:20])
    ours, published = follower(file)
    ours.catch_up()
    assert ours.feed.running == ("a",)
    assert published == []


def test_a_line_cut_off_by_a_full_disk_ends_no_run(tmp_path: Path) -> None:
    file = tmp_path / "events"
    lines = [encode_batch(batch) for batch in BATCHES]
    ours, published = follower(file)
    file.write_text(lines[0] + "\n" + lines[1][:9])
    ours.catch_up()
    with file.open("a") as out:
        out.write("\n".join(lines[2:]) + "\n")
    ours.catch_up()
    ours.catch_up()
    assert [done.step for done in published] == ["b"]
    assert ours.finished == Finished(True, 1.0)
