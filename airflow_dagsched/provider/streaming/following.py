"""The look that all tasks following one flow share in a triggerer: log, leases and signs, every few seconds for weeks.

It advances the flow as any executor does, but starts nothing: that needs a worker.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from airflow_dagsched.provider.streaming.verdicts import End, Lost, Verdict, judge_epoch
from airflow_dagsched.switch.advising.advice import Advice, Deploy, Limits
from airflow_dagsched.switch.fold import IllegalTransition
from airflow_dagsched.switch.log.executor import Executor
from airflow_dagsched.switch.places import INBOX_SERVICE, STANDBY
from airflow_dagsched.switch.records import GarbledLog
from airflow_dagsched.switch.story import EpochStory, Story

log = logging.getLogger(__name__)

POLL_S = 5.0
OWN_S = 5.0
"""Seconds after which a worker starts the driver of the very epoch that a task follows: an application that lives
starts a graph that failed by itself, and sooner.
"""
OTHERS_S = 120.0
"""Seconds after which the driver of an epoch that nobody starts again is started by whoever follows another one."""
SHARED = (INBOX_SERVICE, STANDBY)
"""What stands for an epoch, and works for all of the flow's."""
TORN_S = 600.0
"""Seconds after which a log that can't be read ends whoever follows an epoch by it."""


@dataclass(frozen=True, slots=True)
class Followed:
    """A flow, and what its settings say of how long things may take."""

    folder: str
    deploy_s: float
    stuck_s: float
    catch_up_s: float

    @property
    def limits(self) -> Limits:
        """As an executor has them."""
        return Limits(deploy_s=self.deploy_s, stuck_s=self.stuck_s, catch_up_s=self.catch_up_s)


@dataclass(eq=False)
class Look:
    """One look after another at a flow. Remembers no more than the log's story, and who waits to be started."""

    executor: Executor
    clock: Callable[[], float]
    since: dict[int, float] = field(default_factory=dict)
    """Epoch that is to be started -> when that was seen first."""

    @classmethod
    def open(cls, followed: Followed, clock: Callable[[], float] = time.time) -> Look:
        """Of a flow, from the beginning of its log."""
        return cls(Executor(Path(followed.folder), {}, followed.limits, clock), clock)

    def look(self, epochs: Iterable[int]) -> dict[int, Verdict]:
        """The verdicts on those of ``epochs`` that there is one on. Raises ``GarbledLog``."""
        advice = self.executor.step()
        story, now = self.executor.log.story, self.clock()
        self._note_due(story, advice, now)
        verdicts = {epoch: judge_epoch(story, epoch) or self._find_lost(epoch, now) for epoch in epochs}
        return {epoch: verdict for epoch, verdict in verdicts.items() if verdict is not None}

    def _note_due(self, story: Story, advice: Advice, now: float) -> None:
        due = [each for each in advice.commands if isinstance(each, Deploy) and now >= each.not_before]
        # What was only asked for is its own task's to start, and given up if that never does. The task of one that had
        # to wait until the old graph was gone, which it is the owner by, or for its state, has no worker any more.
        known = [story.epochs[each.epoch] for each in due if each.epoch in story.epochs]
        begun = [each.record.epoch for each in known if each.begun is not None or _has_waited(story, each)]
        # What fills the inboxes, and a standby, is nobody's own: whoever follows a graph of the flow has it started.
        shared = [each.epoch for each in due if each.epoch in SHARED]
        self.since = {epoch: self.since.get(epoch, now) for epoch in (*shared, *begun)}

    def _find_lost(self, epoch: int, now: float) -> Lost | None:
        mine = (epoch, *SHARED)
        waited = [other for other, since in self.since.items() if now - since >= (OWN_S if other in mine else OTHERS_S)]
        return Lost(min(waited)) if waited else None


def _has_waited(story: Story, epoch: EpochStory) -> bool:
    return epoch.record.epoch == story.owner or (epoch.into is not None and epoch.comes_after)


@dataclass(eq=False)
class Poll:
    """The shared look at one flow; ends with the last task that follows it."""

    look: Look
    waiting: dict[int, set[asyncio.Future[Verdict]]] = field(default_factory=dict)
    """Epoch -> tasks that follow it."""
    task: asyncio.Task[None] | None = None
    trouble: str = ""
    """Why it could not look at the last time."""
    torn_since: float | None = None
    """Since when the log says what it can't, in seconds since 1970."""

    async def run(self) -> None:
        """Look until nobody waits."""
        while self.waiting:
            try:
                # In a thread: it reads files, which a frozen disk may hold up for long.
                verdicts = await asyncio.to_thread(self.look.look, tuple(self.waiting))
                self.trouble, self.torn_since = "", None
            except Exception as error:  # noqa: BLE001 - the disk may be away: no reason to end a stream
                verdicts = self._judge_trouble(error)
            self._hand_out(verdicts)
            await asyncio.sleep(POLL_S)

    def _judge_trouble(self, error: Exception) -> dict[int, Verdict]:
        """Say it once. A log that stays torn is mended by nobody but a person, who is to hear of it."""
        if self.trouble != str(error):
            log.warning("cannot look at the stream in %s, trying again: %s", self.look.executor.flow.folder, error)
        self.trouble = str(error)
        if not isinstance(error, GarbledLog | IllegalTransition):
            return {}
        now = self.look.clock()
        self.torn_since = now if self.torn_since is None else self.torn_since
        if now < self.torn_since + TORN_S:
            return {}
        end: Verdict = End("failed", f"the stream's log can't be read: {error}")
        return dict.fromkeys(self.waiting, end)

    def _hand_out(self, verdicts: dict[int, Verdict]) -> None:
        for epoch, verdict in verdicts.items():
            for waiter in self.waiting.pop(epoch, ()):
                if not waiter.done():
                    waiter.set_result(verdict)


POLLS: dict[Followed, Poll] = {}
"""One entry a flow that tasks of this triggerer follow."""


async def wait_for_verdict(followed: Followed, epoch: int) -> Verdict:
    """What becomes of who follows the epoch, as soon as there is something."""
    poll = POLLS.get(followed)
    if poll is None:
        poll = POLLS[followed] = Poll(Look.open(followed))
    waiter: asyncio.Future[Verdict] = asyncio.get_running_loop().create_future()
    poll.waiting.setdefault(epoch, set()).add(waiter)
    if poll.task is None or poll.task.done():
        poll.task = asyncio.create_task(poll.run())  # kept: the loop itself holds tasks weakly
    try:
        return await waiter
    finally:
        _stop_waiting(followed, poll, epoch, waiter)


def _stop_waiting(followed: Followed, poll: Poll, epoch: int, waiter: asyncio.Future[Verdict]) -> None:
    waiters = poll.waiting.get(epoch, set())
    waiters.discard(waiter)
    if not waiters:
        poll.waiting.pop(epoch, None)
    if not poll.waiting and POLLS.get(followed) is poll:
        del POLLS[followed]
