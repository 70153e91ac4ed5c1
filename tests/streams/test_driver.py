"""The driver program of a stream, as a process: what it leaves in the table, the log and its epoch's folder."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from airflow_dagsched.launch.streams.settings import StreamSettings
from airflow_dagsched.switch.advising.advice import Deploy
from airflow_dagsched.switch.checking.check_log import check_log
from airflow_dagsched.switch.log.executor import Executor
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.log.signs_files import place_order, read_ended, read_sign
from airflow_dagsched.switch.places import EpochPlaces
from airflow_dagsched.switch.records import Aborted, Current, Drained, Fence, Started, Stopped
from airflow_dagsched.switch.story import EpochStory
from tests.streams.kit import QUERY, SOURCE, Driver, Flow, Graph, sum_by_user, wait_until
from tests.streams.rows import NO_DIFFERENCE, Row, Rows, add_file, compare, read_table, sum_windows

pytestmark = pytest.mark.spark

ROWS = Rows()
QUICK = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
"""Java's quick compiler: half the time of a short life."""
FILTERED = "user 0"
"""The old graph takes no rows of this user."""


def sum_without_one(clicks: Any) -> Any:
    print("jdbc:x://h?password=guess-it")
    return sum_by_user(clicks.where("user <> 'user 0'"))


def fail(clicks: Any) -> Any:
    raise ValueError(f"no such column in {clicks.columns}")


def read_story(flow: Flow, epoch: int) -> EpochStory:
    log = FlowLog(flow.places.log)
    log.read()
    return log.story.epochs[epoch]


def feed(flow: Flow, files: Sequence[Sequence[Row]]) -> list[Row]:
    for rows in files:
        add_file(flow.source, rows)
    return [row for rows in files for row in rows]


@pytest.mark.slow
def test_a_killed_driver_is_followed_by_one_that_loses_and_repeats_nothing(tmp_path: Path):
    flow, files = Flow(tmp_path), ROWS.draw(9)
    places = flow.ask(Graph(conf=QUICK))
    rows = feed(flow, files[:5])
    with flow.run(places) as driver:
        driver.wait_for(lambda: len(flow.list_batches(1)) >= 3)
        driver.kill()
    recorded = len(flow.list_batches(1))
    with flow.run(places) as driver:
        rows += feed(flow, files[5:])
        driver.wait_for(lambda: len(flow.list_batches(1)) >= len(files))
        newest = max(row.at for row in rows) / 1e6
        driver.wait_for(lambda: _find_newest(places) == newest)
        sign = read_sign(places)
        assert driver.stop() == 0
    ended = read_ended(places)
    assert ended is not None
    assert (ended.code, ended.kind, ended.batches) == (0, None, len(flow.list_batches(1)) - recorded)
    assert sign is not None
    assert sign.epoch == 1
    assert len([each for each in flow.read() if isinstance(each, Started)]) == 2
    expected = sum_windows(rows, ROWS.window_s, upto=flow.find_watermark(1))
    assert compare(expected, read_table(flow.table)) == NO_DIFFERENCE
    assert check_log(flow.places.log).violations == ()


def _find_newest(places: EpochPlaces) -> float | None:
    """The newest event time that the driver's sign of life tells."""
    sign = read_sign(places)
    return sign.newest.get(SOURCE) if sign is not None else None


@pytest.mark.slow
def test_a_changed_graph_takes_over_in_the_same_application(tmp_path: Path):
    # The new graph reads two files in a batch.
    drawn = Rows(apart=5)
    flow, files = Flow(tmp_path), iter(drawn.draw(400))
    rows: list[Row] = []

    def goes_on(driver: Driver, kind: type, epoch: int) -> None:
        """Rows come until there is such a record of the epoch."""
        last = [0.0]

        def is_reached() -> bool:
            # No faster than two graphs are on a machine of others: they have to meet.
            if time.monotonic() - last[0] > 2:
                last[0] = time.monotonic()
                rows.extend(feed(flow, [next(files)]))
            return any(isinstance(each, kind) and each.epoch == epoch for each in flow.read())

        driver.wait_for(is_reached)

    places = flow.ask(Graph(sums=sum_without_one, conf=QUICK))
    with flow.run(places) as driver:
        rows += feed(flow, [next(files) for _ in range(4)])
        driver.wait_for(lambda: len(flow.list_batches(1)) >= 4)
        # An edit that fails: the old graph does not notice.
        flow.ask(Graph("broken", fail, conf=QUICK))
        goes_on(driver, Aborted, 2)
        new = flow.ask(Graph("second", sum_by_user, partitions=3, files_per_batch=2, conf=QUICK))
        goes_on(driver, Current, 3)
        settled = len(flow.list_batches(3))
        rows += feed(flow, [next(files) for _ in range(3)])
        driver.wait_for(lambda: len(flow.list_batches(3)) > settled)
        assert place_order(new, "stop", "a test", time.time(), "enough")
        driver.wait_for(lambda: not driver.is_alive())
        assert driver.code == 0
    [aborted] = [each for each in flow.read() if isinstance(each, Aborted)]
    assert aborted.x_cause == "author"
    assert "step 'by_user' fails: ValueError: no such column in" in aborted.reason
    [fence] = [each for each in flow.read() if isinstance(each, Fence)]
    applications = {each.application for each in flow.read() if isinstance(each, Started)}
    assert len(applications) == 1
    old = sum_windows(rows, drawn.window_s, upto=fence.upto, keep=lambda row: row.user != FILTERED)
    expected = {**old, **sum_windows(rows, drawn.window_s, after=fence.upto, upto=flow.find_watermark(3))}
    assert compare(expected, read_table(flow.table)) == NO_DIFFERENCE
    assert check_log(flow.places.log).violations == ()
    stopped = read_story(flow, 1).stopped
    assert stopped is not None
    assert stopped.reason.startswith("replaced by epoch 3 at window")
    ended = read_ended(places)
    assert ended is not None
    assert (ended.code, ended.kind) == (0, None)
    # Of the epoch that the program was started for.
    assert "by_user: jdbc:x://h?password=***\n" in places.output.read_text()


