"""Leases: who may write now. Time is a number here, but where threads wait for each other."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_dagsched.launch.protocol.identity import TryId
from airflow_dagsched.launch.protocol.wire import encode_plain
from airflow_dagsched.spark.files.clock import MachineClock
from airflow_dagsched.spark.files.store import Entry, LocalStore
from airflow_dagsched.spark.outputs.commits import CommitLog, Committed
from airflow_dagsched.spark.outputs.leases import RELEASED, Claim, Keeper, Lease, LeaseLost, commit_next, judge_lease

ME = Claim("run", TryId("2026", 0, 2), "me")
HELD = Lease("out", "day", 1, Claim("other", TryId("2026", 0, 1), "it"), expires=100.0)


def of_try(*identity: Any, task: str = "") -> Lease:
    """Held by another driver of this run."""
    return replace(HELD, claim=Claim("run", TryId(*identity), "it", task))


@pytest.mark.parametrize(
    ("held", "now", "verdict"),
    [
        (None, 0, "take"),
        (HELD, 99, "wait"),
        (HELD, 110, "wait"),  # expired at 100, but its clock may be 15 s behind
        (HELD, 116, "take"),
        (replace(HELD, expires=RELEASED), 0, "take"),
        (of_try("2026", 0, 1), 0, "take"),  # this run's earlier try
        (of_try("2026", 0, 2), 0, "take"),  # an earlier driver of this try
        (of_try("2026", 0, 3), 0, "stale"),
        (of_try("2026", 1, 1), 0, "stale"),  # cleared meanwhile
        (of_try("2027", 0, 1), 0, "stale"),  # deleted and made again
        (of_try("2025", 7, 7), 0, "take"),
        (replace(of_try("2026", 0, 3), expires=RELEASED), 0, "stale"),  # the later try is through
        (of_try("2026", 0, 3), 1000, "stale"),
        (of_try("2026", 0, 1, task="other group"), 0, "wait"),  # tries of two launch tasks have no order
        (replace(of_try("2026", 0, 3, task="other group"), expires=RELEASED), 0, "take"),
        (replace(HELD, claim=ME), 0, "wait"),  # another thread of this driver
    ],
)
def test_judge(held: Lease | None, now: float, verdict: str):
    """The table of who gets a lease that is asked for."""
    assert judge_lease(held, ME, now, margin_s=15) == verdict


class Clock(MachineClock):
    """A time that is set; sleep and renewal are the machine's."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.ends: list[Callable[[], None]] = []

    def now(self) -> float:
        return self.time

    def every(self, seconds: float, do: Callable[[], None], name: str) -> Callable[[], None]:
        self.ends.append(super().every(seconds, do, name))
        return self.ends[-1]


@pytest.fixture
def clock() -> Iterator[Clock]:
    """Stands still. Renewals of leases that nobody gave back end with the test."""
    clock = Clock()
    yield clock
    for end in clock.ends:
        end()


def keeper(folder: Path, clock: Clock, run_id: str = "run", try_number: int = 1) -> Keeper:
    """Leases of a minute."""
    return Keeper(CommitLog(LocalStore(), str(folder)), run_id=run_id, try_id=TryId("", 0, try_number), clock=clock)


def test_a_later_try_fences_the_earlier(tmp_path: Path, clock: Clock):
    """The earlier notices when it commits, and when it renews; and it cannot come back."""
    first, second = keeper(tmp_path, clock), keeper(tmp_path, clock, try_number=2)
    old = first.acquire_lease("out", "day")
    new = second.acquire_lease("out", "day")
    assert new.generation == old.generation + 1
    second.check_lease(new)
    with pytest.raises(LeaseLost, match="run run, try 2, has taken the lease"):
        first.check_lease(old)
    assert first.lost is None
    first.renew_leases()
    assert "try 2, has taken the lease" in str(first.lost)
    with pytest.raises(LeaseLost, match="a later try of the same run"):
        first.acquire_lease("out", "day")
    first.release_lease(old)
    second.check_lease(new)


def test_renewal_keeps_a_lease_alive(tmp_path: Path, clock: Clock):
    """At 1050 the lease of 1000 is good until 1110."""
    held = keeper(tmp_path, clock)
    held.acquire_lease("out", "day")
    clock.time = 1050.0
    held.renew_leases()
    newest = held.find_newest("out", "day")
    assert newest is not None
    assert newest.expires == 1110.0
    assert held.lost is None


