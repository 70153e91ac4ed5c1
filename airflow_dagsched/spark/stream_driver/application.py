"""The application of a stream's driver: any number of epochs of one flow, each with its queries and its lease.

Once a second it looks at the log and does what it can of what is to be done: it hands windows over, starts the graph
that takes over where that needs no other application, ends the one that was taken over from.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress

from pyspark.sql import SparkSession

from airflow_dagsched.launch.streams.difference import needs_application
from airflow_dagsched.spark.driver.launch_secrets import Refused
from airflow_dagsched.spark.stream_driver.accepted_epoch import AcceptedEpoch, accept_epoch
from airflow_dagsched.spark.stream_driver.epoch_lease import EpochLease
from airflow_dagsched.spark.stream_driver.epoch_run import EpochRun
from airflow_dagsched.spark.stream_driver.mishaps import OK, choose_code, describe_end, is_java_gone, survive
from airflow_dagsched.spark.stream_driver.output_file import rotate_output
from airflow_dagsched.spark.stream_driver.sinks import finish_left_moves, hand_left_rows, has_left_aside
from airflow_dagsched.switch.advising.advice import Command, Deploy, FinishMoves, Halt, Limits
from airflow_dagsched.switch.advising.situation import count_start
from airflow_dagsched.switch.log.executor import Executor
from airflow_dagsched.switch.log.signs_files import read_starts, write_ended, write_sign, write_starts
from airflow_dagsched.switch.records import Epoch
from airflow_dagsched.switch.say import tell_reason
from airflow_dagsched.switch.story import EpochStory

log = logging.getLogger(__name__)

SIGN_S = 2.0
"""Seconds between two signs of life."""
DELIVER_S = 30.0
"""Seconds between two tries to deliver what is recorded, after one that failed."""
BLIND_S = 300.0
"""Seconds without a look at the log, after which the program ends: a disk may be away for a while."""


class StreamApplication:
    """What runs in one Spark application.

    :param first: the epoch that the program was started for; its output is the program's.
    """

    def __init__(
        self,
        main: SparkSession,
        first: AcceptedEpoch,
        clock: Callable[[], float] = time.time,
        open_run: Callable[[SparkSession, AcceptedEpoch, EpochLease], EpochRun] = EpochRun,
    ) -> None:
        settings = first.manifest.settings
        self._main = main
        self._first = first
        self._clock = clock
        self._open_run = open_run
        self._runs: dict[int, EpochRun] = {}
        self._signed: dict[int, float] = {}
        """Epoch -> when its sign was written last."""
        self._others: set[int] = set()
        """Epochs that are not for this application."""
        self._undelivered: dict[int, str] = {}
        """Epoch -> why what was recorded of it could not be delivered at the last try."""
        self._deliver_from = 0.0
        """When that is tried again, in seconds since 1970."""
        self._blind_since: float | None = None
        """Since when the log can't be read, in seconds since 1970; None: it can."""
        self.code = OK
        """Of the epoch that ended last."""
        self.executor = Executor(
            first.flow.folder,
            {Deploy: self._deploy, Halt: self._halt, FinishMoves: self._finish_moves},
            Limits(settings.deploy_within_s, settings.most_stuck_s),
            clock,
        )

    @property
    def is_over(self) -> bool:
        """Whether no epoch runs in it."""
        return not self._runs

    def begin(self, epoch: AcceptedEpoch, lease: EpochLease) -> None:
        """Start an epoch. What fails of its graph is in its ``exit.json``; raises what keeps it from having a session,
        and then nothing of it runs.
        """
        # Of an earlier driver, whatever became of that.
        epoch.places.exit.unlink(missing_ok=True)
        run = self._open_run(self._main, epoch, lease)
        write_sign(epoch.places, run.make_sign(self._clock(), ""))
        run.start()
        self._runs[epoch.number] = run

    def step(self, is_ending: bool = False) -> None:
        """Once a second: look at everything, do what is to be done.

        :param is_ending: whether all of it is to end, each epoch after its batch.
        """
        now = self._clock()
        if is_ending:
            self.halt_all(now)
        waits_for = self.advance()
        for number, run in tuple(self._runs.items()):
            with survive(f"looking at epoch {number}"):
                run.look(self._clock())
            with survive(f"the sign of life of epoch {number}"):
                self._show(number, run, waits_for)
            if run.is_over:
                self._end(number, run)
        with survive("keeping the output short"):
            rotate_output(self._first.places.output)

    def advance(self) -> str:
        """Do what the log asks for; what is waited for. Raises what keeps it from reading the log for too long."""
        try:
            advice = self.executor.step()
        except Exception as error:
            self._blind_since = self._blind_since or self._clock()
            if is_java_gone(error) or self._clock() - self._blind_since > BLIND_S:
                raise
            log.warning("looking at the log, trying again: %s", error)
            return f"the log can't be read: {error}"
        self._blind_since = None
        return "; ".join([*map(tell_reason, advice.waits_for), *self._undelivered.values()])

    def halt_all(self, now: float) -> None:
        """Let all batches that run be the last."""
        for run in self._runs.values():
            run.halt(now)

    def _show(self, number: int, run: EpochRun, waits_for: str) -> None:
        now = self._clock()
        if now - self._signed.get(number, 0.0) >= SIGN_S:
            self._signed[number] = now
            write_sign(run.epoch.places, run.make_sign(now, waits_for))

    def _end(self, number: int, run: EpochRun) -> None:
        """Say how it ended, then let go of it: whoever sees its lease free finds out why."""
        del self._runs[number]
        self.code = choose_code(run.failure.kind if run.failure else None)
        with survive(f"saying how epoch {number} has ended"):
            ended = run.make_ended(self._clock(), self.code)
            log.info("epoch %s has ended: %s", number, ended.message or "after its batch")
            # What another driver of it has left is none of ours.
            if run.lease.lost is None:
                write_ended(run.epoch.places, ended)
        run.lease.give_back()

    # --- what is advised

    def _deploy(self, command: Command) -> bool:
        """Start the graph that takes over in this application, if it can be."""
        assert isinstance(command, Deploy)
        number = command.epoch
        is_early = self._clock() < command.not_before
        if number in self._runs or number in self._others or not self._runs or is_early:
            return False
        story = self.executor.log.story.epochs[number]
        try:
            return self._start(story)
        except Exception as error:  # noqa: BLE001 - it ends this epoch alone: the others have not noticed
            self._leave_unstarted(story.record, error)
            return False

    def _start(self, story: EpochStory) -> bool:
        """False: it needs another application. Raises what keeps it from starting at all."""
        epoch = accept_epoch(self.executor.flow, story.record, self._first.masking)
        other = needs_application(self._first.manifest, epoch.manifest)
        if other:
            log.info("epoch %s is not started in this application: %s", epoch.number, other)
            self._others.add(epoch.number)
            return False
        # Before the start: what always fails is given up after some of them.
        write_starts(epoch.places, count_start(story, read_starts(epoch.places), self._clock()))
        lease = EpochLease(epoch)
        try:
            self.begin(epoch, lease)
        except Exception:
            lease.give_back()
            raise
        return True

    def _leave_unstarted(self, record: Epoch, error: Exception) -> None:
        """Say why an epoch does not run; who advances the switch tries again, or gives it up."""
        if isinstance(error, Refused):
            self._others.add(record.epoch)
        ended = describe_end(error, self._first.masking, self._clock())
        log.warning("epoch %s is not started in this application: %s", record.epoch, ended.message)
        write_ended(self.executor.flow.name_epoch(record.x_folder), ended)

    def _halt(self, command: Command) -> bool:
        assert isinstance(command, Halt)
        run = self._runs.get(command.epoch)
        if run is not None:
            run.halt(self._clock())
        return run is not None

    def _finish_moves(self, command: Command) -> bool:
        """Deliver what is recorded of an epoch. False: it can't be, and the other graph goes on all the same."""
        assert isinstance(command, FinishMoves)
        if self._clock() < self._deliver_from:
            return False
        try:
            is_done = self._deliver(command.epoch)
        except Exception as error:
            if is_java_gone(error):
                raise
            self._deliver_from = self._clock() + DELIVER_S
            told = describe_end(error, self._first.masking, self._clock()).message
            self._undelivered[command.epoch] = f"rows recorded of epoch {command.epoch} can't be delivered: {told}"
            log.warning("%s", self._undelivered[command.epoch])
            return False
        self._undelivered.pop(command.epoch, None)
        return is_done

    def _deliver(self, number: int) -> bool:
        run, story = self._runs.get(number), self.executor.log.story
        if run is not None:
            run.finish_moves(story)
            return True
        # It runs no more, or in another application: moves may be done by several at once.
        new = self._runs.get(story.successor or 0)
        if new is None:
            return False
        record = story.epochs[number].record
        hand_left_rows(self._main, new.epoch, self.executor.flow.name_epoch(record.x_folder), story)
        return self._finish_left_moves(record)

    def _finish_left_moves(self, record: Epoch) -> bool:
        try:
            epoch = accept_epoch(self.executor.flow, record, self._first.masking)
        except Refused as refused:
            places = self.executor.flow.name_epoch(record.x_folder)
            if has_left_aside(places, record.x_queries, self.executor.log.story):
                raise
            # Tables that are the successor's, too, have it: its sinks began with that.
            log.warning("what epoch %s may have left for tables of its own is not moved: %s", record.epoch, refused)
        else:
            finish_left_moves(self._main, epoch, self.executor.log.story)
        return True

    def close(self) -> None:
        """Give all leases back: the program ends."""
        for run in self._runs.values():
            with suppress(Exception):
                run.lease.give_back()
