"""Reservations in files: what one process writes down another sees, and none outlives its time."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

from airflow_dagsched.launch.escalation.reservations import Reservation
from airflow_dagsched.provider.clusters.reservations import Reservations

SLOTS = 4


def held(name: str, expires: float = 100.0) -> Reservation:
    return Reservation(id=name, expires=expires, cores={"w1": 1}, memory_mb={"w1": 1})


def names(reservations: Reservations, now: float) -> list[str]:
    return [one.id for one in reservations.list_valid(now)]


def test_added_seen_ended(tmp_path: Path) -> None:
    reservations = Reservations(f"file://{tmp_path}", "spark://a:7077")
    with reservations.hold_lock():
        reservations.add(held("dag/x y"))
        reservations.add(held("other", expires=50.0))
        assert names(Reservations(str(tmp_path), "spark://a:7077"), now=10.0) == ["dag/x y", "other"]
        reservations.end(held("dag/x y"), at=20.0)
        reservations.end(held("other", expires=50.0), at=60.0)
        assert names(reservations, now=30.0) == ["other"]
        reservations.drop(held("other"))
        reservations.drop(held("other"))
        assert names(reservations, now=0.0) == []


def test_clusters_do_not_see_each_other(tmp_path: Path) -> None:
    one, other = (Reservations(str(tmp_path), master) for master in ("spark://a:7077", "spark://b:7077"))
    with one.hold_lock(), other.hold_lock():
        one.add(held("x"))
        assert (names(one, 0.0), names(other, 0.0)) == (["x"], [])


def test_a_torn_file_holds_nobody_up(tmp_path: Path) -> None:
    reservations = Reservations(str(tmp_path), "yarn")
    with reservations.hold_lock():
        (tmp_path / "reservations" / "yarn" / "torn.json").write_text('{"id": "to')
        assert names(reservations, 0.0) == []


def _take(folder: str, name: str) -> bool:
    """Take one of ``SLOTS`` cores, if one is left."""
    reservations = Reservations(folder, "yarn")
    with reservations.hold_lock():
        free = len(reservations.list_valid(0.0)) < SLOTS
        if free:
            reservations.add(held(name))
        return free


def test_processes_that_launch_at_one_moment_never_take_more_than_there_is(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        took = pool.starmap(_take, [(str(tmp_path), f"launch{at}") for at in range(12)], chunksize=1)
    assert sum(took) == SLOTS
