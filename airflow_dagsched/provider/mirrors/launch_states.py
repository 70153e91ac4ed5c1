"""States of launch tasks as those see them who wait for them in a triggerer: one request a DAG for all.

Runs queue by the hundred (a backfill behind a small pool), and a triggerer answers one request of its triggers at a
time: each waiter looking for itself would leave the mirrors of launch tasks that run without answers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
from asgiref.sync import sync_to_async

log = logging.getLogger(__name__)

States = Mapping[str, str | None]
"""Launch task -> its state; None: it is none yet, or no more."""


@dataclass(eq=False)
class Waiter:
    """Who waits for these launch tasks of one run."""

    run_id: str
    launches: tuple[str, ...]
    is_met: Callable[[States], bool]
    met: asyncio.Future[States]


@dataclass(eq=False)
class Poll:
    """The shared look at all launch tasks of a DAG that somebody waits for; ends with the last of those."""

    dag_id: str
    pace_s: float
    waiting: set[Waiter] = field(default_factory=set)
    task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Look until nobody waits."""
        while self.waiting:
            try:
                await self._look_once()
            except Exception as error:  # noqa: BLE001 - the database may be away: no reason to end who waits
                log.warning("cannot look at the launch tasks of %s, trying again: %s", self.dag_id, error)
            await asyncio.sleep(self.pace_s)

    async def _look_once(self) -> None:
        asked = tuple(self.waiting)
        # One question for all: it blocks a thread, and the triggerer answers them one at a time.
        answer = await sync_to_async(RuntimeTaskInstance.get_task_states)(
            dag_id=self.dag_id,
            task_ids=sorted({launch for waiter in asked for launch in waiter.launches}),
            run_ids=sorted({waiter.run_id for waiter in asked}),
        )
        for waiter in asked:
            states = {launch: answer.get(waiter.run_id, {}).get(launch) for launch in waiter.launches}
            if not waiter.met.done() and waiter.is_met(states):
                waiter.met.set_result(states)


POLLS: dict[tuple[str, float], Poll] = {}
"""One entry a DAG and pace."""


async def wait_for_states(
    dag_id: str, run_id: str, launches: tuple[str, ...], is_met: Callable[[States], bool], pace_s: float
) -> States:
    """The states of the launch tasks of a run, as soon as ``is_met`` says yes to them.

    :param pace_s: seconds between two looks.
    """
    key = (dag_id, pace_s)
    poll = POLLS.setdefault(key, Poll(*key))
    waiter = Waiter(run_id, launches, is_met, asyncio.get_running_loop().create_future())
    poll.waiting.add(waiter)
    if poll.task is None or poll.task.done():
        poll.task = asyncio.create_task(poll.run())  # kept: the loop itself holds tasks weakly
    try:
        return await waiter.met
    finally:
        poll.waiting.discard(waiter)
        if not poll.waiting and POLLS.get(key) is poll:
            del POLLS[key]
