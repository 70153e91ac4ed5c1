"""Eyes of the gates: one request a DAG asks for all launch tasks that have not begun.

Runs queue by the hundred (a backfill behind a small pool), and a triggerer answers one request of its triggers at a
time: each gate looking for itself would leave the mirrors of launch tasks that run without answers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowRescheduleException
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
from airflow.sdk.timezone import utcnow
from airflow.triggers.base import TaskSuccessEvent, TriggerEvent
from asgiref.sync import sync_to_async

from airflow_dagsched.launch.protocol.feed import NOT_BEGUN
from airflow_dagsched.provider.mirrors.light import LightTrigger
from airflow_dagsched.provider.mirrors.mirror_args import START_TRIGGER, StartArgs, collect_kwargs

if TYPE_CHECKING:
    from airflow.sdk import Context

log = logging.getLogger(__name__)

POLL_S = 0.5


@dataclass(eq=False)
class Waiter:
    """A gate that waits for one of these launch tasks of one run."""

    run_id: str
    launches: tuple[str, ...]
    begun: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(eq=False)
class Poll:
    """The shared look at all launch tasks of a DAG that have not begun; ends with its last gate."""

    dag_id: str
    waiting: set[Waiter] = field(default_factory=set)
    task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Look until nobody waits."""
        while self.waiting:
            try:
                await self._look_once()
            except Exception as error:  # noqa: BLE001 - the database may be away: no reason to end a gate
                log.warning("cannot look at the launch tasks of %s, trying again: %s", self.dag_id, error)
            await asyncio.sleep(POLL_S)

    async def _look_once(self) -> None:
        asked = tuple(self.waiting)
        # One question for all: it blocks a thread, and the triggerer answers them one at a time.
        states = await sync_to_async(RuntimeTaskInstance.get_task_states)(
            dag_id=self.dag_id,
            task_ids=sorted({launch for waiter in asked for launch in waiter.launches}),
            run_ids=sorted({waiter.run_id for waiter in asked}),
        )
        for waiter in asked:
            if has_begun(states, waiter.run_id, waiter.launches):
                waiter.begun.set()


POLLS: dict[str, Poll] = {}
"""One entry a DAG."""


def has_begun(states: Any, run_id: str, launches: tuple[str, ...]) -> bool:
    """Whether one of the launch tasks runs, or has run: mirrors may look for their verdict then."""
    return any(states.get(run_id, {}).get(launch) not in NOT_BEGUN for launch in launches)


async def wait_for_start(dag_id: str, run_id: str, launches: tuple[str, ...]) -> None:
    """Return as soon as one of the launch tasks of the run has begun."""
    poll = POLLS.setdefault(dag_id, Poll(dag_id))
    waiter = Waiter(run_id, launches)
    poll.waiting.add(waiter)
    if poll.task is None or poll.task.done():
        poll.task = asyncio.create_task(poll.run())  # kept: the loop itself holds tasks weakly
    try:
        await waiter.begun.wait()
    finally:
        poll.waiting.discard(waiter)
        if not poll.waiting and POLLS.get(dag_id) is poll:
            del POLLS[dag_id]


class StartTrigger(LightTrigger):
    """Ends a gate when its launch task, or one of several, has begun."""

    def __init__(self, launch: str, others: Sequence[str] = ()) -> None:
        super().__init__()
        self.args = StartArgs(launch, tuple(others))

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """As Airflow stores it; a triggerer makes it anew from that."""
        return START_TRIGGER, collect_kwargs(self.args)

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """One event, when mirrors may be deferred."""
        ti: Any = self.task_instance
        await wait_for_start(ti.dag_id, ti.run_id, self.args.launches)
        yield TaskSuccessEvent()


def conclude_or_reschedule(args: StartArgs, context: Context) -> None:
    """One look from a worker, for ``dag.test()``, which knows no ``start_from_trigger``."""
    ti = context["ti"]
    launches = args.launches
    states = RuntimeTaskInstance.get_task_states(dag_id=ti.dag_id, task_ids=list(launches), run_ids=[ti.run_id])
    if not has_begun(states, ti.run_id, launches):
        # Not deferred: ``dag.test()`` runs a trigger on the spot, and would wait for a task that comes after.
        raise AirflowRescheduleException(utcnow() + timedelta(seconds=1))
