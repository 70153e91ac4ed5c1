"""Mirrors' eyes: one poll per launch task, shared by all its mirrors, in the triggerer.

A mirror holds no worker slot: the scheduler hands it straight to the triggerer, where it waits for its
verdict (:func:`airflow_dagsched.launch.protocol.feed.decide_verdict`). Mirrors are released in the order in which the
launch task reported their steps, so none turns green before those above it. Their XComs are there by then: the launch
task sets them. (A triggerer answers one request of its triggers at a time, with a round of queries to the
database between two; and stores the XComs of an end event as text, which workers read as text.)
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk.bases.xcom import BaseXCom
from airflow.sdk.exceptions import AirflowException, AirflowRescheduleException, AirflowSkipException
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
from airflow.sdk.timezone import utcnow
from airflow.triggers.base import (
    TaskFailedEvent,
    TaskSkippedEvent,
    TaskSuccessEvent,
    TriggerEvent,
)
from asgiref.sync import sync_to_async

from airflow_dagsched.launch.protocol.feed import (
    FEED_KEY,
    End,
    Feed,
    Verdict,
    Wait,
    decide_elsewhere,
    decide_verdict,
    is_of_its_round,
    name_returned_key,
)
from airflow_dagsched.launch.protocol.identity import NO_TRY, TryId, read_creation_time
from airflow_dagsched.launch.protocol.push_limit import read_feed
from airflow_dagsched.provider.mirrors.light import LightTrigger
from airflow_dagsched.provider.mirrors.mirror_args import TRIGGER, MirrorArgs, collect_kwargs

if TYPE_CHECKING:
    from airflow.sdk import Context
    from airflow.triggers.base import StartTriggerArgs

log = logging.getLogger(__name__)

POLL_S = 0.5
NO_VALUE = (ImportError, RecursionError, ValueError)
"""What Airflow raises as it makes a value of an XCom that is none; it asks for nothing meanwhile."""


@dataclass(frozen=True, slots=True)
class Watched:
    """Names the launch task of one run."""

    dag_id: str
    run_id: str
    launch: str


@dataclass(frozen=True, slots=True)
class View:
    """What one look showed: the launch task's state and the feed of its latest try."""

    state: str | None = None
    feed: Feed | None = None
    seen: str = ""
    """Nonce of the feed that was there, whether it counts or not."""
    stale: str = ""
    """Nonce of a feed that was there before the launch task was seen not to have started: an earlier try's."""
    latest: TryId = NO_TRY
    """The greatest of the tries that were seen."""


def update_view(before: View, state: str | None, raw: Any) -> View:
    """The next view: a feed that was there before the try began does not count, nor what an earlier try says after a
    later one (a worker that was frozen, and woke).

    The state was asked before the feed, and a try may have begun between: only a feed that the look before this one
    saw too is an earlier try's for sure.
    """
    feed = _parse_feed(raw) if raw else None
    if feed is not None and feed.try_id < before.latest:
        feed = before.feed
    if feed is None:
        return View(state, stale=before.stale, latest=before.latest)
    started = state not in (None, "scheduled", "queued", "restarting")
    # A launch task that has not started says nothing: what is there an earlier try has left.
    stale = before.stale if started or feed.nonce != before.seen else feed.nonce
    return View(state, None if feed.nonce == stale else feed, feed.nonce, stale, feed.try_id)


def _parse_feed(raw: Any) -> Feed | None:
    """The feed; None where it is none, as what workers of another version than the triggerer say: mirrors then end
    with their launch task, instead of never.
    """
    feed = read_feed(raw)
    if feed is None:
        log.warning("a feed that can't be read (are workers and triggerer of one version?): %.200r", raw)
    return feed


@dataclass(eq=False)
class Waiter:
    """A mirror that waits for its verdict. It logs for itself: a log line belongs to the coroutine that writes it."""

    step: str
    made: float
    """See ``decide_verdict``."""
    is_own: bool = True
    """Whether the launch task that is looked at is the step's own."""
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
            asked = tuple(self.waiting.values())
            try:
                await self._look_once()
                self._release_ended(asked)
            except Exception as error:  # noqa: BLE001 - the API server may be away: no reason to end a mirror
                log.warning("cannot look at %s, trying again: %s", self.watched.launch, error)
            await asyncio.sleep(POLL_S)

    async def _look_once(self) -> None:
        """The state first: a feed read after it is the last word of a launch task that has ended."""
        at, state = self.watched, self.view.state
        if state != "running" or not self._news:  # whoever pushed news at the last look was running then
            # The SDK's call blocks, and all triggers of this triggerer share one loop.
            states = await sync_to_async(RuntimeTaskInstance.get_task_states)(
                dag_id=at.dag_id, task_ids=[at.launch], run_ids=[at.run_id]
            )
            state = states.get(at.run_id, {}).get(at.launch)
        try:
            raw = await BaseXCom.aget_one(key=FEED_KEY, dag_id=at.dag_id, task_id=at.launch, run_id=at.run_id)
        # As something that cannot be read: the mirrors then go by the state of their launch task.
        except NO_VALUE as error:
            raw = f"{type(error).__name__}: {error}"
        seen, self.view = self.view, update_view(self.view, state, raw)
        self._news = self.view.feed != seen.feed

    def _release_ended(self, asked: Iterable[Waiter]) -> None:
        """Hand out verdicts, in the order in which the steps ended. Whoever came while this looked waits for the next
        look: what was seen may be older than the clear that made its mirror anew.
        """
        feed = self.view.feed
        order = {step: at for at, step in enumerate(feed.steps)} if feed else {}
        for waiter in sorted(asked, key=lambda each: (order.get(each.step, len(order)), each.step)):
            # Cleared and deferred again it waits under the same name, as another.
            if self.waiting.get(waiter.step) is not waiter:
                continue
            self._tell_lines(waiter)
            found = self._judge(waiter)
            if isinstance(found, End):
                waiter.news.put_nowait(found)
                del self.waiting[waiter.step]

    def _judge(self, waiter: Waiter) -> Verdict:
        state, feed = self.view.state, self.view.feed
        if waiter.is_own:
            return decide_verdict(state, feed, waiter.step, waiter.made, self.watched.launch)
        return decide_elsewhere(state, feed, waiter.step, waiter.made)

    def _tell_lines(self, waiter: Waiter) -> None:
        feed = self.view.feed
        lines = feed.logs.get(waiter.step) if feed and is_of_its_round(feed, waiter.made) else None
        if lines is None:
            return
        if lines.first > waiter.seen:
            # The feed holds the last lines of a step only.
            waiter.news.put_nowait(f"... {lines.first - waiter.seen} lines left out, {self.watched.launch} has them")
        for line in lines.since(waiter.seen):
            waiter.news.put_nowait(line)
        waiter.seen = lines.first + len(lines.lines)


