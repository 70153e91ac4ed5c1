"""One query of an epoch: started, looked at, ended after its batch."""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from airflow_dagsched.spark.files.store import name_local
from airflow_dagsched.spark.stream_driver.batch_gate import BatchGate, GateClosed
from airflow_dagsched.spark.stream_driver.progress import Tally
from airflow_dagsched.spark.streams.sink import StreamRefused

log = logging.getLogger(__name__)


class RunningQuery:
    """A query of Spark's, from its start on.

    :param gate: its sink.
    :param tally: of what it tells of its batches.
    """

    def __init__(self, step: str, gate: BatchGate, query: StreamingQuery, tally: Tally) -> None:
        self.step = step
        self.gate = gate
        self.tally = tally
        self.query = query

    @property
    def is_over(self) -> bool:
        """Whether it runs no more, for whatever reason."""
        # One that Spark has stopped to wait for is told as ended, though its batch is in the sink.
        return not self.query.isActive and not self.gate.busy

    def has_work(self) -> bool:
        """Whether there are rows that it has not brought to the sink."""
        return self.gate.busy or (not self.is_over and bool(self.query.status["isDataAvailable"]))

    def look(self) -> None:
        """Note what it tells of the batches since the last look."""
        last = self.query.lastProgress
        if last is None:
            return
        # Each that Spark keeps is a call to Java: they are asked for where one would be passed over.
        missed = self.query.recentProgress if last["batchId"] > self.tally.batch + 1 else ()
        for progress in (*missed, last):
            self.tally.add(progress)

    def end_between_batches(self) -> None:
        """End it if no batch runs: else it is asked again, or the gate ends it before the next one."""
        status: dict[str, Any] = self.query.status
        # Spark is at work on a batch before its rows come to the sink, and after: it writes down that it is done.
        if not self.gate.busy and not status["isTriggerActive"]:
            self.stop()

    def stop(self) -> None:
        """End it now, or when its batch comes back to Spark: that is run again when it is started the next time."""
        with suppress(Exception):
            self.query.stop()

    def find_error(self) -> BaseException | None:
        """What ended it; None: it runs, or was ended by us."""
        error = self.gate.error or (self.query.exception() if self.is_over else None)
        return None if error is None or _is_of_gate(error) or _is_handed_over(error) else error


def start_query(
    step: str, rows: DataFrame, gate: BatchGate, checkpoint: Path, trigger_s: float, tally: Tally
) -> RunningQuery:
    """Start the query that writes ``rows`` of a step."""
    writer = rows.writeStream.queryName(step).option("checkpointLocation", name_local(checkpoint)).outputMode("append")
    writer = writer.trigger(processingTime=f"{round(trigger_s * 1000)} milliseconds")
    return RunningQuery(step, gate, writer.foreachBatch(gate).start(), tally)


def _is_handed_over(error: BaseException) -> bool:
    """Whether the batch comes behind the one whose state became the next graph's, which reads its rows."""
    return isinstance(error, StreamRefused) and error.reason == "handed over"


def _is_of_gate(error: BaseException) -> bool:
    return isinstance(error, GateClosed) or GateClosed.__name__ in str(error)
