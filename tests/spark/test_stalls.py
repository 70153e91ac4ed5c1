"""Steps that get nowhere, in real Spark: each waits for a file that is not there yet."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from airflow_dagsched.launch.protocol.events import Event, Stalled
from airflow_dagsched.spark.session import actions
from airflow_dagsched.spark.session.current import list_threads_at_work, work_for
from airflow_dagsched.spark.session.sessions import enter_session
from airflow_dagsched.spark.telling.progress_watch import ProgressWatch

LONG_S = 1000.0


class Block:
    """Holds whoever comes until it is opened; shared by files with Spark's Python workers."""

    def __init__(self, folder: Path) -> None:
        self.reached, self.opened = folder / "reached", folder / "opened"

    def wait(self) -> None:
        self.reached.touch()
        while not self.opened.exists():
            time.sleep(0.05)


def held(block: Block, work: Callable[[], object], spark: SparkSession) -> Iterator[None]:
    """A step of the name "clean" at work in a thread, as a turn is."""

    def turn() -> None:
        with work_for("clean"):
            enter_session(spark, "clean", "clean")
            work()

    thread = threading.Thread(target=turn)
    thread.start()
    while not block.reached.exists():
        time.sleep(0.05)
    try:
        yield
    finally:
        block.opened.touch()
        thread.join()


def waiting_rows(spark: SparkSession, block: Block) -> DataFrame:
    reached, opened = str(block.reached), str(block.opened)

    def wait(number: int) -> int:
        import time
        from pathlib import Path

        Path(reached).touch()
        while not Path(opened).exists():
            time.sleep(0.05)
        return number

    return spark.range(0, 2, 1, 2).select(sf.udf(wait, "long")("id"))


@pytest.fixture
def said() -> list[Event]:
    return []


@pytest.fixture
def watch(spark: SparkSession, said: list[Event]) -> ProgressWatch:
    return ProgressWatch(spark, ("clean",), LONG_S, lambda *events: said.extend(events))


def until_seen(watch: ProgressWatch, words: str) -> Stalled:
    """Look until a step is seen to wait for that: Spark tells of its tasks a little later."""
    while True:
        watch.look_at_steps(0.0)
        for stall in watch.list_stalled(LONG_S):
            assert isinstance(stall, Stalled)
            if words in stall.waits_for:
                return stall


def test_a_function_that_blocks(
    spark: SparkSession, tmp_path: Path, watch: ProgressWatch, said: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two tasks of one stage wait; then it goes on. The author's line is named, though actions are listened to."""
    actions.listen_to_actions()
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    block = Block(tmp_path)
    rows = waiting_rows(spark, block)
    for _ in held(block, rows.collect, spark):
        stall = until_seen(watch, "runs 2 tasks")
        assert (stall.step, stall.seconds) == ("clean", LONG_S)
        watch.look_at_steps(LONG_S - 1)
        assert said == []
        watch.look_at_steps(LONG_S + 1)
        watch.look_at_steps(LONG_S + 2)
        (event,) = said
        assert isinstance(event, Stalled)
        assert "collect at test_stalls.py:" in event.line
        assert "runs 2 tasks on " in event.line
        assert "none of 2 ended, called at test_stalls.py:" in event.line
        assert event.line.startswith("no progress for 16 min: stage ")
    assert list_threads_at_work() == {}
    assert watch.list_stalled(LONG_S) == ()


def test_python_that_blocks(spark: SparkSession, tmp_path: Path, watch: ProgressWatch, said: list[Event]) -> None:
    block = Block(tmp_path)
    for _ in held(block, block.wait, spark):
        watch.look_at_steps(0.0)
        watch.look_at_steps(LONG_S)
        (event,) = said
        assert isinstance(event, Stalled)
        assert event.waits_for.startswith("runs no Spark job: in Python at test_stalls.py:")
        assert "(wait)" in event.waits_for
        watch._printed = lambda step: 1
        watch.look_at_steps(LONG_S + 5)
        assert said[1:] == [Stalled("clean", 0.0, "progress again, after 1005 s")]


def test_steps_of_other_groups_are_not_told_of(spark: SparkSession, tmp_path: Path, said: list[Event]) -> None:
    watch, block = ProgressWatch(spark, ("other",), LONG_S, lambda *events: said.extend(events)), Block(tmp_path)
    for _ in held(block, block.wait, spark):
        watch.look_at_steps(0.0)
        watch.look_at_steps(LONG_S)
    assert said == []


def test_looks_by_itself(spark: SparkSession, tmp_path: Path) -> None:
    """With a threshold of 0.2 s."""
    heard, block = threading.Event(), Block(tmp_path)
    watch = ProgressWatch(spark, ("clean",), 0.2, lambda *events: heard.set())
    for _ in held(block, block.wait, spark):
        with watch.watch_steps():
            assert heard.wait(60)
