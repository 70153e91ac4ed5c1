"""The lock of a table where the file system has none: a lease with an owner, looked at before each move.

::

    /data/.dagsched-clean/lock/table/0000000007.json      taken, renewed four times in 30 s, given back; then 8, 9, ...

A holder that dies keeps others out for as long as its lease lasts; one that was frozen and wakes finds a higher
number before its next change, and makes none. So of a holder that lost the lock one change at most comes late: the one
that it was frozen in, after its look. ``swap`` says why each of these is harmless.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from airflow_dagsched.spark.files.clock import MACHINE, Clock
from airflow_dagsched.spark.files.store import Entry, Fence, Store
from airflow_dagsched.spark.outputs.commits import CommitLog, WriteRefused
from airflow_dagsched.spark.outputs.homes import Homes
from airflow_dagsched.spark.outputs.leases import Keeper, Lease

LOCK_S = 30.0
"""Seconds that a lock outlives its holder: a holder renews it while it lives."""


@dataclass
class LockLost(WriteRefused):
    """The lock of a table went to another, because this driver stood still for too long."""

    path: str

    def __str__(self) -> str:
        return f"{self.path}: another driver has taken the lock, which this one held without a sign of life"


def hold_lock(store: Store, path: str, clock: Clock = MACHINE) -> AbstractContextManager[Fence]:
    """Keep all others that lock ``path`` out, threads and processes, while the block runs.

    By the file system's own lock where it has one, else by a lease: whoever stood still may lose that, and looks at
    the fence before each change.
    """
    own = store.lock(path)
    return lease_lock(store, path, clock) if own is None else own


@contextmanager
def lease_lock(store: Store, path: str, clock: Clock) -> Iterator[Fence]:
    """A lock over the other operations of ``store``; its files are in the folder ``path``."""
    root, _, kind = path.rpartition("/")
    commits = CommitLog(store, root, Homes(store, root, of_table=True))
    # A run of its own: two locks of one driver keep each other out, too.
    keeper = Keeper(commits, run_id=uuid.uuid4().hex, lease_s=LOCK_S, clock=clock, kind=kind)
    try:
        lease = keeper.acquire_lease("table", "table")
        yield Fence(str(lease.generation), lambda: _check(keeper, lease, path))
    finally:
        keeper.close()


def _check(keeper: Keeper, lease: Lease, path: str) -> None:
    # By names alone: it is looked at before each change.
    if not keeper.is_newest(lease):
        raise LockLost(path)


class FencedStore:
    """A store that is changed only while a lock is held: each change looks at the fence first."""

    def __init__(self, store: Store, fence: Fence) -> None:
        # Reads are not fenced: who stood still may see what is old, and looks again before it changes anything.
        self.inner = store
        self.fence = fence

    def read_text(self, path: str) -> str:
        return self.inner.read_text(path)

    def list(self, path: str) -> tuple[Entry, ...]:
        return self.inner.list(path)

    def exists(self, path: str) -> bool:
        return self.inner.exists(path)

    def resolve(self, path: str) -> str:
        return self.inner.resolve(path)

    def lock(self, path: str) -> AbstractContextManager[Fence] | None:
        return self.inner.lock(path)

    def sync(self, paths: tuple[str, ...]) -> None:
        self.inner.sync(paths)

    def create_exclusive(self, path: str, text: str) -> bool:
        self.fence.check()
        return self.inner.create_exclusive(path, text)

    def write_text(self, path: str, text: str) -> None:
        self.fence.check()
        self.inner.write_text(path, text)

    def mkdirs(self, path: str) -> None:
        self.fence.check()
        self.inner.mkdirs(path)

    def rename(self, source: str, target: str) -> None:
        self.fence.check()
        self.inner.rename(source, target)

    def exchange(self, one: str, other: str) -> bool:
        self.fence.check()
        return self.inner.exchange(one, other)

    def delete(self, path: str) -> None:
        self.fence.check()
        self.inner.delete(path)

    def delete_empty(self, path: str) -> bool:
        self.fence.check()
        return self.inner.delete_empty(path)
