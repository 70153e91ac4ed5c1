"""Gives a launch task the try back that it lost because Airflow's API server was away.

::

    API server   ────────.                             .──────────
    try 1        ▒▒▒▒▒▒▒▒▒▒▒▒▒ no heartbeat: ended      │
    try 2, 3                      cannot begin          │
    try 4                                                 ▒▒▒▒▒▒▒▒▒▒▒▒▒  reuses what try 1 committed

A worker ends a task that could send no heartbeat for a while, and cannot tell of it; its executor reports a failure,
which Airflow counts as one of the task's retries. While nobody answers, the next one is lost within seconds. So a
listener in the scheduler, which Airflow tells of each failure, asks the API server: where there is no answer, the try
does not count. It is asked once in some seconds, for the scheduler waits meanwhile.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from airflow.listeners import hookimpl

LAUNCH_MODULES = ("airflow_dagsched.provider.wiring.launch", "airflow_dagsched.provider.wiring.stream_launch")
ANSWERS_WITHIN_S = 2.0
ASK_EVERY_S = 10.0
MOST_TRIES = 100
"""More than the author's retries. A scheduler that can never reach the API server would give back every try."""
SERVER_ERRORS = 500
"""From here on: what a proxy says whose server is away."""


@dataclass
class Asked:
    """The last answer, and when it came, in seconds of the monotonic clock."""

    at: float = float("-inf")
    away: bool = False


_asked = Asked()


@hookimpl
def on_task_instance_failed(previous_state: Any, task_instance: Any, error: Any) -> None:
    """Raise the number of tries of a launch task that is to be retried, where its try could not be heard of.

    One without retries, or that has none left, has failed by now, as its author wants it.
    """
    if not is_launch_in_scheduler(task_instance) or task_instance.state != "up_for_retry":
        return
    if task_instance.try_number <= task_instance.task.retries + MOST_TRIES and is_api_server_away():
        task_instance.max_tries += 1


def is_launch_in_scheduler(task_instance: Any) -> bool:
    """Workers tell listeners of failures too: with the task itself, not as it was read from the database."""
    return getattr(getattr(task_instance, "task", None), "_task_module", "") in LAUNCH_MODULES


def is_api_server_away() -> bool:
    """Whether nobody answers where workers send their heartbeats."""
    # An outage fails many tasks at one moment, and the scheduler stands still for each question.
    if time.monotonic() - _asked.at > ASK_EVERY_S:
        _asked.away = not is_answering(f"{find_execution_api().rstrip('/')}/health", ANSWERS_WITHIN_S)
        _asked.at = time.monotonic()
    return _asked.away


def find_execution_api() -> str:
    """Address of the API that workers use."""
    # Airflow loads the plugin in every process; only a scheduler, and a worker that begins a try, get here.
    from airflow.executors.base_executor import get_execution_api_server_url

    return get_execution_api_server_url()


def is_answering(url: str, within_s: float) -> bool:
    """Whether a server is there: what it answers doesn't matter, but for errors of its own."""
    from urllib.error import HTTPError
    from urllib.request import urlopen

    try:
        with urlopen(url, timeout=within_s):
            return True
    except HTTPError as refused:
        return refused.code < SERVER_ERRORS  # a refusal is an answer, too
    except OSError:
        return False