@pytest.mark.slow
def test_after_a_graph_that_can_run_no_more_another_goes_on_behind_its_last_window(tmp_path: Path):
    flow, files = Flow(tmp_path), ROWS.draw(14)
    with flow.run(flow.ask(Graph(sums=sum_without_one, conf=QUICK))) as driver:
        rows = feed(flow, files[:7])
        driver.wait_for(lambda: len(flow.list_batches(1)) >= 5)
        driver.kill()
    log = FlowLog(flow.places.log)
    log.append(lambda story, n, at: Stopped(n=n, at=at, epoch=1, reason="no such column", x_cause="author"))
    new = flow.ask(Graph("second", sum_by_user, partitions=3, conf=QUICK))
    # As a launch task does, which can make records and start drivers.
    executor = Executor(flow.places.folder, {})
    wait_until(lambda: Deploy in map(type, executor.step().commands), lambda: "the fence, and a start behind it")
    with flow.run(new) as driver:
        rows += feed(flow, files[7:])
        driver.wait_for(lambda: len(flow.list_batches(2)) >= len(files))
        assert driver.stop() == 0
    [fence] = [each for each in flow.read() if isinstance(each, Fence)]
    assert [each.epoch for each in flow.read() if isinstance(each, Drained)] == [1]
    assert [each.epoch for each in flow.read() if isinstance(each, Current)] == [1, 2]
    old = sum_windows(rows, ROWS.window_s, upto=fence.upto, keep=lambda row: row.user != FILTERED)
    expected = {**old, **sum_windows(rows, ROWS.window_s, after=fence.upto, upto=flow.find_watermark(2))}
    assert old
    assert compare(expected, read_table(flow.table)) == NO_DIFFERENCE
    assert check_log(flow.places.log).violations == ()


@pytest.mark.slow
def test_a_driver_whose_function_does_not_come_back_ends_and_the_next_one_goes_on(tmp_path: Path):
    """Spark waits for the function's thread for ever, if it may."""
    flow, files, hangs = Flow(tmp_path), ROWS.draw(8), tmp_path / "hangs"
    hangs.write_text("")

    def tell(rows: Any, key: str) -> None:
        with (tmp_path / "calls").open("a") as calls:
            calls.write(f"{key}\n")
        while hangs.exists():
            time.sleep(0.05)

    def list_calls() -> list[str]:
        return (tmp_path / "calls").read_text().splitlines() if (tmp_path / "calls").exists() else []

    # Of paths that name no file system none may be a stream's own.
    conf = {**QUICK, "spark.hadoop.fs.defaultFS": "hdfs://127.0.0.1:9"}
    places = flow.ask(Graph(conf=conf, sink=tell, settings=StreamSettings(10.0, 5.0, 0.2, ends_within_s=1.0)))
    feed(flow, files)
    with flow.run(places) as driver:
        driver.wait_for(lambda: bool(list_calls()))
        assert driver.stop() == 3
    ended, recorded = read_ended(places), flow.list_batches(1)
    assert ended is not None
    assert (ended.kind, ended.step, recorded[-1].kept > 0) == ("lost_driver", QUERY, True)
    hangs.unlink()
    with flow.run(places) as driver:
        driver.wait_for(lambda: len(flow.list_batches(1)) >= len(files))
        assert driver.stop() == 0
    first, again, *others = list_calls()
    assert first == again
    assert len({again, *others}) == len([each for each in flow.list_batches(1) if each.kept])


@pytest.mark.slow
def test_a_setting_that_spark_refuses_ends_the_edit_alone(tmp_path: Path):
    flow, files = Flow(tmp_path), ROWS.draw(6)
    with flow.run(flow.ask(Graph(conf=QUICK))) as driver:
        feed(flow, files[:3])
        driver.wait_for(lambda: len(flow.list_batches(1)) >= 3)
        broken = flow.ask(Graph("broken", conf=QUICK, session={"spark.sql.shuffle.partitions": "many"}))
        driver.wait_for(lambda: any(isinstance(each, Aborted) for each in flow.read()))
        feed(flow, files[3:])
        driver.wait_for(lambda: len(flow.list_batches(1)) >= len(files))
        assert driver.stop() == 0
    ended = read_ended(broken)
    assert ended is not None
    assert "spark.sql.shuffle.partitions" in ended.message
    assert len([each for each in flow.read() if isinstance(each, Started)]) == 1
