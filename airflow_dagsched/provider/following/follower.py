"""Following a driver program: its events become the feed, log lines and, in the end, a verdict on the try."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from airflow_dagsched.launch.protocol.events import (
    ColumnsRead,
    Event,
    Failure,
    Finished,
    Heartbeat,
    MadeAgain,
    Stalled,
    Started,
    StepDone,
    StepLog,
    StepRunning,
    decode_batch,
    decode_marker,
)
from airflow_dagsched.launch.protocol.feed import GREEN, Feed
from airflow_dagsched.launch.secrecy.masked_events import mask_event
from airflow_dagsched.launch.secrecy.masking import Masking

log = logging.getLogger(__name__)

EXIT_CODE = re.compile(r"error code is: (-?\d+)", re.IGNORECASE)
"""How the provider's hook tells it."""
PYTHON_KILLED, JAVA_KILLED = "137", "-9"
"""SIGKILL: of the driver's Python, which Java tells as 128 and the signal; of Java, which spark-submit has become."""
MEMORY_SIGNS = ("outofmemory", "java heap space", "cannot allocate memory")
JAVA_ENDS = "SparkUncaughtExceptionHandler: Uncaught exception"
"""Of Spark's log: its own Java ends because of an error that nobody handles."""
BAD = frozenset({"failed", "upstream_failed"})


class Follower:
    """Folds events into the feed. One per launch try, through all its submits. It reads the driver's output, so
    whoever it tells must not keep it waiting.

    :param push: takes each feed with news.
    :param publish: is told of each step that ended well before the feed says so: sets its mirror's XComs.
    :param on_started: is told of each application.
    :param end: waits until the mirrors are told; whether they are.
    """

    def __init__(
        self,
        feed: Feed,
        push: Callable[[Feed], None],
        publish: Callable[[StepDone], None],
        on_started: Callable[[Started], None],
        end: Callable[[], bool] = lambda: True,
    ) -> None:
        self.feed = feed
        self.told = True
        """Whether the mirrors know the last feed; asked once this is closed."""
        self.masking = Masking()
        """What the driver program says is masked there; what the launch task itself says of a step, here."""
        self.finished: Finished | None = None
        self.applications = 0
        self.warm_run: int | None = None
        """Which run of a warm application the last one is; None: the application is its own."""
        self.adopted: set[str] = set()
        """Steps that another launch task has run."""
        self.begun: dict[str, float] = {}
        """When each step was called, in seconds of the monotonic clock."""
        self.ran_out_of_memory = False
        """Whether the output of this submit says so."""
        self.is_java_ending = False
        """Whether the driver's own Java ends by itself. What the driver program sees of it may be anything: no answer,
        a null where something was, an error that looks like its author's.
        """
        self.columns_read: list[ColumnsRead] = []
        """What the application of this submit says it has read of stored datasets: see ``ColumnsRead``."""
        self.stalls: dict[str, Stalled] = {}
        """What each step that gets nowhere waits for, as was last heard."""
        self.executors: int | None = None
        """Of the application of this submit, as its last heartbeat says."""
        self._push = push
        self._publish = publish
        self._on_started = on_started
        self._end = end
        self._file = Path()
        self._taken = 0
        """Batches of the event file that were taken in."""
        self._passed = (0, 0)
        """Lines of the event file, and their bytes, that need not be read any more."""

    def open(self, events: str) -> None:
        """A submit begins, whose driver program writes to this event file."""
        self._file, self._taken, self._passed, self.finished = Path(events), 0, (0, 0), None
        self.ran_out_of_memory, self.is_java_ending, self.executors = False, False, None
        self.stalls, self.warm_run, self.columns_read = {}, None, []

    def line(self, nonce: str, line: str) -> bool:
        """Take in a line of the driver's output; False where it is no event."""
        try:
            marked = decode_marker(line, nonce)
        # Ours, but not whole: what others print may run into it. The event file has it.
        except ValueError:
            self.catch_up()
            return True
        if marked is None:
            self.ran_out_of_memory |= is_out_of_memory(line)
            self.is_java_ending |= JAVA_ENDS in line
            return False
        beats = all(isinstance(event, Heartbeat) for event in marked.events)
        # Heartbeats are on stdout alone, under the number of the batch before them: nothing is lost where one is.
        if beats and marked.number == self._taken:
            self.take(marked.events)
        elif not beats and marked.number == self._taken + 1:
            self._taken += 1
            self.take(marked.events)
        elif marked.number > self._taken:  # some before it did not come
            self.catch_up()
        return True

    def take(self, events: Iterable[Event]) -> None:
        """Take in a batch."""
        before = self.feed
        for event in (mask_event(each, self.masking) for each in events):
            self._note_event(event)
            self.feed = self.feed.add((event,), time.monotonic())
        if self.feed is not before:
            self.push()

    def adopt(self, ends: Iterable[StepDone]) -> None:
        """Take in ends that another launch task has told, which has set its mirrors' XComs."""
        before = self.feed
        for done in ends:
            log.info("%s", describe_end(done))
            self.adopted.add(done.step)
            self.feed = self.feed.add((done,), time.monotonic())
        if self.feed is not before:
            self.push()

    def catch_up(self) -> None:
        """Read from the event file what did not come, or not whole, over stdout."""
        if not self._file.is_file():
            return
        lines, at = self._passed
        with self._file.open("rb") as file:
            file.seek(at)
            complete = file.read().split(b"\n")[:-1]  # what is behind the last newline is still being written
        for text in complete[self._taken - lines :]:
            self._taken += 1
            self.take(_parse_batch(text))
        self._passed = lines + len(complete), at + sum(len(text) + 1 for text in complete)

    def forget_failed(self) -> None:
        """What failed, and what did not run because of it, is tried again."""
        good = {name: done for name, done in self.feed.steps.items() if done.state not in BAD}
        self.feed = replace(self.feed, steps=good, running=())
        self.push()

    def close(self) -> None:
        """Push the last word on every step."""
        # Nothing runs any more, whatever the last event said: a driver that was killed leaves steps begun.
        self.feed = replace(self.feed, final=True, running=())
        self.push()
        self.told = self._end()

    def push(self) -> None:
        """Push the feed as it is."""
        self._push(self.feed)

    def _note_event(self, event: Event) -> None:
        match event:
            case Started(application_id, ui, warm_run):
                self.applications += 1
                self.warm_run = warm_run
                warm = f" (warm, run {warm_run})" if warm_run is not None else ""
                log.info("application %s%s%s", application_id, warm, f", {ui}" if ui else "")
                self._on_started(event)
            case StepRunning(step):
                self.begun[step] = time.monotonic()
                log.info("%s: running", step)
            case StepLog() | Stalled() | MadeAgain():
                self._note_words(event)
            case StepDone():
                self._note_end(event)
            case ColumnsRead():
                self.columns_read = [*self.columns_read, event]
            case Heartbeat():
                self.executors = event.executors
            case Finished():
                self.finished = event
            case _:
                pass

    def _note_words(self, event: StepLog | Stalled | MadeAgain) -> None:
        if isinstance(event, StepLog):
            for line in event.lines:
                log.info("[%s] %s", event.step, line)
            return
        log.warning("[%s] %s", event.step, event.line)
        if isinstance(event, Stalled) and event.seconds:
            self.stalls[event.step] = event
        elif isinstance(event, Stalled):
            self.stalls.pop(event.step, None)

    def _note_end(self, done: StepDone) -> None:
        self.stalls.pop(done.step, None)
        green = done.state in GREEN
        log.log(logging.INFO if green else logging.WARNING, "%s", describe_end(done))
        if green:
            # Before the feed that says so is pushed: whoever sees a green mirror finds its XComs.
            self._publish(done)


