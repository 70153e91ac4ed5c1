"""A running total goes on in the next graph: the table is that of one graph which has read all rows, each once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from airflow_dagsched.launch.streams.settings import StreamSettings
from airflow_dagsched.switch.checking.check_log import check_log
from tests.streams.kit import Feed, Flow, Graph
from tests.streams.rows import NO_DIFFERENCE, Rows, compare, read_table
from tests.streams.test_switch import find_fences, is_over
from tests.streams.totals import make_totals, total_windows

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CARRY = StreamSettings(10.0, 5.0, 0.2, channel="carry")
OLD = Graph("first", make_totals(), settings=CARRY, partitions=1, carries=("total", "open"))
NEW = replace(OLD, code="second", partitions=2)


def check_totals(flow: Flow, feed: Feed) -> None:
    assert check_log(flow.places.log).violations == ()
    expected = total_windows(feed.given, flow.find_watermark(2))
    assert max(end for end, _ in expected) / 1e6 > find_fences(flow)[0]
    assert compare(expected, read_table(flow.table)) == NO_DIFFERENCE


def test_a_running_total_goes_on(tmp_path: Path):
    flow = Flow(tmp_path)
    feed = Feed(flow, Rows())
    old = flow.ask(OLD)
    with flow.run(old) as driver:
        driver.wait_for(feed.until(lambda: len(flow.list_batches(1)) >= 3))
        flow.ask(NEW)
        driver.wait_for(feed.until(lambda: is_over(flow)))
        assert driver.stop() == 0
    check_totals(flow, feed)


def test_both_are_killed_behind_the_fence_and_it_goes_on(tmp_path: Path):
    """Whoever follows the new graph starts it again: its application runs the old one once more if Spark has still to
    commit what that had recorded.
    """
    flow = Flow(tmp_path)
    feed = Feed(flow, Rows())
    old = flow.ask(OLD)
    with flow.run(old) as driver:
        driver.wait_for(feed.until(lambda: len(flow.list_batches(1)) >= 3))
        new = flow.ask(NEW)
        driver.wait_for(feed.until(lambda: bool(find_fences(flow))))
    with flow.run(new) as driver:
        driver.wait_for(feed.until(lambda: is_over(flow)))
        assert driver.stop() == 0
    check_totals(flow, feed)