def test_an_expired_lease_is_taken_by_another_run(tmp_path: Path, clock: Clock):
    """60 s, and 15 s for clocks that differ."""
    dead, other = keeper(tmp_path, clock), keeper(tmp_path, clock, run_id="other")
    lease = dead.acquire_lease("out", "day")
    clock.time = 1076.0
    assert other.acquire_lease("out", "day").generation == 2
    with pytest.raises(LeaseLost):
        dead.check_lease(lease)


def test_another_run_waits_until_the_lease_is_released(tmp_path: Path, clock: Clock):
    """And is told of by a log line; other intervals are free."""
    holder, other = keeper(tmp_path, clock), keeper(tmp_path, clock, run_id="other")
    lease = holder.acquire_lease("out", "day")
    other.acquire_lease("out", "another day")
    got = threading.Event()
    thread = threading.Thread(target=lambda: (other.acquire_lease("out", "day"), got.set()))
    thread.start()
    assert not got.wait(0.2)
    holder.release_lease(lease)
    assert got.wait(30)
    thread.join(30)


def test_closing_gives_all_back_and_frees_who_waits(tmp_path: Path, clock: Clock):
    """A driver that stops neither hangs nor blocks the next."""
    holder, other = keeper(tmp_path, clock), keeper(tmp_path, clock, run_id="other")
    holder.acquire_lease("out", "day")
    failed: list[str] = []

    def wait() -> None:
        with pytest.raises(LeaseLost) as caught:
            other.acquire_lease("out", "day")
        failed.append(caught.value.reason)

    thread = threading.Thread(target=wait)
    thread.start()
    other.close()
    thread.join(30)
    assert failed == ["the driver is stopping"]
    holder.close()
    assert keeper(tmp_path, clock, run_id="third").acquire_lease("out", "day").generation == 2


def test_a_lease_that_cannot_be_renewed_in_time_is_lost(tmp_path: Path, clock: Clock):
    """Trouble is tolerated until it expires: the folder has become a file."""
    held = keeper(tmp_path, clock)
    lease = held.acquire_lease("out", "day")
    folder = tmp_path / "leases" / "out" / "day"
    (folder / "0000000001.json").unlink()
    (folder / "0000000001.json").mkdir()
    held.renew_leases()
    assert held.lost is None
    clock.time = lease.expires + 1
    held.renew_leases()
    assert "could not be renewed in 60 s" in str(held.lost)


def test_the_thread_renews(tmp_path: Path):
    """With a real clock and a short lease: the file's text changes by itself."""
    held = Keeper(CommitLog(LocalStore(), str(tmp_path)), run_id="run", lease_s=0.4)
    lease = held.acquire_lease("out", "day")
    renewed = threading.Event()
    while not renewed.wait(0.02):
        newest = held.find_newest("out", "day")
        if newest is not None and newest.expires > lease.expires:
            renewed.set()
    held.close()
    newest = held.find_newest("out", "day")
    assert newest is not None
    assert newest.expires == RELEASED


def test_many_threads_take_one_lease_in_turn(tmp_path: Path, clock: Clock):
    """Never two at once."""
    held = keeper(tmp_path, clock)
    held._lease_s = 0.2  # polls often
    inside, seen = [0], []

    def work() -> None:
        with held.hold_lease("out", "day"):
            inside[0] += 1
            seen.append(inside[0])
            inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert seen == [1] * 6


def test_an_older_try_never_comes_back(tmp_path: Path, clock: Clock):
    """Another run had the lease since the later try committed: that record tells."""
    first, second, other = (keeper(tmp_path, clock, *who) for who in (("run", 1), ("run", 2), ("other", 1)))
    lease = second.acquire_lease("out", "day")
    commits = CommitLog(LocalStore(), str(tmp_path))
    commit_next(commits, second, record(second), lease)
    second.release_lease(lease)
    other.release_lease(other.acquire_lease("out", "day"))
    with pytest.raises(LeaseLost, match="a later try of the same run"):
        first.acquire_lease("out", "day")
    assert second.acquire_lease("out", "day").generation == 3


def record(of: Keeper) -> Committed:
    """Of ``out`` on that day."""
    return Committed(
        "out", "day", 0, "f", of.claim.run_id, "/x", None, None, None, "{}", (), "parquet", try_id=of.claim.try_id
    )


