"""One epoch in this application: its queries in a session of their own, from their start to the end of their batch."""

from __future__ import annotations

import os
import socket

from pyspark.sql import DataFrame, SparkSession

from airflow_dagsched.launch.protocol.events import Failure
from airflow_dagsched.launch.protocol.tables import Table
from airflow_dagsched.spark.driver.failures import describe_failure, find_culprit, read_text
from airflow_dagsched.spark.driver.launch_secrets import Refused
from airflow_dagsched.spark.session.query_listeners import stop_listening
from airflow_dagsched.spark.session.sessions import open_session
from airflow_dagsched.spark.steps.call_step import StepFault
from airflow_dagsched.spark.stream_driver.batch_gate import BatchGate
from airflow_dagsched.spark.stream_driver.epoch_lease import EpochLease
from airflow_dagsched.spark.stream_driver.executors import list_hosts
from airflow_dagsched.spark.stream_driver.graphs.accepted_epoch import AcceptedEpoch
from airflow_dagsched.spark.stream_driver.graphs.carried_queries import (
    build_first,
    has_state,
    rehearse_queries,
    take_over_queries,
)
from airflow_dagsched.spark.stream_driver.graphs.graph import Graph, QueryRows, StepFailed
from airflow_dagsched.spark.stream_driver.graphs.preparing import limit_sources, prepare_queries
from airflow_dagsched.spark.stream_driver.progress import Tally, add_rates, merge_newest, read_counts
from airflow_dagsched.spark.stream_driver.running_query import RunningQuery, start_query
from airflow_dagsched.spark.stream_driver.sinks import make_sink, open_target
from airflow_dagsched.spark.streams.inbox.inbox_reader import await_schema
from airflow_dagsched.spark.streams.mover import finish_moves
from airflow_dagsched.spark.streams.sink import Target
from airflow_dagsched.spark.streams.sources import SETTINGS
from airflow_dagsched.spark.streams.targets import find_mismatch
from airflow_dagsched.switch.advising.behind import NOT_BEHIND, Behind
from airflow_dagsched.switch.fold import find_broken_rule
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.log.signs_files import read_follower
from airflow_dagsched.switch.records import Record, Started
from airflow_dagsched.switch.signs import Ended, Phase, Sign
from airflow_dagsched.switch.story import Story, awaits_state


