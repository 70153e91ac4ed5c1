"""A graph goes on with a real state of the one before it, in one application: here, without the processes."""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_dagsched.launch.secrecy.masking import Masking
from airflow_dagsched.launch.streams.settings import StreamSettings
from airflow_dagsched.spark.session.private_fields import read_private
from airflow_dagsched.spark.session.worker_monitors import NAME, end_needless_monitors
from airflow_dagsched.spark.stream_driver.application import StreamApplication
from airflow_dagsched.spark.stream_driver.epoch_lease import EpochLease
from airflow_dagsched.spark.stream_driver.epoch_run import EpochRun
from airflow_dagsched.spark.stream_driver.graphs.accepted_epoch import accept_epoch, find_epoch
from airflow_dagsched.switch.checking.check_log import check_log
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.records import Aborted, Fence, Stopped
from tests.spark.test_query_listeners import count_buses
from tests.streams.kit import QUERY, STEP, Feed, Flow, Graph, wait_until
from tests.streams.rows import NO_DIFFERENCE, Rows, compare, read_table
from tests.streams.totals import SUMS, make_totals, total_windows

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CARRY = StreamSettings(10.0, 5.0, 0.2, channel="carry")
OLD = Graph("first", make_totals(), settings=CARRY, partitions=1, carries=("total", "open"))


class Running:
    """A flow whose graphs run in this process."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.flow = Flow(folder)
        self.feed = Feed(self.flow, Rows())
        places = self.flow.ask(OLD)
        log = FlowLog(self.flow.places.log)
        log.read()
        first = accept_epoch(self.flow.places, find_epoch(log.story, places.folder), Masking())
        self.application = StreamApplication(spark, first)
        self.application.begin(first, EpochLease(first))

    def look_for_remains(self, epoch: int, listeners: int) -> None:
        """Whether nothing is left but the epoch, and no more who listen to the application."""
        wait_until(lambda: list_kept(self.spark) == [epoch], lambda: f"{list_kept(self.spark)}")
        # A query that has just begun may have none of its own yet.
        assert 1 <= count_buses(self.spark) <= listeners
        # Of the graph that runs: the application ends them when it has ended.
        end_needless_monitors(self.spark)
        pools = read_private(self.spark._jvm.org.apache.spark.SparkEnv.get(), "pythonWorkers").size()
        wait_until(lambda: count_monitors(self.spark) == pools, lambda: f"{count_monitors(self.spark)} of {pools}")

    def until(self, is_reached: Callable[[], bool]) -> None:
        """Rows come and the application looks, as often as it takes."""

        def is_over() -> bool:
            self.application.step()
            assert not self.application.is_over, self.flow.read()[-1]
            self.feed.go_on()
            return is_reached()

        wait_until(is_over, lambda: str(self.flow.records[-3:]))

    def find(self, kind: type) -> list:
        return [each for each in self.flow.read() if isinstance(each, kind)]


@pytest.fixture
def running(spark: SparkSession, tmp_path: Path) -> Iterator[Running]:
    made = Running(spark, tmp_path)
    yield made
    made.application.halt_all(time.time())
    wait_until(lambda: made.application.step() or made.application.is_over, str)
    made.application.close()


def test_totals_go_on_in_the_next_graph_and_what_does_not_fit_is_not_noticed(
    running: Running, caplog: pytest.LogCaptureFixture
):
    # Pytest keeps every record, and with the error of a closed gate all that its frames have: the epoch that ended.
    caplog.set_level(logging.CRITICAL + 1, logger="py4j.clientserver")
    flow = running.flow
    running.until(lambda: len(flow.list_batches(1)) >= 3)
    listeners = count_buses(running.spark)
    flow.ask(replace(OLD, code="another", sums=make_totals(fields=SUMS.replace("clicks bigint", "clicks int"))))
    running.until(lambda: bool(running.find(Aborted)))
    [another] = running.find(Aborted)
    assert f"step '{STEP}': carries='total': it has struct<rows:bigint,clicks:bigint" in another.reason
    assert not running.find(Stopped)
    new = flow.ask(replace(OLD, code="second", partitions=2))
    running.until(lambda: bool(running.find(Fence)))
    [fence] = running.find(Fence)
    running.until(lambda: flow.find_watermark(3) >= fence.upto + 30)
    assert (new.name_query(QUERY) / "carried" / "rows").is_dir()
    assert not (new.name_query(QUERY) / "rehearsal").exists()
    assert check_log(flow.places.log).violations == ()
    expected = total_windows(running.feed.given, flow.find_watermark(3))
    assert compare(expected, read_table(flow.table)) == NO_DIFFERENCE
    running.look_for_remains(3, listeners)
    flow.ask(replace(OLD, code="third"))
    running.until(lambda: len(running.find(Stopped)) == 2)
    running.look_for_remains(4, listeners)


def count_monitors(spark: SparkSession) -> int:
    """Threads for processes of Python functions: one for each pool of them, and needless ones."""
    threads = list(spark._jvm.java.lang.Thread.getAllStackTraces().keySet())
    return sum(each.getName().startswith(NAME) for each in threads)


def list_kept(spark: SparkSession) -> list[int]:
    """Epochs that Python has anything of, once both sides have let go of what the other has."""
    gc.collect()
    spark.sparkContext._jvm.System.gc()
    return sorted(each.epoch.number for each in gc.get_objects() if isinstance(each, EpochRun))
