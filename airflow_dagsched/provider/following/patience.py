"""Asking Airflow again while its API server is away: a try that gives up loses a retry, and nothing is won."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from airflow.sdk.exceptions import AirflowRuntimeError, ErrorType

T = TypeVar("T")

log = logging.getLogger(__name__)

ASKS_FOR_S = 300.0
"""Airflow itself ends a task before, as it is set by default."""
AGAIN_S = 1.0
"""Between two tries; each has Airflow's own retries inside."""
SERVER_ERRORS = 500


def ask_patiently(ask: Callable[[], T], within_s: float = ASKS_FOR_S, again_s: float = AGAIN_S) -> T:
    """What ``ask`` answers, as soon as somebody is there to ask; raises what it raised if that takes too long."""
    until = time.monotonic() + within_s
    while True:
        try:
            return ask()
        except AirflowRuntimeError as error:
            if not is_unanswered(error) or time.monotonic() > until:
                raise
            log.warning("Airflow's API server does not answer, asking again: %s", error)
        time.sleep(again_s)


def is_unanswered(error: AirflowRuntimeError) -> bool:
    """Whether no API server has said no: none was there, or a proxy in front of it answered."""
    # Without a status nobody has answered: that counts as a server's error.
    status = int((error.error.detail or {}).get("status_code") or SERVER_ERRORS)
    return error.error.error is ErrorType.API_SERVER_ERROR and status >= SERVER_ERRORS
