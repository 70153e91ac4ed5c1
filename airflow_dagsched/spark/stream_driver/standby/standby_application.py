"""An application that has everything but a graph: it looks at the log as each driver does, and takes over.

From then on it is the epoch's driver as any other.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from pyspark.sql import SparkSession

from airflow_dagsched.launch.streams.difference import needs_application
from airflow_dagsched.spark.driver.launch_secrets import Refused
from airflow_dagsched.spark.stream_driver.application import SIGN_S, StreamApplication
from airflow_dagsched.spark.stream_driver.epoch_lease import EpochLease
from airflow_dagsched.spark.stream_driver.graphs.accepted_epoch import AcceptedEpoch, accept_epoch
from airflow_dagsched.spark.stream_driver.mishaps import OK, survive
from airflow_dagsched.switch.advising.advice import Command, Deploy
from airflow_dagsched.switch.advising.standby import Leave, TakeOver, Verdict, judge_standby
from airflow_dagsched.switch.log.executor import look_at
from airflow_dagsched.switch.log.signs_files import write_ended, write_sign, write_starts
from airflow_dagsched.switch.records import Epoch
from airflow_dagsched.switch.signs import Ended, Phase, Sign, Starts

log = logging.getLogger(__name__)


class StandbyApplication(StreamApplication):
    """Begins with no graph.

    :param first: stands for the epoch that its settings are of; its output is the program's.
    """

    def __init__(self, main: SparkSession, first: AcceptedEpoch, clock: Callable[[], float] = time.time) -> None:
        super().__init__(main, first, clock)
        self._waiting: EpochLease | None = None
        """The lease of the standby; None: it is none yet, or no more."""
        self._known: dict[int, AcceptedEpoch | None] = {}
        """Epoch -> what would run here; None: it needs another application."""
        self._due: set[int] = set()
        """Epochs that somebody is to start."""
        self._signed_at = 0.0

    @property
    def is_over(self) -> bool:
        """Whether nothing runs in it, and it waits for nothing."""
        return self._waiting is None and super().is_over

    def begin(self, epoch: AcceptedEpoch, lease: EpochLease) -> None:
        """Stand by; or, once it is needed, start the epoch."""
        if epoch is not self._first:
            super().begin(epoch, lease)
            return
        # Spark's own classes, and executors, meet their first query now.
        self._main.range(8).groupBy("id").count().write.format("noop").mode("append").save()
        self._waiting = lease
        log.info("standing by as %s", self._main.sparkContext.applicationId)

    def may_wait(self, lease: EpochLease, waits_for: str) -> bool:
        """While it has too few executors: whether anybody would need it."""
        return super().may_wait(lease, waits_for) and not isinstance(self._judge(), Leave)

    def step(self, is_ending: bool = False) -> None:
        """Once a second: see whether it is needed. Once it is a driver, as one."""
        if self._waiting is None:
            super().step(is_ending)
            return
        self._due.clear()
        waits_for = self.advance()
        with survive("standing by"):
            self._tell("standby", waits_for)
            verdict = Leave("it was ended") if is_ending else self._judge()
            if self._waiting.lost is not None:
                verdict = Leave(self._waiting.lost)
            self._follow(verdict)

    def _follow(self, verdict: Verdict) -> None:
        if isinstance(verdict, TakeOver):
            self._take_over(verdict.epoch)
        elif isinstance(verdict, Leave):
            self._leave(verdict.reason)

    def _judge(self) -> Verdict:
        story = self.executor.log.story
        seen = look_at(self.executor.flow, story, self._clock())
        fits = {number for number, each in story.epochs.items() if not each.has_ended and self._fits(each.record)}
        return judge_standby(story, seen, fits, self._due)

    def _fits(self, record: Epoch) -> bool:
        if record.epoch not in self._known:
            self._known[record.epoch] = self._read(record)
        return self._known[record.epoch] is not None

    def _read(self, record: Epoch) -> AcceptedEpoch | None:
        """The epoch, its steps unpickled and what they import loaded; None: it can't run here."""
        try:
            epoch = accept_epoch(self.executor.flow, record, self._first.masking)
        except Refused as refused:
            log.warning("epoch %s is not waited for: %s", record.epoch, refused)
            return None
        other = needs_application(self._first.manifest, epoch.manifest)
        if other:
            log.info("epoch %s is not waited for: %s", record.epoch, other)
        return None if other else epoch

    def _deploy(self, command: Command) -> bool:
        assert isinstance(command, Deploy)
        if self._waiting is None:
            return super()._deploy(command)
        self._due.add(command.epoch)
        return False

    def _take_over(self, number: int) -> None:
        story, epoch = self.executor.log.story.epochs[number], self._known[number]
        assert epoch is not None
        log.warning("the driver of epoch %s is gone: it goes on here", number)
        try:
            self._begin_counted(story, epoch, EpochLease(epoch))
        except Exception as error:  # noqa: BLE001 - whoever follows the epoch starts a driver of it
            self._leave_unstarted(story.record, error)
            self._leave(f"epoch {number} could not be started here")
            return
        # What comes of it is another one's count.
        write_starts(self._first.places, Starts(0, self._clock()))
        self._tell("running", f"is the driver of epoch {number}", pace_s=0.0)
        self._let_go()

    def _leave(self, reason: str) -> None:
        log.info("the standby ends: %s", reason)
        with survive("saying how the standby has ended"):
            write_ended(self._first.places, Ended(OK, None, self._clock(), message=reason))
        self._let_go()

    def _let_go(self) -> None:
        """Leave the place to the next standby."""
        if self._waiting is not None:
            self._waiting.give_back()
        self._waiting = None

    def _tell(self, phase: Phase, waits_for: str, pace_s: float = SIGN_S) -> None:
        now = self._clock()
        if now - self._signed_at >= pace_s:
            self._signed_at = now
            sc = self._main.sparkContext
            sign = Sign(
                self._first.number, str(sc.applicationId), now, phase, waits_for=waits_for, ui=sc.uiWebUrl or ""
            )
            write_sign(self._first.places, sign)

    def close(self) -> None:
        """Give all leases back: the program ends."""
        super().close()
        self._let_go()
