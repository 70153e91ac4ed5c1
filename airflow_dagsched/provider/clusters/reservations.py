"""Reservations of launches, in files that all Airflow workers of this Airflow see.

::

    <[dagsched] work_dir>/reservations/<master>/lock
                                                <reservation>.json

The folder is the Airflow's, not a dataflow's: dataflows share a cluster, but not always a work folder. Where
Airflow workers share no file system they do not see each other's: then the cluster manager's own queue is
what keeps two applications apart.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from msgspec.structs import replace

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.launch.escalation.reservations import Reservation
from airflow_dagsched.model.codec import encode_value, read_file
from airflow_dagsched.provider.spec.work_dir import parse_local_root


class Reservations:
    """Those for one cluster. Whoever reads, decides and adds does so inside :meth:`hold_lock`."""

    def __init__(self, work_dir: str, master: str) -> None:
        # A master's address has slashes and colons.
        self._folder = parse_local_root(work_dir) / "reservations" / quote(master, safe="")

    @contextmanager
    def hold_lock(self) -> Iterator[None]:
        """Nobody else reads or writes meanwhile."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # the kernel's: a process that dies lets go
            yield

    def list_valid(self, now: float) -> list[Reservation]:
        """Those that have not expired at ``now`` (seconds since 1970); the others go, and what is torn."""
        found = []
        for file in sorted(self._folder.glob("*.json")):
            held = _read_reservation(file)
            # A launch that was killed frees nothing: its reservation ends by itself.
            if held is not None and held.expires > now:
                found.append(held)
            else:
                file.unlink(missing_ok=True)
        return found

    def peek(self, now: float) -> list[Reservation]:
        """Those that have not expired at ``now``; nothing is locked or removed, for whoever only looks."""
        found = (_read_reservation(file) for file in sorted(self._folder.glob("*.json")))
        return [held for held in found if held is not None and held.expires > now]

    def add(self, reservation: Reservation) -> None:
        """Write it down, in one move; one with its name is replaced."""
        file = self._locate_file(reservation.id)
        draft = file.with_suffix(".new")
        draft.write_bytes(encode_value(reservation))
        draft.replace(file)  # in one move: a process may die here, and its successor reads all files

    def end(self, reservation: Reservation, at: float) -> None:
        """Let it expire at ``at``, if that is sooner."""
        self.add(replace(reservation, expires=min(at, reservation.expires)))

    def drop(self, reservation: Reservation) -> None:
        """It may have expired already."""
        self._locate_file(reservation.id).unlink(missing_ok=True)

    def _locate_file(self, name: str) -> Path:
        return self._folder / f"{quote(name, safe='')}.json"


def _read_reservation(file: Path) -> Reservation | None:
    try:
        return read_file(Reservation, file)
    except InvalidInput:
        return None
