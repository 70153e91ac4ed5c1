"""The tasks that follow a flow's epochs, in one process, as in a triggerer: of each what its worker does until the
queries run, then what its trigger does, and again.

``python -m tests.faults.follow FLOW_FOLDER OUTCOMES``; as a task ends its outcome is written there, under its epoch.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from airflow.triggers.base import TaskSuccessEvent, TriggerEvent

from airflow_dagsched.exclusive import replace_text
from airflow_dagsched.provider.streaming.launch_stream import wait_until_started
from airflow_dagsched.provider.streaming.launching import Launching
from airflow_dagsched.provider.streaming.start_driver import Starter
from airflow_dagsched.provider.streaming.trigger import StreamTrigger
from airflow_dagsched.provider.streaming.verdicts import End
from airflow_dagsched.switch.advising.advice import Deploy
from airflow_dagsched.switch.log.executor import Executor
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.places import FlowPlaces

LIMITS = (900.0, 1800.0, 21_600.0)
"""As a launch task hands them to its trigger: seconds to start, to the next batch, and to catch up."""
WORKER, TRIGGER = "worker", "trigger"
"""Printed with the epoch as its task goes there."""
LOOK_S = 0.2


async def follow_all(folder: Path, outcomes: Path) -> None:
    """Follow each epoch from when it is asked for, until the process is ended."""
    log, tasks = FlowLog(FlowPlaces(folder).log), dict[int, asyncio.Task[None]]()
    while True:
        log.read()
        for epoch in log.story.epochs:
            outcome = name_outcome(outcomes, epoch)
            if epoch not in tasks and not outcome.exists():
                tasks[epoch] = asyncio.create_task(follow(folder, epoch, outcome))
        await asyncio.sleep(LOOK_S)


def name_outcome(outcomes: Path, epoch: int) -> Path:
    """The file that says how the task ended which followed the epoch."""
    return outcomes / f"{epoch}.json"


async def follow(folder: Path, epoch: int, outcome: Path) -> None:
    """Until the task ends, and that is written down."""
    try:
        ended = await find_end(folder, epoch)
    except Exception as error:  # noqa: BLE001 - as of a task: it fails
        ended = {"state": "failed", "reason": repr(error)}
    replace_text(outcome, json.dumps(ended))


async def find_end(folder: Path, epoch: int) -> dict[str, Any]:
    """How the task ends, once it does."""
    while True:
        print(WORKER, epoch, flush=True)
        end = await asyncio.to_thread(work, folder, epoch)
        if end is not None:
            return {"state": end.state, "returned": dict(end.returned)}
        print(TRIGGER, epoch, flush=True)
        event = await wait_outside(folder, epoch)
        if isinstance(event, TaskSuccessEvent):
            return {"state": "success", "returned": (event.xcoms or {}).get("return_value")}
        if event.payload["event"] != "lost":
            return {"state": "failed", "reason": event.payload["reason"]}


def work(folder: Path, epoch: int) -> End | None:
    """What the worker does, the first time and each time that the trigger wakes it; how the task ends, if it does."""
    launching = open_launching(folder)
    launching.executor.log.read()
    launching.step(epoch)
    return wait_until_started(launching, epoch)


def open_launching(folder: Path) -> Launching:
    """A launch task that may start drivers, without its DAG."""
    flow = FlowPlaces(folder)
    starter = Starter(flow, lambda: executor.log.story, time.time)
    executor = Executor(flow.folder, {Deploy: starter.deploy})
    task: Any = SimpleNamespace(stopped=False)
    return Launching(task, {}, flow, executor, starter, time.time, time.sleep)


async def wait_outside(folder: Path, epoch: int) -> TriggerEvent:
    """The event that ends the trigger, which is made of what Airflow keeps of it."""
    _, arguments = StreamTrigger(str(folder), epoch, *LIMITS).serialize()
    return await anext(StreamTrigger(**arguments).run())


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    asyncio.run(follow_all(Path(sys.argv[1]), Path(sys.argv[2])))
