"""The lock that is a lease: one holder at a time, a dead one is outlived by half a minute, a frozen one harmless."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from airflow_dagsched.spark.files.clock import MachineClock
from airflow_dagsched.spark.files.store import Fence, LocalStore, join_path
from airflow_dagsched.spark.outputs.locks import LOCK_S, FencedStore, LockLost, lease_lock
from airflow_dagsched.spark.outputs.swap import Swap, disarm, move_all, write_journal


class SetClock(MachineClock):
    """A time that is set; nobody renews anything."""

    def __init__(self) -> None:
        self.time = 1000.0

    def now(self) -> float:
        return self.time

    def every(self, seconds, do, name):  # type: ignore[no-untyped-def]
        return lambda: None


@pytest.fixture
def clock() -> SetClock:
    """Stands still."""
    return SetClock()


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Of the lock."""
    return f"{tmp_path}/.dagsched-t/lock"


def lock(path: str, clock: MachineClock) -> AbstractContextManager[Fence]:
    """As another driver takes it."""
    return lease_lock(LocalStore(), path, clock)


def test_one_at_a_time(path: str):
    """Six threads, each sees itself alone."""
    inside, seen = [0], []

    def work() -> None:
        with lock(path, MachineClock()):
            inside[0] += 1
            seen.append(inside[0])
            inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert seen == [1] * 6


def test_a_dead_holders_lock_is_taken_after_half_a_minute(path: str, clock: SetClock):
    """Not after a quarter of an hour; and each holder has a token of its own."""
    dead = lock(path, clock)
    first = dead.__enter__()
    clock.time += LOCK_S * 1.26
    with lock(path, clock) as fence:
        assert fence.token != first.token
        fence.check()


def test_a_frozen_holder_changes_nothing_when_it_wakes(path: str, clock: SetClock):
    """Each change looks first; and what it gives back is not its successor's lock."""
    frozen = lock(path, clock)
    fenced = FencedStore(LocalStore(), frozen.__enter__())
    fenced.write_text(f"{path}-file", "before")
    clock.time += LOCK_S * 1.26
    with lock(path, clock) as successor:
        changes = (
            lambda: fenced.rename(f"{path}-file", f"{path}-other"),
            lambda: fenced.delete(f"{path}-file"),
            lambda: fenced.write_text(f"{path}-file", "after"),
            lambda: fenced.create_exclusive(f"{path}-new", ""),
            lambda: fenced.mkdirs(f"{path}-folder"),
            lambda: fenced.delete_empty(path),
            lambda: fenced.exchange(path, path),
        )
        for change in changes:
            with pytest.raises(LockLost, match="another driver has taken the lock"):
                change()
        frozen.__exit__(None, None, None)
        successor.check()
    assert LocalStore().read_text(f"{path}-file") == "before"


class Plain(LocalStore):
    """Without an exchange, as on HDFS."""

    def exchange(self, one: str, other: str) -> bool:
        return False


def test_a_move_out_of_the_table_that_comes_late_fails(tmp_path: Path):
    """The holder of lock 1 is frozen in it; that of lock 2 finishes the swap; the new content stays."""
    store, draft, table = Plain(), f"{tmp_path}/.dagsched-t/draft", f"{tmp_path}/t"
    store.write_text(f"{table}/part-old", "")
    store.write_text(f"{draft}/new/part-new", "")
    swap = Swap("", "new", table, draft, "overwrite", ("",))
    write_journal(store, swap)
    store.mkdirs(f"{draft}/old-1.0/table")
    late = (table, join_path(draft, "old-1.0", "table", "here"))
    disarm(store, draft, "2")
    move_all(store, swap, "2")
    with pytest.raises(FileNotFoundError):
        store.rename(*late)
    assert [each.name for each in store.list(table)] == ["part-new"]


class Met(Plain):
    """A late move into the table comes just before the table's folder is moved out."""

    late: tuple[str, str] | None = None

    def rename(self, source: str, target: str) -> None:
        if self.late is not None and source == self.late[1]:
            late, self.late = self.late, None
            super().rename(source, f"{target}-before")  # the late holder had moved the old content out
            super().rename(*late)
        super().rename(source, target)


@pytest.mark.parametrize("dies", [False, True])
def test_what_came_in_late_and_was_moved_out_comes_in_again(tmp_path: Path, dies: bool):
    """The holder of lock 2 saw the old content, and took out the new; it moves that in itself, or the next one does."""
    store, draft, table = Met(), f"{tmp_path}/.dagsched-t/draft", f"{tmp_path}/t"
    store.write_text(f"{table}/part-old", "")
    store.write_text(f"{draft}/new/part-new", "")
    swap = Swap("", "new", table, draft, "overwrite", ("",))
    write_journal(store, swap)
    if dies:
        store.mkdirs(f"{draft}/old-2.0")
        store.rename(join_path(draft, "new"), join_path(draft, "old-2.0", "table"))
    else:
        store.late = (join_path(draft, "new"), table)
    token = "3" if dies else "2"
    disarm(store, draft, token)
    move_all(store, swap, token)
    assert [each.name for each in store.list(table)] == ["part-new"]


def test_what_is_not_there_to_come_in_takes_nothing_out(tmp_path: Path):
    """The draft of a committed swap was removed: the table keeps what it has, and nobody is blocked."""
    store, table = Plain(), f"{tmp_path}/t"
    store.write_text(f"{table}/part-old", "")
    move_all(store, Swap("", "new", table, f"{tmp_path}/.dagsched-t/draft", "overwrite", ("",)), "1")
    assert [each.name for each in store.list(table)] == ["part-old"]
