"""A graph that waits for a person's word, compared with the one that runs, in a real ``spark-submit``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from airflow_dagsched.launch.streams.settings import StreamSettings
from airflow_dagsched.switch.checking.check_log import check_log
from airflow_dagsched.switch.comparing.flow_comparison import Comparison, compare_flow
from airflow_dagsched.switch.log.signs_files import place_order, read_sign
from airflow_dagsched.switch.reasons import Reason
from airflow_dagsched.switch.records import Current, Fence
from tests.streams.kit import Feed, Flow, Graph
from tests.streams.rows import SECOND, Rows, sum_windows

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def sum_all_but_one(clicks: Any) -> Any:
    from pyspark.sql.functions import col, count, sum, window  # noqa: A004

    sums = (count("*").alias("rows"), sum("clicks").alias("clicks"), sum("amount").alias("amount"))
    return clicks.where(col("user") != "user 0").groupBy(window("ts", "10 seconds"), "user").agg(*sums)


OLD = Graph("first")
NEW = Graph("second", sum_all_but_one, settings=StreamSettings(10.0, 5.0, 0.2, confirm="manual"))


def test_windows_that_differ_are_told_until_a_person_confirms(tmp_path: Path):
    flow = Flow(tmp_path)
    feed = Feed(flow, Rows())
    with flow.run(flow.ask(OLD)) as driver:
        driver.wait_for(feed.until(lambda: len(flow.list_batches(1)) >= 3))
        new = flow.ask(NEW)
        driver.wait_for(feed.until(lambda: count_compared(flow) >= 5))
        (found,) = compare(flow)
        assert found.upto is not None
        sums = sum_windows(feed.given, 10, after=found.after, upto=found.upto)
        ends = {end / SECOND for end, _ in sums}
        unlike = {end / SECOND for end, user in sums if user == "user 0"}
        assert {each.window for each in found.differences} == unlike
        assert found.same == len(ends - unlike)
        assert not any(isinstance(each, Fence) for each in flow.read())
        sign = read_sign(new)
        assert sign is not None
        assert sign.behind_rows is not None
        assert 0 <= sign.behind_rows < len(feed.given)
        place_order(new, "confirm", "ann", time.time(), "")
        driver.wait_for(feed.until(lambda: any(isinstance(each, Current) and each.epoch == 2 for each in flow.read())))
        assert driver.stop() == 0
    assert check_log(flow.places.log).violations == ()
    read = [each.x_read for each in flow.list_batches(1)]
    assert read == sorted(read)
    assert 0 < read[-1] <= len(feed.given)


def compare(flow: Flow) -> tuple[Comparison, ...]:
    found = compare_flow(flow.places.folder)
    assert isinstance(found, tuple)
    return found


def count_compared(flow: Flow) -> int:
    found = compare_flow(flow.places.folder)
    # Until the new graph's first batch there is nothing to compare.
    return 0 if isinstance(found, Reason) else sum(each.same + len(each.differences) for each in found)
