"""What a query has told of its batches, however many there were between two looks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from airflow_dagsched.spark.stream_driver.batch_gate import BatchGate
from airflow_dagsched.spark.stream_driver.progress import Tally, read_counts
from airflow_dagsched.spark.stream_driver.running_query import RunningQuery
from airflow_dagsched.spark.streams.sink import RowCounts, StreamRefused
from airflow_dagsched.spark.streams.sources import MICROS, name_read, name_taken
from tests.switch.drawn import FIRST, make_batch, tell


def tell_batch(number: int, newest_s: int) -> dict[str, Any]:
    """As Spark tells of a batch that drops two late rows."""
    return {
        "batchId": number,
        "numInputRows": 10,
        "stateOperators": [{"numRowsDroppedByWatermark": 2, "numRowsTotal": 1, "memoryUsedBytes": 1}],
        "processedRowsPerSecond": 1.0,
        "durationMs": {},
        "eventTime": {},
        "observedMetrics": {name_read("clicks"): {"newest": newest_s * MICROS, "rows": 10}},
    }


@dataclass
class ToldQuery:
    """The side of Spark's query that is looked at."""

    recentProgress: list[dict[str, Any]] = field(default_factory=list)  # noqa: N815 - Spark's name

    isActive: bool = False  # noqa: N815 - Spark's name

    @property
    def lastProgress(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name
        return self.recentProgress[-1] if self.recentProgress else None


def test_each_batch_counts_once_also_where_several_ended_between_two_looks():
    told = ToldQuery()
    query = RunningQuery("by_user", None, told, Tally())  # type: ignore[arg-type]
    query.look()
    assert query.tally.batch == -1
    # The newest row is not in the last batch.
    told.recentProgress += [tell_batch(4, 10), tell_batch(5, 70), tell_batch(6, 20)]
    query.look()
    query.look()
    told.recentProgress.append(tell_batch(7, 30))
    query.look()
    expected = (7, RowCounts(late=8, read=40), {"clicks": 70.0})
    assert (query.tally.batch, query.tally.counts, query.tally.newest) == expected


def test_a_query_is_over_when_its_batch_has_come_back():
    """Spark tells one as ended that it has stopped to wait for."""
    gate = BatchGate("by_user", None, lambda *batch: None)  # type: ignore[arg-type]
    query = RunningQuery("by_user", gate, ToldQuery(), Tally())  # type: ignore[arg-type]
    gate.busy = True
    assert not query.is_over
    gate.busy = False
    assert query.is_over


def test_a_batch_behind_the_state_that_was_handed_on_is_no_failure():
    """Its rows are the next graph's."""
    gate = BatchGate("by_user", None, lambda *batch: None)  # type: ignore[arg-type]
    query = RunningQuery("by_user", gate, ToldQuery(), Tally())  # type: ignore[arg-type]
    gate.error = StreamRefused(1, "by_user", 7, "handed over")
    assert query.find_error() is None
    gate.error = StreamRefused(1, "by_user", 7, "aborted")
    assert query.find_error() is gate.error


def test_what_was_counted_goes_on_from_what_the_log_has():
    story = tell(*FIRST[:2], make_batch(1, 0, x_late=3, x_ahead=2, x_nulls=1, x_read=5))
    tally = Tally(read_counts(story.epochs[1], "out"))
    told = tell_batch(1, 10)
    told["observedMetrics"][name_taken("clicks")] = {"rows": 17, "timed": 13}
    tally.add(told)
    tally.add(told)
    assert tally.counts == RowCounts(5, 5, 5, 15)
    assert read_counts(story.epochs[1], "other") == RowCounts()
