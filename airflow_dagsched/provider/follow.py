"""Following a driver program: its events become the feed, log lines and, in the end, a verdict on the try."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from airflow_dagsched.launch.events import (
    Event,
    Failure,
    Finished,
    Heartbeat,
    Started,
    StepDone,
    StepLog,
    StepRunning,
    from_line,
    from_marker,
)
from airflow_dagsched.launch.feed import FEED_KEY, GREEN, Feed
from airflow_dagsched.launch.wire import encode

log = logging.getLogger(__name__)

EXIT_CODE = re.compile(r"error code is: (\d+)", re.IGNORECASE)
"""How the provider's hook tells it."""
KILLED = "137"
MEMORY_SIGNS = ("outofmemory", "java heap space", "cannot allocate memory")
BAD = frozenset({"failed", "upstream_failed"})
PUSH_EVERY_S = 0.4
"""The feed is pushed at most so often; the driver's heartbeat brings what was held back."""


class Follower:
    """Folds events into the feed and pushes it. One per launch try, through all its submits.

    :param push: sets an XCom of the launch task.
    :param publish: is told of each step that ended well before the feed says so: sets its mirror's XComs.
    :param on_started: is told of each application.
    """

    def __init__(
        self,
        feed: Feed,
        push: Callable[[str, Any], None],
        publish: Callable[[StepDone], None],
        on_started: Callable[[Started], None],
    ) -> None:
        self.feed = feed
        self.finished: Finished | None = None
        self.applications = 0
        self.begun: dict[str, float] = {}
        """When each step was called, in seconds of the monotonic clock."""
        self.ran_out_of_memory = False
        """Whether the output of this submit says so. Java then stops, and what the driver program sees of it may be
        anything.
        """
        self.executors: int | None = None
        """Of the application of this submit, as its last heartbeat says."""
        self._push_xcom = push
        self._publish = publish
        self._on_started = on_started
        self._pushed_at = 0.0
        self._dirty = False
        self._file = Path()
        self._taken = 0
        """Batches of the event file that were taken in."""

    def open(self, events: str) -> None:
        """A submit begins, whose driver program writes to this event file."""
        self._file, self._taken, self.finished = Path(events), 0, None
        self.ran_out_of_memory, self.executors = False, None

    def line(self, nonce: str, line: str) -> bool:
        """Take in a line of the driver's output; False where it is no event."""
        try:
            marked = from_marker(line, nonce)
        except ValueError:
            self.catch_up()
            return True
        if marked is None:
            self.ran_out_of_memory |= says_out_of_memory(line)
            return False
        beats = all(isinstance(event, Heartbeat) for event in marked.events)
        if beats and marked.number == self._taken:
            self.take(marked.events)
        elif not beats and marked.number == self._taken + 1:
            self._taken += 1
            self.take(marked.events)
        elif marked.number > self._taken:
            self.catch_up()
        return True

    def take(self, events: Iterable[Event]) -> None:
        """Take in a batch."""
        for event in events:
            self._note(event)
            self._dirty |= not isinstance(event, (Heartbeat, Started))
            self.feed = self.feed.add((event,))
        if self._dirty and time.monotonic() - self._pushed_at >= PUSH_EVERY_S:
            self.push()

    def catch_up(self) -> None:
        """Read from the event file what did not come, or not whole, over stdout."""
        if not self._file.is_file():
            return
        complete = self._file.read_text().split("\n")[:-1]
        for text in complete[self._taken :]:
            self._taken += 1
            self.take(from_line(text))

    def forget_bad(self) -> None:
        """What failed, and what did not run because of it, is tried again."""
        good = {name: done for name, done in self.feed.steps.items() if done.state not in BAD}
        self.feed = replace(self.feed, steps=good, running=())
        self.push()

    def close(self) -> None:
        """Push the last word on every step."""
        self.feed = replace(self.feed, final=True, running=())
        self.push()

    def push(self) -> None:
        """Push the feed as it is."""
        self._push_xcom(FEED_KEY, encode(self.feed))
        self._pushed_at, self._dirty = time.monotonic(), False

    def _note(self, event: Event) -> None:
        match event:
            case Started(application_id, ui):
                self.applications += 1
                log.info("application %s%s", application_id, f", {ui}" if ui else "")
                self._on_started(event)
            case StepRunning(step):
                self.begun[step] = time.monotonic()
                log.info("%s: running", step)
            case StepLog(step, lines):
                for line in lines:
                    log.info("[%s] %s", step, line)
            case StepDone():
                green = event.state in GREEN
                log.log(logging.INFO if green else logging.WARNING, "%s", describe(event))
                if green:
                    self._publish(event)
            case Heartbeat():
                self.executors = event.executors
            case Finished():
                self.finished = event
            case _:
                pass


def describe(done: StepDone) -> str:
    """One line about how a step ended."""
    numbers = [f"{done.rows:,} rows" if done.rows is not None else "", f"{done.seconds:.1f} s" if done.seconds else ""]
    with_others = f"with {', '.join(done.fused)}" if done.fused else ""
    failure = f"{done.failure.kind}: {done.failure.message}\n{done.failure.traceback}".rstrip() if done.failure else ""
    parts = [part for part in (*numbers, with_others, done.reason, failure) if part]
    return f"{done.step}: {done.state}" + (f" ({'; '.join(parts)})" if parts else "")


def says_out_of_memory(text: str) -> bool:
    """Whether what spark-submit printed tells of it."""
    return any(sign in text.lower() for sign in MEMORY_SIGNS)


def lost(submit_error: str) -> Failure:
    """The failure of a driver that went without a last word, from what spark-submit's error says."""
    found = EXIT_CODE.search(submit_error)
    code = found[1] if found else "unknown"
    if code == KILLED:
        reason = "the driver program was killed from outside (exit code 137), as the system does when memory runs out"
        return Failure("out_of_memory", f"{reason}: it gets more of it")
    if says_out_of_memory(submit_error):
        reason = f"the driver program ran out of memory (exit code {code})"
        return Failure("out_of_memory", f"{reason}: it gets more of it")
    return Failure(
        "lost_driver", f"the driver program ended without a word (exit code {code}); see its last lines below"
    )


class Memory:
    """What one launch task's try leaves for the next, in the work folder (Airflow's own stores die or live at
    the wrong moments): the escalation level, and which outlets have been emitted.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "memory.json"
        self._known: dict[str, Any] = json.loads(self._file.read_text()) if self._file.is_file() else {}

    @property
    def level(self) -> int:
        """Index into ``escalation.LEVELS`` for this try."""
        return int(self._known.get("level", 0))

    def emitted(self, clear_number: int) -> frozenset[str]:
        """Steps whose outlets emitted an event before the run was cleared for the ``clear_number``-th time.

        A try that another follows without a clear did not end well, whatever it wrote down: Airflow emits
        nothing for it.
        """
        known = self._known.get("emitted", {})
        return frozenset(step for clear, steps in known.items() if int(clear) < clear_number for step in steps)

    def remember(self, level: int) -> None:
        """Write down the level of the next try."""
        self._known["level"] = level
        self._write()

    def ended_well(self, steps: Iterable[str], clear_number: int) -> None:
        """Write down what emits its event now; whatever comes next starts from the plan again."""
        self._known["emitted"] = {**self._known.get("emitted", {}), str(clear_number): sorted(steps)}
        self.remember(level=0)

    def _write(self) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._file.with_suffix(".new")
        fresh.write_text(json.dumps(self._known))
        fresh.replace(self._file)
