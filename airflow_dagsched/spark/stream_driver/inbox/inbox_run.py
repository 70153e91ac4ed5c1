"""The queries that route, one for each source: begun, looked after and ended as an epoch's."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from airflow_dagsched.launch.protocol.wire import Unreadable, load_json
from airflow_dagsched.launch.streams.manifest import SourceSpec
from airflow_dagsched.spark.files.store import LocalStore
from airflow_dagsched.spark.session.sessions import set_session
from airflow_dagsched.spark.stream_driver.batch_gate import BatchGate
from airflow_dagsched.spark.stream_driver.epoch_lease import EpochLease
from airflow_dagsched.spark.stream_driver.epoch_run import EpochRun
from airflow_dagsched.spark.stream_driver.graphs.accepted_epoch import AcceptedEpoch
from airflow_dagsched.spark.stream_driver.graphs.graph import Graph
from airflow_dagsched.spark.stream_driver.progress import Tally
from airflow_dagsched.spark.stream_driver.running_query import start_query
from airflow_dagsched.spark.streams.inbox.inbox_reader import write_schema
from airflow_dagsched.spark.streams.inbox.inbox_sink import InboxSink
from airflow_dagsched.spark.streams.inbox.inbox_writer import WRITING, InboxWriter
from airflow_dagsched.switch.advising.behind import NOT_BEHIND, Behind
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.log.inbox_log import InboxLog
from airflow_dagsched.switch.signs import Sign


class InboxRun(EpochRun):
    """Starts, shows and ends what routes."""

    def __init__(self, main: SparkSession, epoch: AcceptedEpoch, lease: EpochLease) -> None:
        # Read on by whoever looks every second; each sink has its own.
        self._inboxes = tuple(InboxLog(epoch.flow.name_inbox(each.name).log) for each in epoch.manifest.sources)
        super().__init__(main, epoch, lease)
        set_session(self.session, WRITING)

    def begin_queries(self) -> None:
        """Call the steps of the sources, start a query for each; nothing of it is in the flow's log."""
        sources = {each.name: each for each in self.epoch.manifest.sources}
        for name, rows in Graph(self.session, self.epoch).read_sources().items():
            write_schema(self.epoch.flow.name_inbox(name), rows.schema)
            self._start_routing(sources[name], rows)

    def _start_routing(self, source: SourceSpec, rows: DataFrame) -> None:
        sink = self._make_sink(source)
        # What an earlier driver has entered is the inbox's, so its moves come first.
        sink.finish()
        gate = BatchGate(source.name, self.session, sink.take)
        checkpoint = self.epoch.places.name_checkpoint(source.name)
        trigger_s = self.epoch.manifest.settings.trigger_s
        self._queries.append(start_query(source.name, rows, gate, checkpoint, trigger_s, Tally()))

    def _make_sink(self, source: SourceSpec) -> InboxSink:
        flow, store = self.epoch.flow, LocalStore()
        ahead_s = self.epoch.manifest.settings.max_ahead_s
        return InboxSink(
            flow=FlowLog(flow.log),
            source=source.name,
            boxes={each.name: flow.name_inbox(each.name) for each in self.epoch.manifest.sources},
            store=store,
            writer=InboxWriter(self.session, store, source.event_time, ahead_s),
            lateness=partial(self._find_lateness, FlowLog(flow.log)),
            check=self.check,
        )

    def _find_lateness(self, log: FlowLog) -> float:
        """The longest of all graphs that read, in seconds: a row is late only if it is for each."""
        log.read()
        living = [each.record.x_folder for each in log.story.epochs.values() if not each.has_ended]
        found = [_read_lateness(self.epoch.flow.name_epoch(each).manifest) for each in living]
        return max((self.epoch.manifest.settings.lateness_s, *found))

    def look(self, now: float) -> None:
        """End it where nobody reads what it routes."""
        super().look(now)
        self._log.read()
        if not self._log.story.reads_inbox:
            self.halt(now)

    def count_recorded(self) -> int:
        """Batches that have an entry."""
        return sum(each.story.batch + 1 for each in self._read_inboxes())

    def make_sign(self, now: float, waits_for: str, behind: Behind = NOT_BEHIND) -> Sign:
        """Its sign of life, with what no graph takes."""
        dead: Counter[str] = Counter()
        for each in self._read_inboxes():
            dead.update(each.story.dead)
        ahead, nulls = dead["ahead"], dead["no time"]
        return replace(
            super().make_sign(now, waits_for, behind), late=dead.total() - ahead - nulls, ahead=ahead, nulls=nulls
        )

    def _read_inboxes(self) -> tuple[InboxLog, ...]:
        """The log of each source's, read to its end."""
        for each in self._inboxes:
            each.read()
        return self._inboxes


def _read_lateness(manifest: Path) -> float:
    """That a graph's manifest says; 0 if it is gone."""
    try:
        return float(load_json(manifest.read_text("utf-8"))["settings"]["lateness_s"])
    except (OSError, Unreadable, KeyError, TypeError):
        return 0.0
