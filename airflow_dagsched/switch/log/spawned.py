"""The process that an epoch's driver was started as: until that has its lease, nothing else shows that it starts.

Without it each look in the seconds that Java takes would start one more driver, and a graph that was started for the
last time would be given up before it could come to anything.
"""

from __future__ import annotations

import json
import os
import socket
from dataclasses import dataclass
from pathlib import Path

from airflow_dagsched.exclusive import replace_text
from airflow_dagsched.launch.protocol.wire import encode_plain, parse_dataclass
from airflow_dagsched.process_names import read_beginning
from airflow_dagsched.switch.log.signs_files import read_ended, read_sign
from airflow_dagsched.switch.places import EpochPlaces

START_WITHIN_S = 900.0
"""Seconds after which a process that took no lease is no driver any more, whatever it does."""
UNSEEN_S = 120.0
"""The same for a process on another host, of which nobody here can tell whether it is there."""


@dataclass(frozen=True, slots=True)
class Spawned:
    """A process, so that it is not taken for another that has its number."""

    pid: int
    host: str
    at: float
    """When it was started, in seconds since 1970."""
    began: str = ""
    """As the kernel counts; empty where that is not known."""


def write_spawned(places: EpochPlaces, pid: int, at: float) -> None:
    """Put down that a driver was started now."""
    spawned = Spawned(pid, socket.gethostname(), at, read_beginning(pid))
    replace_text(places.spawned, json.dumps(encode_plain(spawned)))


def read_spawned(places: EpochPlaces) -> Spawned | None:
    """The process that was started last; None if there was none."""
    try:
        return parse_dataclass(Spawned, places.spawned.read_text("utf-8", "surrogateescape"))
    except FileNotFoundError:
        return None


def is_starting(places: EpochPlaces, now: float) -> bool:
    """Whether a driver was started, and has neither begun nor ended, as far as that shows."""
    spawned = read_spawned(places)
    if spawned is None or _has_said(places, spawned.at):
        return False
    if spawned.host != socket.gethostname():
        return now - spawned.at <= UNSEEN_S
    return now - spawned.at <= START_WITHIN_S and is_there(spawned)


def is_there(spawned: Spawned) -> bool:
    """Whether the process, one of this host, still runs."""
    if Path("/proc/self/stat").exists():
        return read_beginning(spawned.pid) == spawned.began != ""
    try:
        os.kill(spawned.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's has its number
        return False
    return True


def _has_said(places: EpochPlaces, since: float) -> bool:
    """Whether a driver that was started then told that it works, or how it ended."""
    sign, ended = read_sign(places), read_ended(places)
    has_begun = sign is not None and sign.at >= since and sign.phase != "starting"
    return has_begun or (ended is not None and ended.at >= since)