def _parse_batch(line: bytes) -> tuple[Event, ...]:
    """A line that cannot be read, as one that a full disk cut off, says nothing; a step it would have ended is run
    again.
    """
    try:
        return decode_batch(line.decode())
    except ValueError as error:
        log.warning("a line of the event file can't be read, and is left out: %s", error)
        return ()


def describe_end(done: StepDone) -> str:
    """One line about how a step ended."""
    numbers = [f"{done.rows:,} rows" if done.rows is not None else "", f"{done.seconds:.1f} s" if done.seconds else ""]
    with_others = f"with {', '.join(done.fused)}" if done.fused else ""
    failure = f"{done.failure.kind}: {done.failure.message}\n{done.failure.traceback}".rstrip() if done.failure else ""
    parts = [part for part in (*numbers, with_others, done.reason, failure) if part]
    return f"{done.step}: {done.state}" + (f" ({'; '.join(parts)})" if parts else "")


def is_out_of_memory(text: str) -> bool:
    """Whether what spark-submit printed tells of it."""
    return any(sign in text.lower() for sign in MEMORY_SIGNS)


def judge_lost_driver(submit_error: str) -> Failure:
    """The failure of a driver that went without a last word, from what spark-submit's error says."""
    found = EXIT_CODE.search(submit_error)
    code = found[1] if found else "unknown"
    by_system = f"was killed from outside (exit code {code}), as the system does when memory runs out"
    if code == PYTHON_KILLED:
        return Failure("out_of_memory", f"the driver program {by_system}: it gets more of it")
    if is_out_of_memory(submit_error):
        reason = f"the driver program ran out of memory (exit code {code})"
        return Failure("out_of_memory", f"{reason}: it gets more of it")
    if code == JAVA_KILLED:
        # A larger heap is no help where the machine has no more, and the kill may be anyone's.
        return Failure("lost_driver", f"Java of the driver {by_system}; see its last lines below")
    return Failure(
        "lost_driver", f"the driver program ended without a word (exit code {code}); see its last lines below"
    )
