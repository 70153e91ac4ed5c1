"""Mirrors' eyes: one poll a second per launch task, shared by all its mirrors, in the triggerer.

A mirror holds no worker slot: the scheduler hands it straight to the triggerer, where it waits for its
verdict (:func:`airflow_dagsched.launch.feed.verdict`). Mirrors are released in the order in which the launch
task reported their steps, so none turns green before those above it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk.bases.xcom import BaseXCom
from airflow.sdk.exceptions import AirflowException, AirflowRescheduleException, AirflowSkipException
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
from airflow.sdk.timezone import utcnow
from airflow.triggers.base import (
    BaseTrigger,
    StartTriggerArgs,
    TaskFailedEvent,
    TaskSkippedEvent,
    TaskSuccessEvent,
    TriggerEvent,
)
from asgiref.sync import sync_to_async

from airflow_dagsched.launch.feed import FEED_KEY, End, Feed, Verdict, Wait, verdict, xcoms
from airflow_dagsched.launch.wire import decode

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_dagsched.provider.steps import StepMirror

POLL_S = 1.0


@dataclass(frozen=True, slots=True)
class Watched:
    """Names the launch task of one run."""

    dag_id: str
    run_id: str
    launch: str


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
class Poll:
    """The shared look at one launch task; ends with its last mirror."""

    watched: Watched
    view: View = field(default_factory=View)
    waiting: dict[str, tuple[int, asyncio.Future[End]]] = field(default_factory=dict)
    """Step -> (clear number of its mirror, its verdict to be)."""
    logs: dict[str, Any] = field(default_factory=dict)
    """Step -> its mirror's logger and the number of lines it has shown."""
    task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Look until nobody waits."""
        while self.waiting:
            try:
                await self._look()
                self._release()
            except Exception as error:  # the API server may be away for a while
                for logger in self.logs.values():
                    logger[0].warning("cannot look at %s: %s; trying again", self.watched.launch, error)
            await asyncio.sleep(POLL_S)

    async def _look(self) -> None:
        at = self.watched
        states = await sync_to_async(RuntimeTaskInstance.get_task_states)(
            dag_id=at.dag_id, task_ids=[at.launch], run_ids=[at.run_id]
        )
        raw = await BaseXCom.aget_one(key=FEED_KEY, dag_id=at.dag_id, task_id=at.launch, run_id=at.run_id)
        self.view = look(self.view, states.get(at.run_id, {}).get(at.launch), raw)

    def _release(self) -> None:
        feed = self.view.feed
        order = {step: at for at, step in enumerate(feed.steps)} if feed else {}
        for step in sorted(self.waiting, key=lambda name: (order.get(name, len(order)), name)):
            clear_number, future = self.waiting[step]
            self._show_lines(step)
            found: Verdict = verdict(self.view.state, feed, step, clear_number, self.watched.launch)
            if isinstance(found, End) and not future.done():
                future.set_result(found)

    def _show_lines(self, step: str) -> None:
        lines = self.view.feed.logs.get(step) if self.view.feed else None
        if lines is None or step not in self.logs:
            return
        logger, seen = self.logs[step]
        if lines.first > seen:
            logger.info("... %d lines left out: the log of %s has them", lines.first - seen, self.watched.launch)
        for line in lines.since(seen):
            logger.info("%s", line)
        self.logs[step] = (logger, lines.first + len(lines.lines))


POLLS: dict[Watched, Poll] = {}
"""One entry a launch task that mirrors of this triggerer wait for."""


async def wait_for_end(watched: Watched, step: str, clear_number: int, logger: Any) -> End:
    """The verdict on ``step``, as soon as there is one."""
    poll = POLLS.setdefault(watched, Poll(watched))
    future: asyncio.Future[End] = asyncio.get_running_loop().create_future()
    poll.waiting[step] = (clear_number, future)
    poll.logs[step] = (logger, 0)
    if poll.task is None or poll.task.done():
        poll.task = asyncio.create_task(poll.run())
    try:
        return await future
    finally:
        poll.waiting.pop(step, None)
        poll.logs.pop(step, None)
        if not poll.waiting:
            POLLS.pop(watched, None)


@dataclass(frozen=True, slots=True)
class MirrorArgs:
    """What a mirror's trigger knows from the DAG."""

    launch: str
    step: str


class MirrorTrigger(BaseTrigger):
    """Ends the mirror of one step with the step's own state."""

    def __init__(self, launch: str, step: str) -> None:
        super().__init__()
        self.args = MirrorArgs(launch, step)

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return TRIGGER, asdict(self.args)

    async def run(self) -> AsyncIterator[TriggerEvent]:
        ti = self.task_instance
        watched = Watched(ti.dag_id, ti.run_id, self.args.launch)
        end = await wait_for_end(watched, self.args.step, _clear_number(ti), self.log)
        yield event_of(end, self.log)


TRIGGER = f"{MirrorTrigger.__module__}.{MirrorTrigger.__qualname__}"


def trigger_args(launch: str, step: str) -> StartTriggerArgs:
    """How the scheduler starts the mirror of ``step``."""
    return StartTriggerArgs(
        trigger_cls=TRIGGER, trigger_kwargs=asdict(MirrorArgs(launch, step)), next_method="execute", timeout=None
    )


def event_of(end: End, logger: Any) -> TriggerEvent:
    """The end as Airflow's trigger event; the reason goes to the mirror's log."""
    if end.reason:
        (logger.error if end.state == "failed" else logger.info)("%s", end.reason)
    if end.done is not None and end.done.failure is not None and end.done.failure.traceback:
        logger.error("%s", end.done.failure.traceback)
    match end.state:
        case "success":
            return TaskSuccessEvent(xcoms=xcoms(end.done) if end.done else None)
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
    found = verdict(view.state, view.feed, args.step, context["dag_run"].clear_number or 0, args.launch)
    match found:
        case Wait():
            raise AirflowRescheduleException(utcnow() + timedelta(seconds=1))
        case End("success", _, done):
            values = xcoms(done) if done else {}
            for key, value in values.items():
                if key != "return_value":
                    ti.xcom_push(key=key, value=value)
            return values.get("return_value")
        case End("skipped", reason):
            raise AirflowSkipException(reason)
        case End(_, reason):
            raise AirflowException(reason)


def _clear_number(ti: Any) -> int:
    """How often the run was cleared when this mirror was handed to the triggerer."""
    context = getattr(ti, "_ti_context_from_server", None)
    return (context.dag_run.clear_number or 0) if context else 0
