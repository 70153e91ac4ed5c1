"""The application of a stream's driver: any number of epochs of one flow, each with its queries and its lease.

Once a second it looks at the log and does what it can of what is to be done: it hands windows over, starts the graph
that takes over where that needs no other application, ends the one that was taken over from.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import suppress
from functools import partial

from pyspark.sql import SparkSession

from airflow_dagsched.launch.secrecy.masking import Masking
from airflow_dagsched.launch.streams.difference import needs_application
from airflow_dagsched.spark.driver.launch_secrets import Refused
from airflow_dagsched.spark.session.callback_connections import close_idle_connections
from airflow_dagsched.spark.session.worker_monitors import end_needless_monitors
from airflow_dagsched.spark.stream_driver.epoch_lease import EpochLease
from airflow_dagsched.spark.stream_driver.epoch_run import EpochRun
from airflow_dagsched.spark.stream_driver.graphs.accepted_epoch import AcceptedEpoch, accept_epoch
from airflow_dagsched.spark.stream_driver.mishaps import OK, Stuck, choose_code, describe_end, is_java_gone, survive
from airflow_dagsched.spark.stream_driver.output_file import rotate_output
from airflow_dagsched.spark.stream_driver.sinks import finish_left_moves, hand_left_rows, has_left_aside
from airflow_dagsched.switch.advising.advice import Command, Deploy, FinishMoves, Halt, Limits
from airflow_dagsched.switch.advising.behind import NOT_BEHIND, find_behind
from airflow_dagsched.switch.advising.situation import count_start
from airflow_dagsched.switch.log.executor import Executor
from airflow_dagsched.switch.log.signs_files import read_orders, read_starts, write_ended, write_sign, write_starts
from airflow_dagsched.switch.records import Epoch
from airflow_dagsched.switch.say import tell_reason
from airflow_dagsched.switch.signs import Sign
from airflow_dagsched.switch.story import EpochStory, Story

log = logging.getLogger(__name__)

SIGN_S = 2.0
"""Seconds between two signs of life."""
DELIVER_S = 30.0
"""Seconds between two tries to deliver what is recorded, after one that failed."""
MOMENT_S = 0.5
"""Seconds for which a look waits for it: mostly it takes no longer."""
BLIND_S = 300.0
"""Seconds without a look at the log, after which the program ends: a disk may be away for a while."""


class Deliveries:
    """What is delivered of epochs that end, in threads: an author's function may take long, and the others go on.

    :param masking: of what is told.
    """

    def __init__(self, clock: Callable[[], float], masking: Masking) -> None:
        self._clock = clock
        self._masking = masking
        self._running: dict[int, tuple[Future[None], float]] = {}
        """Epoch -> what it comes to, and since when it runs."""
        self._failed: dict[int, tuple[str, float]] = {}
        """Epoch -> why the last try failed, and when."""

    def finish(self, epoch: int, deliver: Callable[[], None]) -> bool:
        """Whether it is done; begun if it does not run, and has not just failed. Raises it where Java is gone."""
        now = self._clock()
        if epoch not in self._running:
            if epoch in self._failed and now < self._failed[epoch][1] + DELIVER_S:
                return False
            self._running[epoch] = _begin(deliver), now
        result = self._running[epoch][0]
        wait((result,), MOMENT_S)
        if not result.done():
            return False
        del self._running[epoch]
        return self._judge(epoch, result.exception())

    def _judge(self, epoch: int, error: BaseException | None) -> bool:
        self._failed.pop(epoch, None)
        if error is None:
            return True
        if not isinstance(error, Exception) or is_java_gone(error):
            raise error
        now = self._clock()
        told = describe_end(error, self._masking, now).message
        self._failed[epoch] = f"rows recorded of epoch {epoch} can't be delivered: {told}", now
        log.warning("%s", self._failed[epoch][0])
        return False

    def tell(self) -> Iterator[str]:
        """What is waited for, a sentence each."""
        yield from (text for text, _ in self._failed.values())
        for epoch, (_, since) in self._running.items():
            yield f"rows recorded of epoch {epoch} are being delivered, for {self._clock() - since:.0f} s now"


def _begin(deliver: Callable[[], None]) -> Future[None]:
    result: Future[None] = Future()

    def run() -> None:
        try:
            deliver()
        except BaseException as error:  # noqa: BLE001 - whoever asks for the result gets it
            result.set_exception(error)
        else:
            result.set_result(None)

    # Not of a pool: the program would wait for its threads as it ends.
    threading.Thread(target=run, name="deliveries", daemon=True).start()
    return result


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
        self._next: tuple[AcceptedEpoch, EpochLease] | None = None
        """The graph that starts here once the owner has gone, which runs here: nobody else is to start it."""
        self._deliveries = Deliveries(clock, first.masking)
        self._is_ending = False
        """Whether the program ends: nothing begins in it any more."""
        self._blind_since: float | None = None
        """Since when the log can't be read, in seconds since 1970; None: it can."""
        self.code = OK
        """Of the epoch that ended last."""
        self.executor = Executor(
            first.flow.folder,
            {Deploy: self._deploy, Halt: self._halt, FinishMoves: self._finish_moves},
            Limits(settings.deploy_within_s, settings.most_stuck_s, settings.catch_up_within_s),
            clock,
        )

    @property
    def is_over(self) -> bool:
        """Whether no epoch runs in it, or is to."""
        return not self._runs and self._next is None

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

    def may_wait(self, lease: EpochLease, waits_for: str) -> bool:
        """Before its first epoch begins, once a second: whether it is still to. Its sign says what it waits for."""
        self.advance()
        first, now = self._first, self._clock()
        with survive(f"the sign of life of epoch {first.number}"):
            application = str(self._main.sparkContext.applicationId)
            write_sign(first.places, Sign(first.number, application, now, "starting", waits_for=waits_for))
        told = self.executor.log.story.epochs.get(first.number)
        is_ordered = "stop" in read_orders(first.places)
        is_given_up = told is not None and told.aborted is not None
        return lease.lost is None and not is_given_up and not is_ordered

    def step(self, is_ending: bool = False) -> None:
        """Once a second: look at everything, do what is to be done.

        :param is_ending: whether all of it is to end, each epoch after its batch.
        """
        now = self._clock()
        if is_ending:
            self.halt_all(now)
        waits_for = self.advance()
        with survive("the graph that comes next"):
            self._see_to_next()
        for number, run in tuple(self._runs.items()):
            with survive(f"looking at epoch {number}"):
                run.look(self._clock())
            with survive(f"the sign of life of epoch {number}"):
                self._show(number, run, waits_for)
            if run.is_over:
                self._end(number, run)
            elif run.is_stuck:
                self._tell_end(number, run)
                raise Stuck(f"step {run.guilty!r} of epoch {number} does not come back")
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
        return "; ".join([*map(tell_reason, advice.waits_for), *self._deliveries.tell()])

    def halt_all(self, now: float) -> None:
        """Let all batches that run be the last, and nothing begin."""
        self._is_ending = True
        self._let_next_go()
        for run in self._runs.values():
            run.halt(now)

    def _show(self, number: int, run: EpochRun, waits_for: str) -> None:
        now = self._clock()
        if now - self._signed.get(number, 0.0) >= SIGN_S:
            self._signed[number] = now
            story = self.executor.log.story
            behind = find_behind(story) if story.successor == number else NOT_BEHIND
            write_sign(run.epoch.places, run.make_sign(now, waits_for, behind))

    def _end(self, number: int, run: EpochRun) -> None:
        """Say how it ended, then let go of it: whoever sees its lease free finds out why."""
        del self._runs[number]
        self.code = choose_code(run.failure.kind if run.failure else None)
        self._tell_end(number, run)
        run.lease.give_back()
        with survive(f"letting go of epoch {number}"):
            run.let_go()
        with survive("closing connections that nobody uses"):
            close_idle_connections(self._main)
        with survive("ending threads that nobody needs"):
            end_needless_monitors(self._main)

    def _tell_end(self, number: int, run: EpochRun) -> None:
        with survive(f"saying how epoch {number} has ended"):
            ended = run.make_ended(self._clock(), choose_code(run.failure.kind if run.failure else None))
            log.info("epoch %s has ended: %s", number, ended.message or "after its batch")
            # What another driver of it has left is none of ours.
            if run.lease.lost is None:
                write_ended(run.epoch.places, ended)

    # --- what is advised

    def _deploy(self, command: Command) -> bool:
        """Start the graph that takes over in this application, if it can be."""
        assert isinstance(command, Deploy)
        number = command.epoch
        is_early = self._clock() < command.not_before
        story = self.executor.log.story.epochs.get(number)
        if story is None or number in self._runs or number in self._others or not self._runs:
            return False
        if is_early or self._is_ending:
            return False
        try:
            return self._start(story)
        except Exception as error:  # noqa: BLE001 - it ends this epoch alone: the others have not noticed
            self._leave_unstarted(story.record, error)
            return False

    def _start(self, story: EpochStory) -> bool:
        """False: it needs another application. Raises what keeps it from starting at all."""
        epoch = self._accept(story.record)
        if epoch is None:
            return False
        self._begin_counted(story, epoch, EpochLease(epoch))
        return True

    def _accept(self, record: Epoch) -> AcceptedEpoch | None:
        """The epoch, if it can run here; None: it needs another application. Raises what is wrong with it."""
        epoch = accept_epoch(self.executor.flow, record, self._first.masking)
        other = needs_application(self._first.manifest, epoch.manifest)
        if not other:
            return epoch
        log.info("epoch %s is not started in this application: %s", epoch.number, other)
        self._others.add(epoch.number)
        return None

    def _begin_counted(self, story: EpochStory, epoch: AcceptedEpoch, lease: EpochLease) -> None:
        try:
            # Before the start: what always fails is given up after some of them.
            write_starts(epoch.places, count_start(story, read_starts(epoch.places), self._clock()))
            self.begin(epoch, lease)
        except Exception:
            lease.give_back()
            raise

    # --- the graph that there is room for only once the owner is gone

    def _see_to_next(self) -> None:
        """Keep it from being started elsewhere, from its fence on; start it as soon as it is the owner."""
        story = self.executor.log.story
        new = story.new if self._next is None else story.epochs[self._next[0].number]
        if new is None or self._is_ending:
            return
        try:
            if self._next is None:
                self._keep_next(story.owner or 0, new)
            elif story.owner == new.record.epoch:
                (epoch, lease), self._next = self._next, None
                self._begin_counted(new, epoch, lease)
            elif not self._runs and story.old is not None and not story.old.drained:
                # The owner has to run once more, which takes an application anyway.
                self._let_next_go()
        except Exception as error:  # noqa: BLE001 - it ends this epoch alone: whoever follows it starts it elsewhere
            self._leave_unstarted(new.record, error)

    def _keep_next(self, owner: int, new: EpochStory) -> None:
        is_next = new.into is not None and new.begun is None and new.record.x_overlap == "sequential"
        if not is_next or new.record.epoch in self._others or owner not in self._runs or self._runs[owner].is_over:
            return
        epoch = self._accept(new.record)
        if epoch is not None:
            self._next = epoch, EpochLease(epoch)

    def _let_next_go(self) -> bool:
        """Leave it to another application; False: there is none."""
        if self._next is None:
            return False
        self._next[1].give_back()
        self._next = None
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
        if self._next is not None and self._next[0].number == command.epoch:
            return self._let_next_go()
        run = self._runs.get(command.epoch)
        if run is not None:
            run.halt(self._clock())
        return run is not None

    def _finish_moves(self, command: Command) -> bool:
        """Deliver what is recorded of an epoch. False: not yet, and the other graph goes on all the same."""
        assert isinstance(command, FinishMoves)
        story = self.executor.log.story
        run, new = self._runs.get(command.epoch), self._runs.get(story.successor or 0)
        if run is not None:
            return self._deliveries.finish(command.epoch, partial(run.finish_moves, story))
        if new is None:
            return False
        # It runs no more, or in another application: moves may be done by several at once.
        record = story.epochs[command.epoch].record
        return self._deliveries.finish(command.epoch, partial(self._deliver_left, record, new.epoch, story))

    def _deliver_left(self, record: Epoch, new: AcceptedEpoch, story: Story) -> None:
        """Deliver what is recorded of an epoch that does not run here."""
        places = self.executor.flow.name_epoch(record.x_folder)
        hand_left_rows(self._main, new, places, story)
        try:
            epoch = accept_epoch(self.executor.flow, record, self._first.masking)
        except Refused as refused:
            if has_left_aside(places, record.x_queries, story):
                raise
            # Tables that are the successor's, too, have it: its sinks began with that.
            log.warning("what epoch %s may have left for tables of its own is not moved: %s", record.epoch, refused)
        else:
            finish_left_moves(self._main, epoch, story)

    def close(self) -> None:
        """Give all leases back: the program ends."""
        with suppress(Exception):
            self._let_next_go()
        for run in self._runs.values():
            with suppress(Exception):
                run.lease.give_back()
