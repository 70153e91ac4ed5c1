"""Mirrors' eyes: one poll per launch task, shared by all its mirrors, in the triggerer.

A mirror holds no worker slot: the scheduler hands it straight to the triggerer, where it waits for its
verdict (:func:`airflow_dagsched.launch.feed.verdict`). Mirrors are released in the order in which the launch
task reported their steps, so none turns green before those above it. Their XComs are there by then: the launch
task sets them. (A triggerer answers one request of its triggers at a time, with a round of queries to the
database between two; and stores the XComs of an end event as text, which workers read as text.)
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk.bases.xcom import BaseXCom
from airflow.sdk.exceptions import AirflowException, AirflowRescheduleException, AirflowSkipException
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
from airflow.sdk.timezone import utcnow
from airflow.triggers.base import (
    BaseTrigger,
    TaskFailedEvent,
    TaskSkippedEvent,
    TaskSuccessEvent,
    TriggerEvent,
)
from asgiref.sync import sync_to_async
from msgspec.structs import asdict

from airflow_dagsched.launch.feed import FEED_KEY, End, Feed, Wait, verdict, xcoms
from airflow_dagsched.launch.wire import decode
from airflow_dagsched.provider.facts import run_started
from airflow_dagsched.provider.mirror_args import TRIGGER, MirrorArgs

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_dagsched.provider.steps import StepMirror

log = logging.getLogger(__name__)

POLL_S = 0.5


@dataclass(frozen=True, slots=True)
class Watched:
    """Names the launch task of one run, in one round: a clear begins the next one."""

    dag_id: str
    run_id: str
    launch: str
    run_started: str


@dataclass(frozen=True, slots=True)
class View:
    """What one look showed: the launch task's state and the feed of its current try."""

    state: str | None = None
    feed: Feed | None = None
    stale: str = ""
    """Nonce of the feed that was there while the launch task had not started: an earlier try's."""


def look(before: View, state: str | None, raw: Any) -> View:
    """The next view: a feed that was there before the try began does not count."""
    feed = decode(Feed, raw) if raw else None
    started = state not in (None, "scheduled", "queued")
    stale = before.stale if started or feed is None else feed.nonce
    return View(state, None if feed is None or feed.nonce == stale else feed, stale)


@dataclass(eq=False)
class Waiter:
    """A mirror that waits for its verdict. It logs for itself: a log line belongs to the coroutine that writes it."""

    step: str
    news: asyncio.Queue[str | End] = field(default_factory=asyncio.Queue)
    """Lines of its step, then its end."""
    seen: int = 0
    """Number of lines of its step it was given."""


@dataclass(eq=False)
class Poll:
    """The shared look at one launch task; ends with its last mirror."""

    watched: Watched
    view: View = field(default_factory=View)
    waiting: dict[str, Waiter] = field(default_factory=dict)
    task: asyncio.Task[None] | None = None
    _news: bool = False
    """Whether the last look showed a feed that the one before it did not."""

    async def run(self) -> None:
        """Look until nobody waits."""
        while self.waiting:
            try:
                await self._look()
            except Exception as error:  # noqa: BLE001 - the API server may be away: no reason to end a mirror
                log.warning("cannot look at %s, trying again: %s", self.watched.launch, error)
            self._release()
            await asyncio.sleep(POLL_S)

    async def _look(self) -> None:
        """The state first: a feed read after it is the last word of a launch task that has ended."""
        at, state = self.watched, self.view.state
        if state != "running" or not self._news:  # whoever pushed news at the last look was running then
            states = await sync_to_async(RuntimeTaskInstance.get_task_states)(
                dag_id=at.dag_id, task_ids=[at.launch], run_ids=[at.run_id]
            )
            state = states.get(at.run_id, {}).get(at.launch)
        raw = await BaseXCom.aget_one(key=FEED_KEY, dag_id=at.dag_id, task_id=at.launch, run_id=at.run_id)
        seen, self.view = self.view, look(self.view, state, raw)
        self._news = self.view.feed != seen.feed

    def _release(self) -> None:
        """Hand out verdicts, in the order in which the steps ended."""
        feed = self.view.feed
        order = {step: at for at, step in enumerate(feed.steps)} if feed else {}
        for step in sorted(self.waiting, key=lambda name: (order.get(name, len(order)), name)):
            waiter = self.waiting[step]
            self._tell_lines(waiter)
            found = verdict(self.view.state, feed, step, self.watched.run_started, self.watched.launch)
            if isinstance(found, End):
                waiter.news.put_nowait(found)
                del self.waiting[step]

    def _tell_lines(self, waiter: Waiter) -> None:
        feed = self.view.feed
        lines = feed.logs.get(waiter.step) if feed and feed.run_started == self.watched.run_started else None
        if lines is None:
            return
        if lines.first > waiter.seen:
            waiter.news.put_nowait(f"... {lines.first - waiter.seen} lines left out, {self.watched.launch} has them")
        for line in lines.since(waiter.seen):
            waiter.news.put_nowait(line)
        waiter.seen = lines.first + len(lines.lines)


