"""Leases: who may write now. Time is a number here, but where threads wait for each other."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_dagsched.spark.leases import RELEASED, Claim, Keeper, Lease, LeaseLost, judge
from airflow_dagsched.spark.store import LocalStore

ME = Claim("run", clear_number=0, try_number=2, nonce="me")
HELD = Lease("out", "day", 1, Claim("other", 0, 1, "it"), expires=100.0)


@pytest.mark.parametrize(
    ("held", "now", "verdict"),
    [
        (None, 0, "take"),
        (HELD, 99, "wait"),
        (HELD, 110, "wait"),  # expired at 100, but its clock may be 15 s behind
        (HELD, 116, "take"),
        (replace(HELD, expires=RELEASED), 0, "take"),
        (replace(HELD, claim=Claim("run", 0, 1, "it")), 0, "take"),  # this run's earlier try
        (replace(HELD, claim=Claim("run", 0, 2, "it")), 0, "take"),  # an earlier driver of this try
        (replace(HELD, claim=Claim("run", 0, 3, "it")), 0, "stale"),
        (replace(HELD, claim=Claim("run", 1, 1, "it")), 0, "stale"),  # cleared meanwhile
        (replace(HELD, claim=ME), 0, "wait"),  # another thread of this driver
    ],
)
def test_judge(held: Lease | None, now: float, verdict: str):
    """The table of who gets a lease that is asked for."""
    assert judge(held, ME, now, margin_s=15) == verdict


class Clock:
    """A time that is set."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    """Stands still."""
    return Clock()


def keeper(folder: Path, clock: Clock, run_id: str = "run", try_number: int = 1) -> Keeper:
    """Leases of a minute."""
    return Keeper(LocalStore(), str(folder), run_id=run_id, try_number=try_number, clock=clock)


def test_a_later_try_fences_the_earlier(tmp_path: Path, clock: Clock):
    """The earlier notices when it commits, and when it renews; and it cannot come back."""
    first, second = keeper(tmp_path, clock), keeper(tmp_path, clock, try_number=2)
    old = first.acquire("out", "day")
    new = second.acquire("out", "day")
    assert new.generation == old.generation + 1
    second.check(new)
    with pytest.raises(LeaseLost, match="run run, try 2, has taken the lease"):
        first.check(old)
    assert first.lost is None
    first.renew()
    assert "try 2, has taken the lease" in str(first.lost)
    with pytest.raises(LeaseLost, match="a later try of the same run"):
        first.acquire("out", "day")
    first.release(old)
    second.check(new)


def test_renewal_keeps_a_lease_alive(tmp_path: Path, clock: Clock):
    """At 1050 the lease of 1000 is good until 1110."""
    held = keeper(tmp_path, clock)
    held.acquire("out", "day")
    clock.now = 1050.0
    held.renew()
    newest = held.newest("out", "day")
    assert newest is not None
    assert newest.expires == 1110.0
    assert held.lost is None


def test_an_expired_lease_is_taken_by_another_run(tmp_path: Path, clock: Clock):
    """60 s, and 15 s for clocks that differ."""
    dead, other = keeper(tmp_path, clock), keeper(tmp_path, clock, run_id="other")
    lease = dead.acquire("out", "day")
    clock.now = 1076.0
    assert other.acquire("out", "day").generation == 2
    with pytest.raises(LeaseLost):
        dead.check(lease)


def test_another_run_waits_until_the_lease_is_released(tmp_path: Path, clock: Clock):
    """And is told of by a log line; other intervals are free."""
    holder, other = keeper(tmp_path, clock), keeper(tmp_path, clock, run_id="other")
    lease = holder.acquire("out", "day")
    other.acquire("out", "another day")
    got = threading.Event()
    thread = threading.Thread(target=lambda: (other.acquire("out", "day"), got.set()))
    thread.start()
    assert not got.wait(0.2)
    holder.release(lease)
    assert got.wait(30)
    thread.join(30)


def test_closing_gives_all_back_and_frees_who_waits(tmp_path: Path, clock: Clock):
    """A driver that stops neither hangs nor blocks the next."""
    holder, other = keeper(tmp_path, clock), keeper(tmp_path, clock, run_id="other")
    holder.acquire("out", "day")
    failed: list[str] = []

    def wait() -> None:
        with pytest.raises(LeaseLost) as caught:
            other.acquire("out", "day")
        failed.append(caught.value.reason)

    thread = threading.Thread(target=wait)
    thread.start()
    other.close()
    thread.join(30)
    assert failed == ["the driver is stopping"]
    holder.close()
    assert keeper(tmp_path, clock, run_id="third").acquire("out", "day").generation == 2


def test_a_lease_that_cannot_be_renewed_in_time_is_lost(tmp_path: Path, clock: Clock):
    """Trouble is tolerated until it expires: the folder has become a file."""
    held = keeper(tmp_path, clock)
    lease = held.acquire("out", "day")
    folder = tmp_path / "leases" / "out" / "day"
    (folder / "0000000001.json").unlink()
    (folder / "0000000001.json").mkdir()
    held.renew()
    assert held.lost is None
    clock.now = lease.expires + 1
    held.renew()
    assert "could not be renewed in 60 s" in str(held.lost)


def test_the_thread_renews(tmp_path: Path):
    """With a real clock and a short lease: the file's text changes by itself."""
    held = Keeper(LocalStore(), str(tmp_path), run_id="run", try_number=1, lease_s=0.4)
    lease = held.acquire("out", "day")
    renewed = threading.Event()
    while not renewed.wait(0.02):
        newest = held.newest("out", "day")
        if newest is not None and newest.expires > lease.expires:
            renewed.set()
    held.close()
    newest = held.newest("out", "day")
    assert newest is not None
    assert newest.expires == RELEASED


def test_many_threads_take_one_lease_in_turn(tmp_path: Path, clock: Clock):
    """Never two at once."""
    held = keeper(tmp_path, clock)
    held._lease_s = 0.2  # polls often
    inside, seen = [0], []

    def work() -> None:
        with held.holding("out", "day"):
            inside[0] += 1
            seen.append(inside[0])
            inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert seen == [1] * 6
