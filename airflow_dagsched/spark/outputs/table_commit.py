"""Commit of a table of files: alone, checked, and finished by whoever comes next if its writer dies.

::

    lock -- finish torn swaps -- lease still mine? draft whole? way in? -- journal -- record -- moves, check -- unlock
                                          |                                             |
                                          +-> refused, draft removed                    +-> number taken: the next

A writer that lost its lease changes nothing. Who takes the lock finishes swaps whose record is there, and refuses the
records of the others (``commits``): their writers died, or lost the lock, and what these do then comes to nothing; one
that lives commits the same draft under the next number. What was replaced stays in the draft for ``SETTLE_S``: a
reader that is just listing it would else see a part of it. Needs no Spark.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import replace

from airflow_dagsched.launch.protocol.keys import digest_parts, name_hidden_folder
from airflow_dagsched.spark.files.clock import MACHINE, Clock
from airflow_dagsched.spark.files.store import Store, join_path
from airflow_dagsched.spark.outputs.commits import CommitLog, CommitRefused, Committed, OutputGone, WriteRefused
from airflow_dagsched.spark.outputs.leases import Keeper, Lease
from airflow_dagsched.spark.outputs.locks import FencedStore, LockLost, hold_lock
from airflow_dagsched.spark.outputs.swap import (
    Swap,
    disarm,
    has_journal,
    list_replaced,
    list_torn,
    lock_path,
    move_all,
    read_journal,
    remove_journal,
    write_journal,
)
from airflow_dagsched.spark.outputs.table_checks import (
    DraftChanged,
    check_draft,
    check_way_in,
    find_missing_files,
    folders_with,
    make_durable,
    make_table_durable,
)

SETTLE_S = 1.0
"""Longer than a folder takes to list."""
# <digest of the interval>-<generation>-<nonce>, see ``make_draft_path``.
_DRAFT = re.compile(r"([0-9a-f]{16})-(\d+)-[0-9a-f]{8}")


class TableCommits:
    """The commits to tables that one driver makes."""

    def __init__(
        self,
        commits: CommitLog,
        keeper: Keeper,
        follow: Callable[[Swap], None] = lambda swap: None,
        clock: Clock = MACHINE,
    ) -> None:
        self._commits = commits
        self._keeper = keeper
        self._follow = follow
        """Called after the moves of a swap, before its journal goes: may be called again for one swap."""
        self._clock = clock
        self._guard = threading.Lock()
        self._replaced: dict[str, tuple[float, Store]] = {}
        """Draft with replaced files in it -> when they were."""

    def commit_table(self, store: Store, committed: Committed, swap: Swap, lease: Lease) -> Committed:
        """Commit and swap; the record as it was made. Its number is the lease's, and what it replaces is found here.

        Raises ``WriteRefused``, ``DraftChanged``, ``NoWayIn``, with the draft removed and the table as it was.
        """
        while True:
            try:
                committed, swap = self._commit_draft(store, committed, swap, lease)
                break
            except CommitRefused:
                lease, swap = self._advance_draft(store, swap, lease)
            except DraftChanged:
                self._keeper.check_lease(lease)  # who took it removed the draft: that is the reason then
                raise
        self.finish_torn(store, swap.table)
        self._remove_replaced(self._clock.now() - SETTLE_S)
        return committed

    def _advance_draft(self, store: Store, swap: Swap, lease: Lease) -> tuple[Lease, Swap]:
        """The same draft under the next number. Renamed: who removes drafts of the lease before does not meet it."""
        try:
            lease = self._keeper.advance_lease(lease)
        except WriteRefused:
            store.delete(swap.draft)
            raise
        draft = make_draft_path(swap.table, lease.interval, lease)
        store.rename(swap.draft, draft)
        return lease, replace(swap, draft=draft)

    def close(self) -> None:
        """Remove what was replaced; waits ``SETTLE_S`` at most."""
        # Readers that have just listed the old files still get to open them.
        last = max((when for when, _ in self._replaced.values()), default=0.0)
        self._clock.sleep(min(SETTLE_S, max(0.0, last + SETTLE_S - self._clock.now())))
        self._remove_replaced(last)

    def finish_torn(self, store: Store, table: str) -> None:
        """Finish the swaps of a table that a driver died in; waits for one that is going on."""
        while list_torn(store, table):
            try:
                with hold_lock(store, lock_path(table), self._clock) as fence:
                    self._finish_all(FencedStore(store, fence), table)
            except LockLost:
                continue

    def _commit_draft(self, store: Store, committed: Committed, swap: Swap, lease: Lease) -> tuple[Committed, Swap]:
        """The record and the moves, under one lock. Raises ``CommitRefused`` if another number is to be tried."""
        committed = replace(committed, generation=lease.generation)
        swap = replace(
            swap, record=self._commits.get_record_path(committed.output, committed.interval, lease.generation)
        )
        with hold_lock(store, lock_path(swap.table), self._clock) as fence:
            fenced = FencedStore(store, fence)
            self._finish_all(fenced, swap.table)
            try:
                swap = self._prepare_commit(fenced, committed, swap, lease)
                fence.check()
                self._commits.commit_record(committed)
            except BaseException as error:  # noqa: BLE001 - raised again
                self._give_up(store, committed, swap, error)
            try:
                self._finish_swap(fenced, swap)
                self._check_seen(fenced, committed, swap)
                self._remove_fenced(fenced, swap)
            except LockLost:
                pass  # it is committed: whoever has the lock now finishes it
        return committed, swap

    def _give_up(self, store: Store, committed: Committed, swap: Swap, error: BaseException) -> None:
        """Raise ``error``, with nothing left of the draft; returns where the commit was made all the same.

        Who lost the lock, or the number, is alive: it keeps its draft, and raises ``CommitRefused``.
        """
        # The record may be there for all the error (a time-out, say): asked by taking its number.
        if has_journal(store, swap.draft) and not self._commits.refuse(swap.record, swap.tag, store):
            return
        if isinstance(error, (CommitRefused, LockLost)):
            remove_journal(store, swap.draft)
            raise CommitRefused(committed.output, committed.interval, committed.generation) from error
        store.delete(swap.draft)
        raise error

    def _prepare_commit(self, store: Store, committed: Committed, swap: Swap, lease: Lease) -> Swap:
        """All that is to be done before the record; the journal as it was written."""
        self._keeper.check_lease(lease)
        swap = self._find_replaced(store, committed, swap)
        check_draft(store, swap, committed.files)
        check_way_in(store, swap)
        write_journal(store, swap)
        make_durable(store, committed.files, swap.draft, name_hidden_folder(swap.table))
        return swap

    def _find_replaced(self, store: Store, committed: Committed, swap: Swap) -> Swap:
        """What the commit takes out of the table: what its writer committed before.

        Where records were removed or are torn, its files are looked for by the key in their names.
        """
        earlier, is_sure = self._commits.find_earlier(committed.output, committed.interval, committed.writer)
        old = tuple(self._commits.folders_before(committed))
        if swap.key and not is_sure:
            old = (*old, *folders_with(store, swap.table, swap.key))
        if swap.key and swap.mode == "append":
            old = (*old, *swap.folders)
        return replace(swap, old_tag=earlier.tag if earlier else "", old_folders=tuple(sorted(set(old))))

    def _check_seen(self, store: FencedStore, committed: Committed, swap: Swap) -> None:
        """Raise ``OutputGone`` unless all that was written is in the table."""
        # Then the fence: what another holder is just moving is not missing.
        missing = find_missing_files(store, swap.table, committed.files)
        store.fence.check()
        if missing:
            raise OutputGone(committed, f"{len(missing)} of its files, such as {missing[0]}, went on the way in")

    def _finish_all(self, store: FencedStore, table: str) -> None:
        for draft in list_torn(store, table):
            # First of all: from here on late moves of the holder before fail.
            disarm(store, draft, store.fence.token)
            swap = read_journal(store, draft)
            if swap is None or self._commits.refuse(swap.record, swap.tag, store):
                remove_journal(store, draft)
            else:
                self._finish_swap(store, swap)

    def _finish_swap(self, store: FencedStore, swap: Swap) -> None:
        """Of the draft the journal goes first: what is left of one without is rubbish."""
        move_all(store, swap, store.fence.token)
        # The journal goes last: until then all of this may be done again.
        self._follow(swap)
        make_table_durable(store, swap)
        remove_journal(store, swap.draft)
        if any(True for _ in list_replaced(store, swap.draft)):
            with self._guard:
                self._replaced[swap.draft] = (self._clock.now(), store.inner)
        else:
            store.delete(swap.draft)

    def _remove_replaced(self, until: float) -> None:
        with self._guard:
            due = [(draft, store) for draft, (when, store) in self._replaced.items() if when <= until]
            for draft, store in due:
                del self._replaced[draft]
                store.delete(draft)

    def _remove_fenced(self, store: Store, swap: Swap) -> None:
        """Drafts of writers of this interval that lost their lease, which is the table's, to this one."""
        mine = _DRAFT.fullmatch(swap.draft.rpartition("/")[2])
        for entry in store.list(name_hidden_folder(swap.table)):
            name, draft = _DRAFT.fullmatch(entry.name), join_path(name_hidden_folder(swap.table), entry.name)
            # Not our own of before: its replaced files may still be read.
            if mine and name and name[1] == mine[1] and int(name[2]) < int(mine[2]) and draft not in self._replaced:
                store.delete(draft)


def make_draft_path(table: str, interval: str, lease: Lease) -> str:
    """Folder of the draft that the holder of ``lease`` writes: no other writer has the same."""
    return join_path(name_hidden_folder(table), f"{digest_parts(interval)}-{lease.generation}-{lease.claim.nonce[:8]}")
