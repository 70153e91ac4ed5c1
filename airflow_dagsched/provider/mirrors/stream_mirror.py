"""Mirrors of a stream: they wait as long as their launch task follows its epoch, for weeks, and end as it does.

What an epoch is made of is in its folder. A run that goes on while its DAG file changes gets mirrors of steps that its
epoch never had: those end at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow.triggers.base import TaskFailedEvent, TaskSkippedEvent, TaskSuccessEvent, TriggerEvent
from msgspec.structs import asdict

from airflow_dagsched.launch.protocol.wire import load_json
from airflow_dagsched.provider.mirrors.launch_states import States, wait_for_states
from airflow_dagsched.provider.mirrors.light import LightTrigger
from airflow_dagsched.provider.mirrors.mirror_args import STREAM_TRIGGER, StreamArgs
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.log.signs_files import read_ended, read_follower
from airflow_dagsched.switch.places import FlowPlaces, name_flow
from airflow_dagsched.switch.records import GarbledLog
from airflow_dagsched.switch.signs import Ended
from airflow_dagsched.switch.story import EpochStory, Story

POLL_S = 5.0
OVER = frozenset({"success", "failed", "skipped", "upstream_failed", "removed"})
"""States in which a launch task follows no epoch any more."""


@dataclass(frozen=True, slots=True)
class Followed:
    """The epoch that a run follows, as far as it can be seen."""

    epoch: EpochStory
    ended: Ended | None
    steps: frozenset[str] | None
    """None: that is not known."""


def is_over(states: States) -> bool:
    """Whether the launch task has ended."""
    return all(state in OVER for state in states.values())


def tell_wait(launch: str, states: States) -> str:
    """What a launch task that follows nothing now waits for; empty: it follows, or has ended."""
    waits = states.get(launch) == "scheduled"
    return f"{launch} waits for a worker: while the DAG is paused it gets none, and a lost driver stays away" * waits


def find_epoch(story: Story, run_id: str) -> EpochStory | None:
    """The newest epoch that the run asked for, or follows."""
    mine = [each for each in story.epochs.values() if run_id in (_name_follower(each), each.record.run_id)]
    return max(mine, key=lambda each: each.record.epoch, default=None)


def find_adopted(flow: FlowPlaces, story: Story, run_id: str) -> EpochStory | None:
    """The epoch whose driver lived as the run came to follow it: there is no record of that."""
    followers = {number: read_follower(flow.name_epoch(each.record.x_folder)) for number, each in story.epochs.items()}
    mine = [number for number, each in followers.items() if each is not None and each.run_id == run_id]
    return story.epochs[max(mine)] if mine else None


def _name_follower(epoch: EpochStory) -> str:
    return epoch.started.x_run_id if epoch.started else ""


def look_at_run(flow: FlowPlaces, run_id: str) -> Followed | None:
    """What is to be seen of the epoch that the run follows; None if it has none, or the log is torn."""
    log = FlowLog(flow.log)
    try:
        log.read()
    except GarbledLog:
        return None
    epoch = find_adopted(flow, log.story, run_id) or find_epoch(log.story, run_id)
    if epoch is None:
        return None
    places = flow.name_epoch(epoch.record.x_folder)
    return Followed(epoch, read_ended(places), _read_steps(places.manifest))


def _read_steps(manifest: Path) -> frozenset[str] | None:
    try:
        raw = load_json(manifest.read_text("utf-8", "replace"))
        return frozenset(str(step["id"]) for step in raw["steps"])
    except (OSError, ValueError, LookupError, TypeError):
        return None


def is_foreign(followed: Followed | None, step: str) -> bool:
    """Whether the step is not part of the run's epoch."""
    return followed is not None and followed.steps is not None and step not in followed.steps


def explain_end(followed: Followed | None, step: str) -> str:
    """What the log of a mirror says of how the stream ended."""
    if followed is None:
        return ""
    end = followed.epoch.aborted or followed.epoch.stopped
    reason = f"epoch {followed.epoch.record.epoch}: {end.reason}" if end else ""
    ended = followed.ended
    if ended is not None and ended.step == step:
        return "\n".join(filter(None, [reason, ended.traceback or ended.message]))
    return reason


class StreamMirrorTrigger(LightTrigger):
    """Ends the mirror of one step of a stream with its launch task."""

    def __init__(self, launch: str, step: str, work_dir: str, flow: str) -> None:
        super().__init__()
        self.args = StreamArgs(launch, step, work_dir, flow)

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """As Airflow stores it; a triggerer makes it anew from that."""
        return STREAM_TRIGGER, asdict(self.args)

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """One event, the end."""
        ti: Any = self.task_instance
        at = self.args
        flow = name_flow(Path(at.work_dir), ti.dag_id, at.flow)
        followed = await asyncio.to_thread(look_at_run, flow, ti.run_id)
        if followed is not None and is_foreign(followed, at.step):
            self.log.info("%s is not part of epoch %s of this run", at.step, followed.epoch.record.epoch)
            yield TaskSuccessEvent()
            return
        state = await self._wait_until_over(ti.dag_id, ti.run_id)
        reason = explain_end(await asyncio.to_thread(look_at_run, flow, ti.run_id), at.step)
        yield self._make_event(state, reason or f"{at.launch} is {state}")

    async def _wait_until_over(self, dag_id: str, run_id: str) -> str:
        """The state in which the launch task ends; what it waits for until then is said once."""
        launch, said = self.args.launch, ""

        def is_news(states: States) -> bool:
            return is_over(states) or tell_wait(launch, states) != said

        while not is_over(states := await wait_for_states(dag_id, run_id, (launch,), is_news, POLL_S)):
            said = tell_wait(launch, states)
            if said:
                self.log.info("%s", said)
        return str(states[launch])

    def _make_event(self, state: str, reason: str) -> TriggerEvent:
        if state in ("success", "skipped"):
            self.log.info("%s", reason)
            return TaskSuccessEvent() if state == "success" else TaskSkippedEvent()
        self.log.error("%s", reason)
        return TaskFailedEvent()
