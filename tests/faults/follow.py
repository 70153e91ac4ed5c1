"""The task that follows an epoch, as a process: what its worker does until the queries run, then what its trigger does.

``python -m tests.faults.follow FLOW_FOLDER EPOCH OUTCOME``; the outcome is written as the task ends.
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
from airflow_dagsched.switch.places import FlowPlaces

LIMITS = (900.0, 1800.0, 21_600.0)
"""As a launch task hands them to its trigger: seconds to start, to the next batch, and to catch up."""

WORKER, TRIGGER = "worker", "trigger"
"""Printed as it goes there."""


def follow(folder: Path, epoch: int) -> dict[str, Any]:
    """Until the task ends; how."""
    while True:
        print(WORKER, flush=True)
        end = work(open_launching(folder), epoch)
        if end is not None:
            return {"state": end.state, "returned": dict(end.returned)}
        print(TRIGGER, flush=True)
        event = asyncio.run(wait_outside(folder, epoch))
        if isinstance(event, TaskSuccessEvent):
            return {"state": "success", "returned": (event.xcoms or {}).get("return_value")}
        if event.payload["event"] != "lost":
            return {"state": "failed", "reason": event.payload["reason"]}


def open_launching(folder: Path) -> Launching:
    """A launch task that may start drivers, without its DAG."""
    flow = FlowPlaces(folder)
    starter = Starter(flow, lambda: executor.log.story, time.time)
    executor = Executor(flow.folder, {Deploy: starter.deploy})
    task: Any = SimpleNamespace(stopped=False)
    return Launching(task, {}, flow, executor, starter, time.time, time.sleep)


def work(launching: Launching, epoch: int) -> End | None:
    """What the worker does, the first time and each time that the trigger wakes it."""
    launching.executor.log.read()
    launching.step(epoch)
    return wait_until_started(launching, epoch)


async def wait_outside(folder: Path, epoch: int) -> TriggerEvent:
    """The event that ends the trigger, which is made of what Airflow keeps of it."""
    _, arguments = StreamTrigger(str(folder), epoch, *LIMITS).serialize()
    return await anext(StreamTrigger(**arguments).run())


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    replace_text(Path(sys.argv[3]), json.dumps(follow(Path(sys.argv[1]), int(sys.argv[2]))))
