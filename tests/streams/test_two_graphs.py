"""A running stream is changed for another: in an application of its own, in its turn, or in the other's place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from airflow_dagsched.launch.streams.settings import StreamSettings
from airflow_dagsched.switch.records import Batch, Drained, Started, Stopped
from tests.streams.kit import Feed, Flow, Graph
from tests.streams.rows import Rows
from tests.streams.test_switch import check_table, find_fences, is_over, sum_some, sum_threefold

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ONE_CORE = {"spark.master": "local[1]"}
OLD = Graph("first", sum_some, conf=ONE_CORE)
NEW = Graph("second", sum_threefold, partitions=3, conf=ONE_CORE)


def test_two_applications_on_one_log_are_both_killed_behind_the_fence_and_go_on(tmp_path: Path):
    flow = Flow(tmp_path)
    feed = Feed(flow, Rows())
    old = flow.ask(OLD)
    with flow.run(old) as first:
        first.wait_for(feed.until(lambda: len(flow.list_batches(1)) >= 3))
        new = flow.ask(replace(NEW, conf={**ONE_CORE, "spark.driver.memory": "650m"}))
        with flow.pause(new, "fenced"), flow.run(new) as second:
            second.wait_for(feed.until(lambda: bool(find_fences(flow))))
            second.kill()
            first.kill()
    with flow.run(old) as first, flow.run(new) as second:
        second.wait_for(feed.until(lambda: is_over(flow)))
        second.wait_for(lambda: not first.is_alive())
        assert (first.code, second.stop()) == (0, 0)
    check_table(flow, feed)


def test_in_order_of_windows_no_later_one_overtakes_an_earlier_one(tmp_path: Path):
    """The new graph has its first windows, and waits with them in its batch while the old one works."""
    flow = Flow(tmp_path)
    feed = Feed(flow, Rows())
    in_order = StreamSettings(10.0, 5.0, 0.2, order="window")
    old = flow.ask(OLD)
    with flow.run(old) as driver:
        driver.wait_for(feed.until(lambda: len(flow.list_batches(1)) >= 3))
        new = flow.ask(replace(NEW, settings=in_order))
        with flow.pause(new, "fenced"):
            driver.wait_for(feed.until(lambda: bool(find_fences(flow))))
            behind = find_fences(flow)[0] + 20
            driver.wait_for(feed.until(lambda: flow.find_watermark(1) >= behind, readers=[1]))
            assert flow.find_watermark(2) < behind
        driver.wait_for(feed.until(lambda: is_over(flow)))
        assert driver.stop() == 0
    records = flow.read()
    drained = next(each.n for each in records if isinstance(each, Drained))
    kept = [each.n for each in records if isinstance(each, Batch) and each.epoch == 2 and each.kept]
    assert drained < min(kept)
    check_table(flow, feed)


def test_with_room_for_one_graph_the_new_one_starts_where_the_old_one_was(tmp_path: Path):
    """In its application, which nobody else starts meanwhile, at the offsets that were recorded before the fence."""
    flow = Flow(tmp_path)
    feed = Feed(flow, Rows())
    old = flow.ask(OLD)
    with flow.run(old) as driver:
        driver.wait_for(feed.until(lambda: len(flow.list_batches(1)) >= 3))
        flow.ask(replace(NEW, settings=StreamSettings(10.0, 5.0, 0.2, overlap="sequential")))
        driver.wait_for(feed.until(lambda: is_over(flow)))
        assert driver.stop() == 0
    stopped = next(each.n for each in flow.read() if isinstance(each, Stopped) and each.epoch == 1)
    first, second = (each for each in flow.read() if isinstance(each, Started))
    assert (second.epoch, second.application) == (2, first.application)
    assert stopped < second.n
    check_table(flow, feed)
