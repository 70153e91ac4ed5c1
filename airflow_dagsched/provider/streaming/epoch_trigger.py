"""The watcher of a stream's asset: it runs in the triggerer as long as the DAG is not paused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from airflow_dagsched.errors import InvalidInput

if TYPE_CHECKING:
    from airflow_dagsched.provider.streaming.epoch_watch import EpochWatch

POLL_S = 5.0


class EpochTrigger(BaseEventTrigger):
    """Fires as long as a stream needs a run: of changed code, or in place of one that was lost.

    Its arguments tell it from those of other code: as soon as a changed file is parsed, Airflow ends this one and
    starts another. That looks to it like a person's act (``on_kill``), so nothing is ever stopped here.
    """

    def __init__(self, dag_id: str, flow: str, launch: str, work_dir: str, fingerprint: str) -> None:
        super().__init__()
        self.dag_id, self.flow, self.launch = dag_id, flow, launch
        self.work_dir, self.fingerprint = work_dir, fingerprint

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """As Airflow stores it; a triggerer makes it anew from that."""
        return f"{__name__}.{type(self).__name__}", {
            "dag_id": self.dag_id,
            "flow": self.flow,
            "launch": self.launch,
            "work_dir": self.work_dir,
            "fingerprint": self.fingerprint,
        }

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """One event for each run that is needed; never ends."""
        # A DAG file that names the trigger runs nothing of it.
        from airflow_dagsched.provider.streaming.epoch_watch import watch_flow

        watch = watch_flow(self.work_dir, self.dag_id, self.flow, self.fingerprint)
        trouble = ""
        while True:
            try:
                event, trouble = await self._look_once(watch), ""
            except Exception as error:  # noqa: BLE001 - the API server or a disk may be away: that is no end
                if trouble != str(error):
                    self.log.warning("cannot look at stream %s of %s, trying again: %s", self.flow, self.dag_id, error)
                event, trouble = None, str(error)
            if event is not None:
                yield event
            await asyncio.sleep(POLL_S)

    async def _look_once(self, watch: EpochWatch) -> TriggerEvent | None:
        from asgiref.sync import sync_to_async

        # The SDK's call and files block, and all triggers of this triggerer share one loop.
        states = await sync_to_async(self._ask_states)(watch)
        need = await sync_to_async(watch.look)(states)
        return None if need is None else TriggerEvent(self._tell(need, watch))

    def _ask_states(self, watch: EpochWatch) -> dict[str, str | None]:
        """Run -> state of its launch task: of the one that follows, or of all runs where that one does not."""
        from airflow_dagsched.provider.streaming.need_of_run import AT_WORK

        # The DAG has more runs each week, and this is asked every few seconds.
        follower = watch.find_follower()
        # A run that is to move the stream is none that follows it until it has asked for its epoch.
        states = self._ask([follower]) if follower and watch.move is None else {}
        return states if states.get(follower) in AT_WORK else self._ask(None)

    def _ask(self, runs: list[str] | None) -> dict[str, str | None]:
        from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

        found = RuntimeTaskInstance.get_task_states(dag_id=self.dag_id, task_ids=[self.launch], run_ids=runs)
        return {run: tasks[self.launch] for run, tasks in found.items() if self.launch in tasks}

    def _tell(self, need: str, watch: EpochWatch) -> dict[str, Any]:
        move = watch.move if need == "moved" else None
        why = need if move is None else move.reason
        self.log.info("stream %s of %s needs a run: %s", self.flow, self.dag_id, why)
        told = {"dag_id": self.dag_id, "flow": self.flow, "fingerprint": self.fingerprint, "reason": need}
        return told if move is None else {**told, "epoch": move.epoch, "why": why}


class UnfilledTrigger(BaseEventTrigger):
    """In the place of an asset's watcher until its dataflow is known. One that stays makes the DAG an import error."""

    def __init__(self, flow: str) -> None:
        super().__init__()
        self.flow = flow

    def serialize(self) -> NoReturn:
        """Raises :class:`InvalidInput`: without a watcher the DAG would never run, and nothing would say so."""
        raise InvalidInput(
            f"StreamEpochs({self.flow!r})",
            "",
            "no streaming dataflow of this name is in the DAG that has it as its schedule: write the name of one, "
            "SparkDataflow(name, mode='streaming', ...)",
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Nothing: it is never started."""
        return
        yield TriggerEvent(None)