POLLS: dict[Watched, Poll] = {}
"""One entry a launch task that mirrors of this triggerer wait for."""


async def wait_for_end(watched: Watched, step: str, show: Callable[[str], None]) -> End:
    """The verdict on ``step``, as soon as there is one; until then its lines go to ``show``."""
    poll = POLLS.setdefault(watched, Poll(watched))
    waiter = poll.waiting[step] = Waiter(step)
    if poll.task is None or poll.task.done():
        poll.task = asyncio.create_task(poll.run())
    try:
        while not isinstance(news := await waiter.news.get(), End):
            show(news)
        return news
    finally:
        if poll.waiting.get(step) is waiter:
            del poll.waiting[step]
        if not poll.waiting:
            POLLS.pop(watched, None)


class MirrorTrigger(BaseTrigger):
    """Ends the mirror of one step with the step's own state."""

    def __init__(self, launch: str, step: str) -> None:
        super().__init__()
        self.args = MirrorArgs(launch, step)

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return TRIGGER, asdict(self.args)

    async def run(self) -> AsyncIterator[TriggerEvent]:
        ti: Any = self.task_instance
        watched = Watched(ti.dag_id, ti.run_id, self.args.launch, _run_started(ti))
        end = await wait_for_end(watched, self.args.step, self.log.info)
        yield event_of(end, self.log)


def event_of(end: End, logger: Any) -> TriggerEvent:
    """The end as Airflow's trigger event; the reason goes to the mirror's log."""
    if end.reason:
        (logger.error if end.state == "failed" else logger.info)("%s", end.reason)
    if end.done is not None and end.done.failure is not None and end.done.failure.traceback:
        logger.error("%s", end.done.failure.traceback)
    match end.state:
        case "success":
            return TaskSuccessEvent()
        case "skipped":
            return TaskSkippedEvent()
        case _:
            return TaskFailedEvent()


def conclude_or_reschedule(mirror: StepMirror, context: Context) -> Any:
    """One look from a worker, for ``dag.test()``, which knows no ``start_from_trigger``."""
    ti = context["ti"]
    args = MirrorArgs(**mirror.start_trigger_args.trigger_kwargs)  # type: ignore[union-attr, arg-type]
    states = RuntimeTaskInstance.get_task_states(dag_id=ti.dag_id, task_ids=[args.launch], run_ids=[ti.run_id])
    raw = BaseXCom.get_one(key=FEED_KEY, dag_id=ti.dag_id, task_id=args.launch, run_id=ti.run_id)
    view = look(View(), states.get(ti.run_id, {}).get(args.launch), raw)
    found = verdict(view.state, view.feed, args.step, _run_started(ti), args.launch)
    match found:
        case Wait():
            raise AirflowRescheduleException(utcnow() + timedelta(seconds=1))
        case End("success", _, done):
            return xcoms(done)["return_value"] if done else None
        case End("skipped", reason):
            raise AirflowSkipException(reason)
        case End(_, reason):
            raise AirflowException(reason)


def _run_started(ti: Any) -> str:
    return run_started(ti._ti_context_from_server.dag_run)