POLLS: dict[Watched, Poll] = {}
"""One entry a launch task that mirrors of this triggerer wait for."""


async def wait_for_end(
    watched: Watched, step: str, made: float, show: Callable[[str], None], others: Iterable[str] = ()
) -> End:
    """The verdict on ``step``, whose mirror was ``made`` then, as soon as there is one; until then its lines go to
    ``show``.

    :param others: launch tasks that may run the step as well.
    """
    news: asyncio.Queue[str | End] = asyncio.Queue()
    waiters = {replace(watched, launch=other): Waiter(step, made, False, news) for other in others}
    waiters[watched] = Waiter(step, made, True, news)
    for each, waiter in waiters.items():
        _begin_to_wait(each, waiter)
    try:
        while not isinstance(said := await news.get(), End):
            show(said)
        return said
    finally:
        for each, waiter in waiters.items():
            _stop_waiting(each, waiter)


def _begin_to_wait(watched: Watched, waiter: Waiter) -> None:
    poll = POLLS.setdefault(watched, Poll(watched))
    poll.waiting[waiter.step] = waiter
    if poll.task is None or poll.task.done():
        poll.task = asyncio.create_task(poll.run())  # kept: the loop itself holds tasks weakly


def _stop_waiting(watched: Watched, waiter: Waiter) -> None:
    poll = POLLS.get(watched)
    # Only its own: a successor may wait under its name by now.
    if poll is not None and poll.waiting.get(waiter.step) is waiter:
        del poll.waiting[waiter.step]
    if poll is not None and not poll.waiting:
        del POLLS[watched]


class MirrorTrigger(LightTrigger):
    """Ends the mirror of one step with the step's own state."""

    def __init__(self, launch: str, step: str, others: Sequence[str] = ()) -> None:
        super().__init__()
        self.args = MirrorArgs(launch, step, tuple(others))

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """As Airflow stores it; a triggerer makes it anew from that."""
        return TRIGGER, collect_kwargs(self.args)

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """One event, the end."""
        ti: Any = self.task_instance
        watched = Watched(ti.dag_id, ti.run_id, self.args.launch)
        made = read_creation_time(ti.id)
        end = await wait_for_end(watched, self.args.step, made, self.log.info, self.args.others)
        yield make_event(end, self.log)


def make_event(end: End, logger: Any) -> TriggerEvent:
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


def conclude_or_reschedule(start: StartTriggerArgs, context: Context) -> Any:
    """One look from a worker, for ``dag.test()``, which knows no ``start_from_trigger``."""
    ti = context["ti"]
    given = start.trigger_kwargs or {}
    # That of a stream has the flow's folder beside it.
    args = MirrorArgs(given["launch"], given["step"], tuple(given.get("others", ())))
    states = RuntimeTaskInstance.get_task_states(dag_id=ti.dag_id, task_ids=[args.launch], run_ids=[ti.run_id])
    raw = BaseXCom.get_one(key=FEED_KEY, dag_id=ti.dag_id, task_id=args.launch, run_id=ti.run_id)
    view = update_view(View(), states.get(ti.run_id, {}).get(args.launch), raw)
    found = decide_verdict(view.state, view.feed, args.step, read_creation_time(ti.id), args.launch)
    match found:
        case Wait():
            # Not deferred: ``dag.test()`` runs triggers one by one, and this one would wait for a task that comes after
            # it.
            raise AirflowRescheduleException(utcnow() + timedelta(seconds=1))
        case End("success"):
            key = name_returned_key(args.step)
            return BaseXCom.get_one(key=key, dag_id=ti.dag_id, task_id=args.launch, run_id=ti.run_id)
        case End("skipped", reason):
            raise AirflowSkipException(reason)
        case End(_, reason):
            raise AirflowException(reason)
