"""Folders of applications that wait, or waited, to be needed: numbered, the newest one is the standby."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from airflow_dagsched.switch.log.signs_files import place_order
from airflow_dagsched.switch.places import EpochPlaces, FlowPlaces

AWAY_S = 60.0
"""Seconds for which a standby stays away once a graph has asked for its room: it asks every few."""


def find_standby(flow: FlowPlaces) -> EpochPlaces | None:
    """Files of the newest one; None: there was never one."""
    newest = max((each for each in list_standbys(flow)), key=lambda each: each.name, default=None)
    return None if newest is None else EpochPlaces(newest)


def list_standbys(flow: FlowPlaces) -> list[Path]:
    """All of their folders."""
    with suppress(FileNotFoundError):
        return [each for each in flow.standbys.iterdir() if each.name.isdecimal()]
    return []


def send_away(flow: FlowPlaces, at: float) -> None:
    """Let a standby end, and for a while no other begin: a graph needs the room.

    :param at: seconds since 1970.
    """
    standby = find_standby(flow)
    if standby is not None and not place_order(standby, "stop", "a graph", at, "a graph needs its room"):
        with suppress(FileNotFoundError):
            os.utime(standby.orders / "stop.json", (at, at))


def is_kept_away(standby: EpochPlaces, now: float) -> bool:
    """Whether a graph needs the room of a standby, at ``now``, seconds since 1970."""
    with suppress(FileNotFoundError):
        return now - (standby.orders / "stop.json").stat().st_mtime < AWAY_S
    return False


def make_standby(flow: FlowPlaces) -> EpochPlaces:
    """The folder of the next one. Raises ``FileExistsError`` where another process makes it just now."""
    newest = find_standby(flow)
    # One that was never started, for want of room, is still to be.
    if newest is not None and not newest.private.exists() and not newest.spawned.exists():
        return newest
    number = 1 if newest is None else int(newest.folder.name) + 1
    places = EpochPlaces(flow.standbys / f"{number:08d}")
    places.folder.mkdir(parents=True)
    return places
