"""The swap: how files that were written aside become the content of a table folder.

::

    /data/.dagsched-clean/lock                  one swap of the table at a time
    /data/.dagsched-clean/<draft>/new/day=1/…   what the step wrote
    /data/.dagsched-clean/<draft>/swap.json     what is to be done: the journal
    /data/clean/day=1/…                         what readers see

    journal -> commit record -> day=1 <=> new/day=1, ... -> journal removed, then the draft
               ^ the commit point

Before the record exists the draft is nothing; from then on whoever holds the lock finishes the swap: each
move is skipped if its result is there, so it may be done again from any point. A partition folder (or the
whole table, if it has none) changes in one atomic exchange where the file system can do that. Elsewhere it
is renamed out and the new one in, and a reader between the two finds it missing, but never mixed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

from airflow_dagsched.launch.wire import decode, encode
from airflow_dagsched.spark.commits import CommitLog
from airflow_dagsched.spark.store import Store, hidden, join, walk

EMPTY = "dagsched-empty-"
"""First part of the name of a file that only gives an empty table its schema."""

REPLACED = ("new", "old", "gone")
"""Folders of a draft where the files that the swap took out of the table are after it."""


@dataclass(frozen=True, slots=True)
class Swap:
    """The journal of one swap."""

    record: str
    """Path of the commit record; the swap counts once this holds a commit with the same tag."""
    tag: str
    """Part of the name of each file of this commit."""
    table: str
    """Folder of the table."""
    draft: str
    """Folder with ``new/`` in it."""
    mode: Literal["overwrite", "append"]
    folders: tuple[str, ...]
    """Written, relative to the table; ("",) for a table without partitions."""
    old_tag: str = ""
    """Of this interval's earlier commit: its files go."""
    old_folders: tuple[str, ...] = ()
    """Where they may be."""
    empty: str = ""
    """Name of the file in the draft that gives a table without any partition its schema."""
    catalog: str = ""
    """Catalog name whose list of partitions follows."""


def drafts(table: str) -> str:
    """The hidden folder beside ``table`` (a path without a trailing slash) where drafts are written."""
    parent, _, name = table.rpartition("/")
    return f"{parent}/.dagsched-{name}"


def lock_path(table: str) -> str:
    """The file that is locked while the table's content changes."""
    return join(drafts(table), "lock")


def write_journal(store: Store, swap: Swap) -> None:
    """Say what is to be done, before the commit."""
    store.write_text(join(swap.draft, "swap.json"), json.dumps(encode(swap), sort_keys=True))


def torn(store: Store, table: str) -> tuple[str, ...]:
    """Drafts of ``table`` with a journal: the lock's holder works on one, or one died at it."""
    found = (join(drafts(table), entry.name) for entry in store.list(drafts(table)) if entry.is_folder)
    return tuple(draft for draft in found if store.exists(join(draft, "swap.json")))


def read_journal(store: Store, commits: CommitLog, draft: str) -> Swap | None:
    """The journal in ``draft`` if its commit was made; None if it died before that. Call under the lock."""
    try:
        swap = decode(Swap, json.loads(store.read_text(join(draft, "swap.json"))))
    except (FileNotFoundError, ValueError):
        return None
    committed = commits.read(swap.record)
    return swap if committed is not None and committed.tag == swap.tag else None


def move_all(store: Store, swap: Swap) -> None:
    """Do all moves of the swap that are not done yet. Call under the lock; the draft stays."""
    store.mkdirs(swap.table.rpartition("/")[0] if swap.folders == ("",) else swap.table)
    for folder in swap.folders:
        (_replace if swap.mode == "overwrite" else _add)(store, swap, folder)
    if swap.folders and swap.folders != ("",):
        _delete_files(store, swap.table, EMPTY)
    kept = swap.folders if swap.mode == "overwrite" else ()
    for folder in sorted(set(swap.old_folders) - set(kept)):
        _remove_old(store, swap, folder)
    if swap.empty and not any(not hidden(entry.name) for entry in store.list(swap.table)):
        store.rename(join(swap.draft, swap.empty), join(swap.table, swap.empty))


def tagged(store: Store, path: str, tag: str) -> tuple[tuple[str, ...], int, bool]:
    """The files in folder ``path`` with ``tag`` in the name, their bytes, and whether nothing else is there."""
    visible = [each for each in store.list(path) if not hidden(each.name)]
    ours = [each for each in visible if tag in each.name and not each.is_folder]
    return tuple(join(path, each.name) for each in ours), sum(each.size for each in ours), len(ours) == len(visible)


def _replace(store: Store, swap: Swap, folder: str) -> None:
    """The whole folder: old out, new in."""
    new, seen = join(swap.draft, "new", folder), join(swap.table, folder)
    if tagged(store, seen, swap.tag)[0]:
        return
    if store.exists(seen):
        if store.exchange(new, seen):
            return
        old = join(swap.draft, "old", folder)
        store.delete(old)
        store.mkdirs(old.rpartition("/")[0])
        store.rename(seen, old)
    store.mkdirs(seen.rpartition("/")[0])
    store.rename(new, seen)


def _add(store: Store, swap: Swap, folder: str) -> None:
    """Files one by one; those that are no longer in the draft were moved before."""
    new, seen = join(swap.draft, "new", folder), join(swap.table, folder)
    store.mkdirs(seen)
    for entry in store.list(new):
        if not entry.is_folder and not hidden(entry.name):
            store.rename(join(new, entry.name), join(seen, entry.name))


def _remove_old(store: Store, swap: Swap, folder: str) -> None:
    """The earlier commit's files, unless another writer has replaced them; then folders left empty."""
    path = join(swap.table, folder)
    files, _, alone = tagged(store, path, swap.old_tag)
    if files and alone and folder:
        gone = join(swap.draft, "gone", folder)
        store.mkdirs(gone.rpartition("/")[0])
        store.rename(path, gone)
    elif files:
        _delete_files(store, path, swap.old_tag)
    while (folder := folder.rpartition("/")[0]) and store.delete_empty(join(swap.table, folder)):
        pass


def _delete_files(store: Store, path: str, token: str) -> None:
    """Files with ``token`` in the name, their checksums included."""
    for entry in store.list(path):
        if not entry.is_folder and token in entry.name:
            store.delete(join(path, entry.name))


def draft_files(store: Store, draft: str) -> tuple[tuple[str, ...], tuple[str, ...], int]:
    """Folders with files below ``new/``, the names of these files, and their bytes."""
    found = list(walk(store, join(draft, "new")))
    names = tuple(entry.name for _, entry in found)
    return tuple(sorted({folder for folder, _ in found})), names, sum(entry.size for _, entry in found)