def test_a_record_has_the_number_of_its_lease(tmp_path: Path, clock: Clock):
    """A frozen older try's record, however late, is older than the newer try's."""
    first, second = keeper(tmp_path, clock), keeper(tmp_path, clock, try_number=2)
    commits = CommitLog(LocalStore(), str(tmp_path))
    old = first.acquire_lease("out", "day")
    new = second.acquire_lease("out", "day")
    made = commit_next(commits, second, record(second), new)
    with pytest.raises(LeaseLost):
        commit_next(commits, first, record(first), old)
    commits.commit_record(replace(record(first), generation=old.generation))  # as if it had stood still after its look
    assert commits.find_latest("out", "day") == made


def test_a_number_that_is_taken_leads_to_the_next(tmp_path: Path, clock: Clock):
    """No writer is refused for good."""
    held = keeper(tmp_path, clock)
    commits = CommitLog(LocalStore(), str(tmp_path))
    lease = held.acquire_lease("out", "day")
    assert commits.refuse(commits.get_record_path("out", "day", lease.generation), "tag", LocalStore())
    assert commit_next(commits, held, record(held), lease).generation == 2
    held.release_lease(lease)
    newest = held.find_newest("out", "day")
    assert newest is not None
    assert (newest.generation, newest.expires) == (2, RELEASED)


NO_LEASES = ["", "null", "[]", "3", '{"claim": 3}', '{"output": "out", "interval": 1}', "\0"]


@pytest.mark.parametrize("text", [*NO_LEASES, pytest.param(json.dumps(encode_plain(HELD)), id="of another number")])
def test_a_lease_that_is_none_lasts_from_its_date(tmp_path: Path, clock: Clock, text: str):
    """It is respected, and then taken: nobody stumbles over it."""
    folder = tmp_path / "leases" / "out" / "day"
    folder.mkdir(parents=True)
    (folder / "0000000007.json").write_text(text)
    os.utime(folder / "0000000007.json", (clock.time, clock.time))
    held = keeper(tmp_path, clock).find_newest("out", "day")
    assert held is not None
    assert judge_lease(held, ME, clock.time + 75, 15) == "wait"
    clock.time += 76
    assert keeper(tmp_path, clock).acquire_lease("out", "day").generation == 8


class Overtaken(LocalStore):
    """Stands still once after it has listed a folder."""

    def __init__(self) -> None:
        self.meanwhile: Callable[[], object] | None = None

    def list(self, path: str) -> tuple[Entry, ...]:
        seen = super().list(path)
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
        return seen


def test_who_needs_the_next_number_does_not_take_the_lease_of_another(tmp_path: Path, clock: Clock):
    """It looked whether its own, long expired, was the newest; then another took the next, and is at work."""
    store, other = Overtaken(), keeper(tmp_path, clock, "other")
    late = Keeper(CommitLog(store, str(tmp_path)), run_id="run", clock=clock)
    lease = late.acquire_lease("out", "day")
    clock.time += 1000
    store.meanwhile = lambda: other.acquire_lease("out", "day")
    with pytest.raises(LeaseLost, match="another driver has just taken the lease"):
        late.advance_lease(lease)
    newest = other.find_newest("out", "day")
    assert newest is not None
    assert newest.claim == other.claim


def test_a_higher_number_is_no_lease_if_all_were_removed_meanwhile(tmp_path: Path, clock: Clock):
    """A driver looked at lease 3, long given back, and was frozen; that was cleaned away, and another took lease 1."""
    for _ in range(3):
        before = keeper(tmp_path, clock, "before")
        before.release_lease(before.acquire_lease("out", "day"))
    folder, other = tmp_path / "leases" / "out" / "day", keeper(tmp_path, clock, "other")

    def clean() -> None:
        (folder / "0000000003.json").unlink()
        assert other.acquire_lease("out", "day").generation == 1
        clock.time += 1000

    frozen = Keeper(CommitLog(Stalling(clean), str(tmp_path)), run_id="run", clock=clock)
    assert frozen.acquire_lease("out", "day").generation == 2, "after the other's, which has expired since"


def test_a_lease_whose_number_another_made_again_is_lost(tmp_path: Path, clock: Clock):
    """Its holder stood still for so long that it was cleaned away: then it has none, and leaves the other's alone."""
    late, other = keeper(tmp_path, clock), keeper(tmp_path, clock, "other")
    lease = late.acquire_lease("out", "day")
    (tmp_path / "leases" / "out" / "day" / "0000000001.json").unlink()
    with pytest.raises(LeaseLost, match="its lease file was removed"):
        late.check_lease(lease)
    taken = other.acquire_lease("out", "day")
    assert taken.generation == lease.generation
    for use in (late.check_lease, late.advance_lease):
        with pytest.raises(LeaseLost, match="run other, try 1, has taken the lease"):
            use(lease)
    late.renew_leases()
    late.release_lease(lease)
    assert other.find_newest("out", "day") == taken