class EpochRun:
    """Starts, shows and ends the queries of one epoch."""

    def __init__(self, main: SparkSession, epoch: AcceptedEpoch, lease: EpochLease) -> None:
        self._main = main
        self.epoch = epoch
        self.lease = lease
        self.failure: Failure | None = None
        self.guilty = ""
        """The step whose failure it is."""
        self.is_stuck = False
        """Whether a batch of it does not come back: nothing but the end of the program ends it."""
        self._awaits_state = False
        """Whether its queries are still to start, with what the graph before it hands on."""
        self._is_ready = False
        """Whether all that can be done before that is done."""
        self._queries: list[RunningQuery] = []
        self._targets: list[Target] = []
        self._halted_at: float | None = None
        """Seconds since 1970; None: it is to run."""
        self._log = FlowLog(epoch.flow.log)
        self._recorded_before = self.count_recorded()
        self._is_torn = False
        """Whether batches are not waited for any more."""
        self.session = open_session(main, {**epoch.manifest.session, **SETTINGS})

    # --- begin

    def start(self) -> None:
        """Begin its queries, or wait for what they begin with. What fails is in ``failure`` then, and nothing runs."""
        try:
            self._awaits_state = awaits_state(self._log.story, self.epoch.record)
            if self._awaits_state:
                self._get_ready()
            else:
                self.begin_queries()
        except StepFailed as failed:
            self._fail(failed.__cause__ or failed, failed.step)
        except Exception as error:  # noqa: BLE001 - whatever it is, it ends this epoch alone
            self._fail(error, "")
        if self.failure is not None:
            self._stop_now()

    def _get_ready(self) -> None:
        """Before there is no way back: see whether the old graph's state can be its own. Raises what is in the way."""
        story = self._log.story
        is_handed = story.epochs[self.epoch.number].into is not None
        if self._is_ready or not (is_handed or has_state(self.epoch, story)):
            return
        if not is_handed:
            for each in rehearse_queries(self._main, self.epoch, story, self._check_begin):
                if each.query.writes is not None:
                    self._refuse_mismatch(each.query.step, each.query.writes, each.rows)
        self._is_ready = True

    def begin_queries(self) -> None:
        """Call the steps, start the queries, say so in the log. Raises what fails."""
        for each in self.epoch.manifest.sources if self.epoch.record.channel == "inbox" else ():
            await_schema(self.epoch.flow.name_inbox(each.name), self._check_begin)
        written = self._build()
        # A pool each: two graphs share the cores, whichever has more tasks.
        self.session.sparkContext.setLocalProperty("spark.scheduler.pool", f"epoch-{self.epoch.number}")
        for query in written:
            self._queries.append(self._start_query(query))
        self._record_start()

    def _build(self) -> tuple[QueryRows, ...]:
        story, record = self._log.story, self.epoch.record
        sources = limit_sources(self.epoch, story)
        if record.channel != "carry":
            prepare_queries(self._main, self.epoch, story, self._check_begin)
            return Graph(self.session, self.epoch, sources).build()
        if record.x_after == 0:
            return build_first(self.session, self.epoch, sources)
        return take_over_queries(self._main, self.session, self.epoch, sources, story, self._check_begin)

    def _start_query(self, written: QueryRows) -> RunningQuery:
        query, target = written.query, open_target(self.session, self.epoch, written.query, written.windows)
        tally = Tally(read_counts(self._log.story.epochs[self.epoch.number], query.step))
        sink = make_sink(self.session, self.epoch, written, target, self.check, lambda: tally.counts)
        # What an earlier driver has recorded is the table's, so its moves come first. A function, which may take as
        # long as it likes, is called within batches: Spark repeats the one that it did not return from.
        if query.writes is not None:
            sink.finish()
            self._refuse_mismatch(query.step, query.writes, written.rows)
        self._targets.append(target)
        gate = BatchGate(query.step, self.session, sink.take)
        checkpoint = self.epoch.places.name_checkpoint(query.step)
        # Read as the query starts: each has its own.
        self.session.conf.set("spark.sql.shuffle.partitions", str(query.partitions))
        return start_query(query.step, written.rows, gate, checkpoint, self.epoch.manifest.settings.trigger_s, tally)

    def _refuse_mismatch(self, step: str, table: Table, rows: DataFrame) -> None:
        """Raises ``StepFailed`` for columns that are of other types in the table: before the graph owns any window."""
        mismatch = find_mismatch(self.session, table, rows.schema)
        if mismatch:
            raise StepFailed(step) from StepFault(mismatch)

    def _check_begin(self) -> None:
        """Raises what keeps the epoch from being begun: until it has, nobody but this can end it."""
        self.lease.check()
        self._log.read()
        if self._log.story.epochs[self.epoch.number].aborted is not None:
            raise Refused(f"epoch {self.epoch.number} was given up before its queries ran")

    def _record_start(self) -> None:
        """Until then no batch is taken. Raises ``Refused`` where the epoch may run no more."""
        if self._log.append(self._make_started) is None:
            story = self._log.story
            broken = find_broken_rule(story, self._describe_start(story.last + 1, 0.0))
            raise Refused(f"epoch {self.epoch.number} may not run: {broken}")

    def count_recorded(self) -> int:
        """Batches of the epoch in the log, whichever driver's: a query's are numbered from 0."""
        self._log.read()
        return sum(each.last.batch + 1 for each in self._log.story.epochs[self.epoch.number].queries.values())

    def _make_started(self, story: Story, n: int, at: float) -> Record | None:
        record = self._describe_start(n, at)
        return None if find_broken_rule(story, record) else record

    def _describe_start(self, n: int, at: float) -> Started:
        follower, asked = read_follower(self.epoch.places), self.epoch.record.run_id
        return Started(
            n=n,
            at=at,
            epoch=self.epoch.number,
            x_run_id=follower.run_id if follower is not None and follower.run_id != asked else "",
            application=str(self.session.sparkContext.applicationId),
            x_pid=os.getpid(),
            x_host=socket.gethostname(),
            x_workers=self.epoch.manifest.workers,
        )

    def check(self) -> None:
        """What a sink asks before it records a batch: raises what ends the query."""
        self.lease.check()
        if self._is_torn:
            raise Refused("the driver ends, and this batch takes too long: it is run again by the next one")

    # --- while it runs

    @property
    def is_over(self) -> bool:
        """Whether nothing of it runs any more."""
        return not self._awaits_state and all(each.is_over for each in self._queries)

    @property
    def is_halted(self) -> bool:
        """Whether it is to end."""
        return self._halted_at is not None

    def halt(self, now: float) -> None:
        """Let the batches that run be the last; it is over some looks later."""
        if self._halted_at is None:
            self._halted_at = now
            self._awaits_state = False
            for each in self._queries:
                each.gate.close()

    def look(self, now: float) -> None:
        """Note what its queries tell; end it where one has failed, or another driver has the lease. Start them, if what
        they have waited for is there.
        """
        if self._awaits_state:
            self._log.read()
            self.start()
        for each in self._queries:
            each.look()
            error = each.find_error()
            if error is not None and self.failure is None:
                self._fail(error, each.step)
        if self.lease.lost is not None and not self._is_torn:
            self.failure = self.failure or Failure("refused", f"stopped: {self.lease.lost}")
            self._stop_now()
        if self.failure is not None or any(each.is_over for each in self._queries):
            self.halt(now)
        if self._halted_at is not None:
            self._go_on_halting(now - self._halted_at)

    def _go_on_halting(self, seconds: float) -> None:
        running = [each for each in self._queries if not each.is_over]
        within = self.epoch.manifest.settings.choose_end_s(self._find_batch_s())
        if running and seconds > 2 * within:
            self.guilty = running[0].step
            self.failure = Failure("lost_driver", f"its batch goes on {seconds:.0f} s after it was to end")
            self.is_stuck = True
        if seconds > within:
            self._stop_now()
            return
        for each in running:
            each.end_between_batches()

    def _stop_now(self) -> None:
        """Without waiting for batches: they are run again."""
        self._is_torn = True
        self._awaits_state = False
        for each in self._queries:
            each.gate.close()
            each.stop()

    def _fail(self, error: BaseException, step: str) -> None:
        text = read_text(error)
        self.failure = describe_failure(error, text, step)
        self.guilty = find_culprit(text, self.epoch.manifest.steps) or step

    def let_go(self) -> None:
        """Forget its queries, which have ended: Java's hold our sinks, and each side would keep the other for ever."""
        ended = [each.query for each in self._queries]
        self._queries.clear()
        stop_listening(self.session, ended)

    def finish_moves(self, story: Story) -> None:
        """Deliver what is recorded of it; its sinks may do so at the same time."""
        for each in self._targets:
            finish_moves(each.store, each.place, story, each.deliver)

    # --- what is told of it

    def make_sign(self, now: float, waits_for: str, behind: Behind = NOT_BEHIND) -> Sign:
        """Its sign of life.

        :param behind: how far it is behind a graph that it is to take over from.
        """
        tallies = [each.tally for each in self._queries]
        watermarks = [each.watermark for each in tallies if each.watermark is not None]
        sc = self.session.sparkContext
        return Sign(
            epoch=self.epoch.number,
            application=str(sc.applicationId),
            at=now,
            phase=self._find_phase(),
            batch={each.step: each.tally.batch for each in self._queries},
            rows_s=add_rates(tallies),
            batch_s=self._find_batch_s(),
            trigger_s=self.epoch.manifest.settings.trigger_s,
            watermark=min(watermarks, default=None),
            newest=merge_newest(tallies),
            state_rows=sum(each.state_rows for each in tallies),
            state_bytes=sum(each.state_bytes for each in tallies),
            late=sum(each.counts.late for each in tallies),
            ahead=sum(each.counts.ahead for each in tallies),
            nulls=sum(each.counts.nulls for each in tallies),
            behind_rows=behind.rows,
            behind_s=behind.seconds,
            waits_for=waits_for,
            pid=os.getpid(),
            host=socket.gethostname(),
            ui=sc.uiWebUrl or "",
            hosts=list_hosts(self.session),
        )

    def _find_batch_s(self) -> float | None:
        """Of its queries' last batches the longest, in seconds; None: there was none."""
        return max((each.tally.batch_s for each in self._queries if each.tally.batch_s is not None), default=None)

    def _find_phase(self) -> Phase:
        if self.is_halted:
            return "stopping"
        if self._awaits_state and self._is_ready:
            return "ready"
        if not self._queries:
            return "starting"
        return "running" if any(each.has_work() for each in self._queries) else "idle"

    def make_ended(self, now: float, code: int) -> Ended:
        """How it ended."""
        failure, mask = self.failure, self.epoch.masking.text
        taken = self.count_recorded() - self._recorded_before
        if failure is None:
            return Ended(code, None, now, batches=taken)
        return Ended(
            code, failure.kind, now, self.guilty, mask(failure.message), mask(failure.traceback), batches=taken
        )
