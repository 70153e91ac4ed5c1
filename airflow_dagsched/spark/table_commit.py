"""Commit of a table of files: alone, checked, and finished by whoever comes next if its writer dies.

::

    lock -- finish torn swaps -- lease still mine? -- journal -- record -- moves -- journal, draft removed -- unlock
                                      |                             |
                                      +-> refused, draft removed <--+

A writer that lost its lease, or finds its generation taken, changes nothing. What was replaced stays in the
draft for ``SETTLE_S``: a reader that is just listing it would else see a part of it. Needs no Spark.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from airflow_dagsched.launch.keys import short
from airflow_dagsched.spark.commits import CommitLog, Committed
from airflow_dagsched.spark.leases import Keeper, Lease
from airflow_dagsched.spark.store import Store, join, walk
from airflow_dagsched.spark.swap import REPLACED, Swap, drafts, lock_path, move_all, read_journal, torn, write_journal

SETTLE_S = 1.0
"""Longer than a folder takes to list."""


class TableCommits:
    """The commits to tables that one driver makes."""

    def __init__(self, commits: CommitLog, keeper: Keeper, follow: Callable[[Swap], None] = lambda swap: None) -> None:
        self._commits = commits
        self._keeper = keeper
        self._follow = follow
        """Called after the moves of a swap, before its journal goes: may be called again for one swap."""
        self._guard = threading.Lock()
        self._replaced: dict[str, tuple[float, Store]] = {}
        """Draft with replaced files in it -> when they were."""

    def commit(self, store: Store, committed: Committed, swap: Swap, lease: Lease) -> None:
        """Commit and swap. Raises ``WriteRefused``, with the draft removed, if another is the writer."""
        with store.lock(lock_path(swap.table)):
            self._finish_all(store, swap.table)
            try:
                self._keeper.check(lease)
                write_journal(store, swap)
                self._commits.commit(committed)
            except BaseException:
                if read_journal(store, self._commits, swap.draft) is None:
                    store.delete(swap.draft)
                raise
            self._finish(store, swap)
            self._remove_fenced(store, swap)
        self._remove_replaced(time.monotonic() - SETTLE_S)

    def close(self) -> None:
        """Remove what was replaced; waits ``SETTLE_S`` at most."""
        last = max((when for when, _ in self._replaced.values()), default=0.0)
        time.sleep(max(0.0, last + SETTLE_S - time.monotonic()))
        self._remove_replaced(last)

    def finish_torn(self, store: Store, table: str) -> None:
        """Finish the swaps of a table that a driver died in; waits for one that is going on."""
        if torn(store, table):
            with store.lock(lock_path(table)):
                self._finish_all(store, table)

    def _finish_all(self, store: Store, table: str) -> None:
        for draft in torn(store, table):
            swap = read_journal(store, self._commits, draft)
            if swap is None:
                store.delete(draft)
            else:
                self._finish(store, swap)

    def _finish(self, store: Store, swap: Swap) -> None:
        """Of the draft the journal goes first: what is left of one without is rubbish."""
        move_all(store, swap)
        self._follow(swap)
        store.delete(join(swap.draft, "swap.json"))
        if any(True for part in REPLACED for _ in walk(store, join(swap.draft, part))):
            with self._guard:
                self._replaced[swap.draft] = (time.monotonic(), store)
        else:
            store.delete(swap.draft)

    def _remove_replaced(self, until: float) -> None:
        with self._guard:
            due = [(draft, store) for draft, (when, store) in self._replaced.items() if when <= until]
            for draft, store in due:
                del self._replaced[draft]
                store.delete(draft)

    def _remove_fenced(self, store: Store, swap: Swap) -> None:
        """Drafts of writers of this interval that lost their lease to this one."""
        key, mine, _ = swap.draft.rpartition("/")[2].split("-")
        for entry in store.list(drafts(swap.table)):
            name, draft = entry.name.split("-"), join(drafts(swap.table), entry.name)
            if len(name) == 3 and name[0] == key and int(name[1]) < int(mine) and draft not in self._replaced:
                store.delete(draft)


def draft_path(table: str, interval: str, lease: Lease) -> str:
    """Folder of the draft that the holder of ``lease`` writes: no other writer has the same."""
    return join(drafts(table), f"{short(interval)}-{lease.generation}-{lease.claim.nonce[:8]}")
