"""A running stream is changed for another while its driver, a real ``spark-submit``, is killed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from airflow_dagsched.spark.streams.prepared_checkpoint import BATCHES, read_prepared
from airflow_dagsched.switch.checking.check_log import check_log
from airflow_dagsched.switch.places import EpochPlaces
from airflow_dagsched.switch.records import Current, Drained, Epoch, Fence, Stopped
from tests.streams.kit import QUERY, Feed, Flow, Graph, wait_until
from tests.streams.rows import NO_DIFFERENCE, Rows, compare, read_table, sum_windows

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def sum_some(clicks: Any) -> Any:
    """A filter that Spark moves below the watermark, if it can: the old graph alone has it."""
    from pyspark.sql.functions import col, count, sum, window  # noqa: A004

    sums = (count("*").alias("rows"), sum("clicks").alias("clicks"), sum("amount").alias("amount"))
    return clicks.where(col("user") != "user 0").groupBy(window("ts", "10 seconds"), "user").agg(*sums)


def sum_threefold(clicks: Any) -> Any:
    """Another aggregate: state of the old one would be of no use."""
    from pyspark.sql.functions import col, count, sum, window  # noqa: A004

    sums = (count("*").alias("rows"), sum(col("clicks") * 3).alias("clicks"), sum("amount").alias("amount"))
    return clicks.groupBy(window("ts", "10 seconds"), "user").agg(*sums)


OLD, NEW = Graph("first", sum_some), Graph("second", sum_threefold, partitions=3)


def test_a_driver_of_both_that_is_killed_behind_the_fence_is_started_again_for_both(tmp_path: Path):
    flow = Flow(tmp_path)
    feed = Feed(flow, Rows())
    old = flow.ask(OLD)
    with flow.run(old) as driver:
        driver.wait_for(feed.until(lambda: len(flow.list_batches(1)) >= 3))
        new = flow.ask(NEW)
        driver.wait_for(feed.until(lambda: bool(find_fences(flow))))
    # The old graph may end before the lease of the new one's dead driver does: who follows the new one starts it then.
    end_switch(flow, feed, [new] if has(flow, Drained, epoch=1) else [old, new])
    check_table(flow, feed)
    check_begin(flow, new)


def end_switch(flow: Flow, feed: Feed, epochs: Sequence[EpochPlaces]) -> None:
    """Start drivers, one when the one before has ended, until the new graph is the owner."""
    for places in epochs:
        with flow.run(places) as driver:
            wait_until(feed.until(lambda: is_over(flow) or not driver.is_alive()), driver.read_output)
            assert driver.stop() == 0 if driver.is_alive() else driver.code == 0
        if is_over(flow):
            return
    raise AssertionError("the new graph has not taken over")


def check_begin(flow: Flow, new: EpochPlaces) -> None:
    """The new graph read nothing that the old one had read before it was asked for, and took the numbers of what ran
    over nothing.
    """
    [asked] = [each for each in flow.read() if isinstance(each, Epoch) and each.epoch == 2]
    assert asked.start is not None
    assert read_prepared(new.name_checkpoint(QUERY)) == asked.start
    begun = flow.list_batches(2)[: BATCHES + 1]
    assert [(each.batch, each.rows, each.x_begin) for each in begun] == [(at, 0, asked.start) for at in range(3)]


def check_table(flow: Flow, feed: Feed) -> None:
    """Each window is there once, as the graph that owns it computes it."""
    assert has(flow, Stopped, epoch=1)
    assert check_log(flow.places.log).violations == ()
    [fence] = find_fences(flow)
    old = sum_windows(feed.given, 10, upto=fence, keep=lambda row: row.user != "user 0")
    new = sum_windows(feed.given, 10, after=fence, upto=flow.find_watermark(2))
    threefold = {key: sums._replace(clicks=sums.clicks * 3) for key, sums in new.items()}
    assert old
    assert new
    assert compare({**old, **threefold}, read_table(flow.table)) == NO_DIFFERENCE


def is_over(flow: Flow) -> bool:
    """Whether the new graph is the owner, and has emitted some windows."""
    return has(flow, Current, epoch=2) and flow.find_watermark(2) >= find_fences(flow)[0] + 30


def has(flow: Flow, kind: type, epoch: int) -> bool:
    return any(isinstance(each, kind) and each.epoch == epoch for each in flow.read())


def find_fences(flow: Flow) -> list[float]:
    return [each.upto for each in flow.read() if isinstance(each, Fence)]