def test_a_lease_given_back_while_others_are_renewed_is_let_be(tmp_path: Path, clock: Clock):
    """It is not renewed, for that kept others out; nor is it lost, where another has taken it since."""
    store, other = Overtaken(), keeper(tmp_path, clock, "other")
    held = Keeper(CommitLog(store, str(tmp_path)), run_id="run", clock=clock)
    _, second, third = (held.acquire_lease("out", day) for day in ("first", "second", "third"))

    def give_back() -> None:
        for lease in (second, third):
            held.release_lease(lease)
        other.acquire_lease("out", "third")

    store.meanwhile = give_back
    held.renew_leases()
    assert held.lost is None
    newest = held.find_newest("out", "second")
    assert newest is not None
    assert newest.expires == RELEASED


def test_a_later_try_that_commits_under_its_lock_ends_the_earlier(tmp_path: Path, clock: Clock):
    """Its lease was taken while its text was torn: then nobody can see whose it is."""
    later, earlier = (keeper(tmp_path, clock, try_number=number) for number in (2, 1))
    lease = later.acquire_lease("out", "day")
    path = tmp_path / "leases" / "out" / "day" / "0000000001.json"
    path.write_text("")
    os.utime(path, (clock.time, clock.time))
    clock.time += 1000
    taken = earlier.acquire_lease("out", "day")
    CommitLog(LocalStore(), str(tmp_path)).commit_record(replace(record(later), generation=lease.generation))
    with pytest.raises(LeaseLost, match="a later try of the same run has committed"):
        earlier.check_lease(taken)


class Stalling(LocalStore):
    """Stands still before it creates a file for the first time."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        self.meanwhile: Callable[[], None] | None = meanwhile

    def create_exclusive(self, path: str, text: str) -> bool:
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
        return super().create_exclusive(path, text)


def test_who_takes_a_lease_late_sees_that_a_later_try_has_committed(tmp_path: Path, clock: Clock):
    """Before it writes anything: rows of a format that commits by itself could not be taken back. See above for how."""
    later = keeper(tmp_path, clock, try_number=2)
    lease = later.acquire_lease("out", "day")
    path = tmp_path / "leases" / "out" / "day" / "0000000001.json"
    path.write_text("")
    os.utime(path, (clock.time, clock.time))
    clock.time += 1000
    log = CommitLog(LocalStore(), str(tmp_path))
    stalling = Stalling(lambda: log.commit_record(replace(record(later), generation=lease.generation)))
    earlier = Keeper(CommitLog(stalling, str(tmp_path)), run_id="run", try_id=TryId("", 0, 1), clock=clock)
    with pytest.raises(LeaseLost, match="a later try of the same run has taken over"):
        earlier.acquire_lease("out", "day")
    assert keeper(tmp_path, clock, "other").acquire_lease("out", "day").generation == 3


def test_a_number_that_was_taken_long_ago_is_no_lease(tmp_path: Path, clock: Clock):
    """A driver saw none and was frozen; 1 and 2 were taken, 1 was removed: it creates 1, and gives it up."""
    others = [keeper(tmp_path, clock, run) for run in ("a", "b")]

    def take_both() -> None:
        for each in others:
            each.release_lease(each.acquire_lease("out", "day"))

    frozen = Keeper(CommitLog(Stalling(take_both), str(tmp_path)), run_id="run", clock=clock)
    assert frozen.acquire_lease("out", "day").generation == 3
    assert [path.name for path in (tmp_path / "leases" / "out" / "day").iterdir()] == ["0000000003.json"]


def test_a_number_that_was_committed_long_ago_is_no_lease(tmp_path: Path, clock: Clock):
    """A driver saw none and was frozen; another committed under 1, and its lease was removed since."""
    other, log = keeper(tmp_path, clock, "other"), CommitLog(LocalStore(), str(tmp_path))

    def commit() -> None:
        commit_next(log, other, record(other), other.acquire_lease("out", "day"))
        (tmp_path / "leases" / "out" / "day" / "0000000001.json").unlink()

    frozen = Keeper(CommitLog(Stalling(commit), str(tmp_path)), run_id="run", clock=clock)
    assert frozen.acquire_lease("out", "day").generation == 2
