"""Rows come to graphs by inboxes, which a service of its own fills: real ``spark-submit`` of both."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_dagsched.launch.streams.settings import StreamSettings
from airflow_dagsched.switch.checking.check_log import check_log
from airflow_dagsched.switch.log.inbox_log import InboxLog
from airflow_dagsched.switch.records import Current, Stopped
from tests.streams.kit import SOURCE, Feed, Flow, Graph
from tests.streams.rows import NO_DIFFERENCE, Rows, compare, read_table, sum_windows
from tests.streams.test_switch import find_fences, has, sum_threefold

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SETTINGS = StreamSettings(10.0, 5.0, 0.5, channel="inbox")
ONE = {"spark.master": "local[1]"}
OLD = Graph("first", settings=SETTINGS, conf=ONE)
NEW = Graph("second", sum_threefold, partitions=3, settings=SETTINGS, conf=ONE)


def test_a_switch_through_an_inbox_whose_service_is_killed(tmp_path: Path):
    flow = Flow(tmp_path)
    feed = Feed(flow, Rows())
    old = flow.ask(OLD)
    with flow.run(old) as driver:
        with flow.run(flow.places.inbox_service):
            driver.wait_for(fed(flow, feed, lambda: flow.find_watermark(1) > 0))
        flow.ask(NEW)
        with flow.run(flow.places.inbox_service) as service:
            driver.wait_for(fed(flow, feed, lambda: is_over(flow)))
            assert service.is_alive(), service.read_output()
        assert driver.stop() == 0
    check_table(flow, feed)


def fed(flow: Flow, feed: Feed, is_reached: Callable[[], bool]) -> Callable[[], bool]:
    """What a driver is waited for with: the new graph has no rows before the fence, so nobody waits for it."""

    def is_over() -> bool:
        feed.go_on([2] if has(flow, Current, epoch=2) else [1])
        return is_reached()

    return is_over


def is_over(flow: Flow) -> bool:
    """Whether the new graph is the owner, and has emitted some windows."""
    return has(flow, Current, epoch=2) and flow.find_watermark(2) >= find_fences(flow)[0] + 30


def check_table(flow: Flow, feed: Feed) -> None:
    """Each window is there once, as the graph that owns it computes it; late rows are counted."""
    assert has(flow, Stopped, epoch=1)
    assert check_log(flow.places.log).violations == ()
    [fence] = find_fences(flow)
    old = sum_windows(feed.given, 10, upto=fence)
    new = sum_windows(feed.given, 10, after=fence, upto=flow.find_watermark(2))
    threefold = {key: sums._replace(clicks=sums.clicks * 3) for key, sums in new.items()}
    assert old
    assert new
    assert compare({**old, **threefold}, read_table(flow.table)) == NO_DIFFERENCE
    inbox = InboxLog(flow.places.name_inbox(SOURCE).log)
    inbox.read()
    assert inbox.story.hold is not None
    assert set(inbox.story.dead) <= {"late", "passed"}
