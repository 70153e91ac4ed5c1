"""What fills the inboxes, a real ``spark-submit``: it stands still, ends and goes on; one of its sources is idle."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from airflow_dagsched.switch.checking.check_log import check_log
from airflow_dagsched.switch.inbox.entries import Routed
from airflow_dagsched.switch.log.executor import Executor
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.log.inbox_log import InboxLog
from airflow_dagsched.switch.log.signs_files import place_order, read_sign, remove_order
from airflow_dagsched.switch.places import EpochPlaces, InboxPlaces
from airflow_dagsched.switch.records import Stopped
from tests.streams.kit import SOURCE, Driver, Feed, Flow, Graph, sum_by_user, wait_until
from tests.streams.rows import BEGIN, NO_DIFFERENCE, SECOND, Row, Rows, add_file, compare, read_table, sum_windows
from tests.streams.test_inbox import NEW, OLD, ONE, SETTINGS, check_table, fed, is_over
from tests.streams.test_switch import find_fences, has, sum_threefold

pytestmark = [pytest.mark.spark, pytest.mark.slow]

OTHER = "more"


def sum_both(clicks: Any, more: Any) -> Any:
    return sum_by_user(clicks.union(more))


def test_a_service_that_stands_still_over_a_hold_and_a_fence_goes_on(tmp_path: Path):
    """It has read rows by then that it was to split by the rule of before; another may have its place when it wakes."""
    flow = Flow(tmp_path)
    feed = Feed(flow, Rows())
    with flow.run(flow.ask(OLD)) as driver, ExitStack() as services:
        service = services.enter_context(flow.run(flow.places.inbox_service))
        driver.wait_for(fed(flow, feed, lambda: flow.find_watermark(1) > 0))
        feed.add()
        os.killpg(service.pid, signal.SIGSTOP)
        flow.ask(NEW)
        driver.wait_for(lambda: bool(find_fences(flow)))
        os.killpg(service.pid, signal.SIGCONT)
        driver.wait_for(fed(flow, feed, keeping_service(flow, service, services, lambda: is_over(flow))))
        assert driver.stop() == 0
    check_table(flow, feed)


def keeping_service(
    flow: Flow, service: Driver, services: ExitStack, is_reached: Callable[[], bool]
) -> Callable[[], bool]:
    """Starts another where it ends since its lease has run out, as whoever follows the flow does."""
    running = [service]

    def is_over() -> bool:
        if not running[-1].is_alive():
            assert len(running) == 1, running[-1].read_output()
            running.append(services.enter_context(flow.run(flow.places.inbox_service)))
        return is_reached()

    return is_over


def test_a_source_that_is_idle_closes_no_window_and_each_row_is_kept_or_dead(tmp_path: Path):
    flow = Flow(tmp_path)
    graph = Graph("first", sum_both, settings=SETTINGS, conf=ONE, sources=(SOURCE, OTHER))
    clicks, more = (Rows(stale=0.0, seed=seed).draw(6) for seed in (1, 2))
    late = [Row(BEGIN + at * SECOND, "user 0", 1, clicks[0][0].amount, is_stale=True) for at in range(7)]
    places, newest = flow.ask(graph), max(row.at for row in list_rows(clicks)) / SECOND
    with flow.run(places) as driver, flow.run(flow.places.inbox_service):
        for file in clicks:
            add_file(flow.source, file)
        driver.wait_for(lambda: has_read(places, SOURCE, newest))
        assert not list(read_table(flow.table))
        for file in more:
            add_file(flow.name_source(OTHER), file)
        driver.wait_for(lambda: flow.find_watermark(1) > BEGIN / SECOND + 100)
        assert read_dead(flow, SOURCE) == {}
        add_file(flow.source, late)
        driver.wait_for(lambda: read_dead(flow, SOURCE) == {"late": len(late)})
        assert driver.stop() == 0
    check_counts(flow, {SOURCE: list_rows([*clicks, late]), OTHER: list_rows(more)})
    expected = sum_windows(list_rows([*clicks, *more]), 10, upto=flow.find_watermark(1))
    assert expected
    assert compare(expected, read_table(flow.table)) == NO_DIFFERENCE


def has_read(places: EpochPlaces, source: str, moment: float) -> bool:
    """Whether the graph says so, of a row of this event time."""
    sign = read_sign(places)
    return sign is not None and (sign.newest.get(source) or 0.0) >= moment


def list_rows(files: Sequence[list[Row]]) -> list[Row]:
    return [row for file in files for row in file]


def read_inbox(flow: Flow, source: str) -> tuple[InboxPlaces, list[Routed]]:
    places = flow.places.name_inbox(source)
    return places, [each for each in InboxLog(places.log).read() if isinstance(each, Routed)]


def count_rows(flow: Flow, source: str) -> int:
    """Rows that an epoch has, by the log of the inbox."""
    return sum(sum(each.rows.values()) for each in read_inbox(flow, source)[1])


def read_dead(flow: Flow, source: str) -> dict[str, int]:
    routed = read_inbox(flow, source)[1]
    return dict(routed[-1].dead) if routed else {}


def check_counts(flow: Flow, given: dict[str, list[Row]]) -> None:
    """Rows in are rows kept and dead ones, in the log as in the files, and nothing is left on its way."""
    for source, rows in given.items():
        places, _ = read_inbox(flow, source)
        kept, dead = count_rows(flow, source), sum(read_dead(flow, source).values())
        assert (kept + dead, dead) == (len(rows), sum(each.is_stale for each in rows))
        assert (count_in_files(places.rows), count_in_files(places.folder / "dead")) == (kept, dead)
        assert not list(places.drafts.iterdir())


def count_in_files(folder: Path) -> int:
    files = [str(each) for each in folder.rglob("*.parquet")]
    return int(ds.dataset(files, format="parquet").count_rows()) if files else 0


def test_into_inboxes_and_out_of_them_by_a_stop_and_on_after_one(tmp_path: Path):
    """A graph that is to get its rows another way begins where the stopped one has ended."""
    flow = Flow(tmp_path)
    feed = Feed(flow, Rows())
    with stopping(flow, flow.ask(Graph("first", conf=ONE))) as driver:
        driver.wait_for(feed.until(lambda: flow.find_watermark(1) > BEGIN / SECOND + 20))
    by_inbox = flow.ask(Graph("second", sum_threefold, partitions=3, settings=SETTINGS, conf=ONE))
    fence = await_fence(flow)
    for upto in (fence + 30, fence + 80):
        remove_order(by_inbox, "stop")
        with ExitStack() as services:
            with stopping(flow, by_inbox) as driver:
                # Before that it would end at once: of a stopped graph nobody reads what it routes.
                driver.wait_for(lambda: reads_inbox(flow))
                service = services.enter_context(flow.run(flow.places.inbox_service))
                driver.wait_for(feed.until(lambda upto=upto: flow.find_watermark(2) >= upto, [2]))
            wait_until(lambda service=service: not service.is_alive(), service.read_output)
            assert service.code == 0, service.read_output()
        feed.add()
    last = flow.ask(Graph("third", conf=ONE))
    wait_until(lambda: await_fence(flow) > fence, lambda: str(flow.read()))
    with flow.run(last) as driver:
        driver.wait_for(feed.until(lambda: flow.find_watermark(3) >= find_fences(flow)[-1] + 30, [3]))
        assert driver.stop() == 0
    assert check_log(flow.places.log).violations == ()
    begin, end = find_fences(flow)
    middle = sum_windows(feed.given, 10, after=begin, upto=end)
    expected = {
        **sum_windows(feed.given, 10, upto=begin),
        **{key: sums._replace(clicks=sums.clicks * 3) for key, sums in middle.items()},
        **sum_windows(feed.given, 10, after=end, upto=flow.find_watermark(3)),
    }
    assert middle
    assert compare(expected, read_table(flow.table)) == NO_DIFFERENCE


def reads_inbox(flow: Flow) -> bool:
    log = FlowLog(flow.places.log)
    log.read()
    return log.story.reads_inbox


def await_fence(flow: Flow) -> float:
    """That of the switch from a graph that runs no more: any process may add it."""
    executor = Executor(flow.places.folder, {})
    wait_until(lambda: bool(executor.step() and find_fences(flow)), lambda: str(flow.read()))
    return find_fences(flow)[-1]


@contextmanager
def stopping(flow: Flow, places: EpochPlaces) -> Iterator[Driver]:
    """A driver of the epoch, which is told to stop at the end, as by a person."""
    with flow.run(places) as driver:
        yield driver
        epoch = len(find_fences(flow)) + 1
        place_order(places, "stop", "test", time.time(), "to go on another way")
        driver.wait_for(lambda: has(flow, Stopped, epoch) and not flow.list_running())
        wait_until(lambda: not driver.is_alive(), driver.read_output)
        assert driver.code == 0, driver.read_output()
