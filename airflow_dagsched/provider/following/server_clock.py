"""The time as Airflow's API server has it: its answers say it, as every HTTP answer does."""

from __future__ import annotations

import logging
import time
from email.message import Message
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.request import urlopen

from airflow_dagsched.launch.protocol.clocks import compare_clocks
from airflow_dagsched.provider.following.lost_tries import ANSWERS_WITHIN_S, SERVER_ERRORS, find_execution_api

log = logging.getLogger(__name__)


def ask_server_time() -> float | None:
    """Seconds since 1970, at most one too few; None where nobody says. Says in the log where our clock differs."""
    now = ask_time_at(f"{find_execution_api().rstrip('/')}/health", ANSWERS_WITHIN_S)
    wrong = compare_clocks(now, time.time()) if now is not None else ""
    if wrong:
        log.warning("%s", wrong)
    return now


def ask_time_at(url: str, within_s: float) -> float | None:
    """The time by which a server dates its answer, whatever it answers but for errors of its own."""
    try:
        with urlopen(url, timeout=within_s) as answer:
            return _read_date(answer.headers)
    except HTTPError as refused:
        # A refusal is dated as well; of an error a proxy in front may be the author, with a clock of its own.
        return _read_date(refused.headers) if refused.code < SERVER_ERRORS else None
    except (OSError, HTTPException, ValueError):
        return None


def _read_date(headers: Message) -> float | None:
    try:
        return parsedate_to_datetime(headers["Date"]).timestamp() if headers["Date"] else None
    except (ValueError, OverflowError):
        return None
