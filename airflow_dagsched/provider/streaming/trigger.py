"""What a stream's launch task is while nothing has to be done: a trigger that holds no worker, for weeks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from airflow.triggers.base import TaskSuccessEvent, TriggerEvent
from asgiref.sync import sync_to_async

from airflow_dagsched.provider.mirrors.light import LightTrigger
from airflow_dagsched.provider.streaming.ending import ask_state, is_ended, order_end
from airflow_dagsched.provider.streaming.following import Followed, wait_for_verdict
from airflow_dagsched.provider.streaming.verdicts import End, Verdict
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.places import FlowPlaces

TRIGGER = "airflow_dagsched.provider.streaming.trigger.StreamTrigger"
SETTLED_S = 15.0
"""Seconds from when a task was deferred to when it is given a worker again. The scheduler hears a moment late that the
worker before is done: where the task runs again by then, that looks like one that died, and a retry is used.
"""


class StreamTrigger(LightTrigger):
    """Follows one epoch until it ends, or its driver has to be started again.

    :param folder: of the flow, below the work dir.
    :param deploy_s: seconds a new graph has to start.
    :param stuck_s: seconds a new graph has to its next batch.
    :param catch_up_s: seconds it has to be as far as the old one.
    """

    def __init__(self, folder: str, epoch: int, deploy_s: float, stuck_s: float, catch_up_s: float) -> None:
        super().__init__()
        self.followed = Followed(folder, deploy_s, stuck_s, catch_up_s)
        self.epoch = epoch

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """As Airflow stores it; a triggerer makes it anew from that."""
        return TRIGGER, {"epoch": self.epoch, **asdict(self.followed)}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """One event: a good end, without a worker; a bad one, or a lost driver, for a worker to see to."""
        since = time.monotonic()
        verdict = await wait_for_verdict(self.followed, self.epoch)
        if isinstance(verdict, End):
            self.log.info("%s", verdict.reason)
        event = make_event(verdict, self.epoch)
        await asyncio.sleep(find_rest(event, time.monotonic() - since))
        yield event

    async def on_kill(self) -> None:
        """Order the stream's end, if it was a person who ended the task, or cleared it."""
        ti: Any = self.task_instance
        # A triggerer that is given the triggers of another is told the same; and where nobody answers nothing is known.
        try:
            state = await sync_to_async(ask_state)(ti.dag_id, ti.run_id, ti.task_id)
        except Exception as error:  # noqa: BLE001 - whatever it is: the stream goes on
            self.log.warning("whether this task was ended is not known, so the stream goes on: %s", error)
            return
        if is_ended(state):
            flow = FlowPlaces(Path(self.followed.folder))
            ordered = await asyncio.to_thread(order_end, flow, FlowLog(flow.log), self.epoch, ti.run_id, time.time())
            self.log.info("the task is %s: ordered of epoch %s: %s", state or "cleared", self.epoch, ordered)


def find_rest(event: TriggerEvent, followed_s: float) -> float:
    """Seconds until the event may be told, by a task that was deferred so many seconds ago."""
    return 0.0 if isinstance(event, TaskSuccessEvent) else max(0.0, SETTLED_S - followed_s)


def make_event(verdict: Verdict, epoch: int) -> TriggerEvent:
    """The verdict as Airflow's event; a failure would use up a retry there, so a worker raises it.

    :param epoch: that the task follows.
    """
    if not isinstance(verdict, End):
        return TriggerEvent({"event": "lost", "epoch": verdict.epoch, "follows": epoch})
    if verdict.state == "success":
        return TaskSuccessEvent(xcoms={"return_value": dict(verdict.returned)})
    return TriggerEvent({"event": "ended", "reason": verdict.reason})
