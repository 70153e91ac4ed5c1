"""The swap: how files that were written aside become the content of a table folder.

::

    /data/.dagsched-clean/<draft>/new/day=1/…   what the step wrote
    /data/.dagsched-clean/<draft>/swap.json     what is to be done: the journal
    /data/.dagsched-clean/<draft>/old-7.0/…     what the holder of lock 7 took out of the table
    /data/clean/day=1/…                         what readers see

    journal -> commit record -> day=1 <=> new/day=1, ... -> journal removed, then the draft
               ^ the commit point

Before the record exists the draft is nothing; from then on whoever holds the lock finishes the swap: each
move is skipped if its result is there, so it may be done again from any point. A partition folder (or the
whole table, if it has none) changes in one atomic exchange where the file system can do that. Elsewhere it
is renamed out and the new one in, and a reader between the two finds it missing, but never mixed. (So may, for an
instant, who reads through Hadoop's local file system: it leaves out of a listing what goes meanwhile.) Of an append
that is made again the earlier files go before the new ones come: a reader may miss rows of the interval, and see none
twice.

Where the lock is a lease (``locks``) its holder may stand still, lose it, and do one change late. None does harm:

* *a move out of the table* goes to ``old-<lock>``, a folder of that holder alone, made before its look at the fence.
  Who takes the lock over renames that folder first: the late move fails, for the parent of its target is gone, or it
  came before, and took out what the swap, which is committed, replaces.
* *a move into the table* is of a file or folder that is in one draft only, of a committed swap. The next holder does
  the same move, and one of the two finds it done (``_replace_folder`` and ``_add_files`` look again). If it came
  between the next holder's look and its move out, that took out what is new: found there, it comes in again.
* *a removal* is of files by names that no other commit uses, and that a committed swap takes away; of folders only if
  they are empty, in one step: who was about to move something in finds the parent missing, makes it, does it again.
* *a record* that comes late was refused by the next holder, for its journal was there before its writer looked at
  the fence (``table_commit``); a journal that comes late has no record, and its writer sees that it lost the lock.
* *a folder made*, *a probe* (a hidden file), *a draft removed* (its name is one writer's, of one lease) harm nobody.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from airflow_dagsched.launch.protocol.keys import name_hidden_folder
from airflow_dagsched.launch.protocol.wire import encode_plain, parse_dataclass
from airflow_dagsched.spark.files.store import Store, is_hidden, join_path, walk_files
from airflow_dagsched.spark.outputs.commits import Files

log = logging.getLogger(__name__)

EMPTY = "dagsched-empty-"
"""First part of the name of a file that only gives an empty table its schema."""
COORDINATION = frozenset({"commits", "leases", "lock", "stream"})
"""Names in the hidden folder that are no drafts; drafts of streams are moved by their logs (``spark/streams``)."""
ATTEMPTS = 20
"""How often a move that others were in the way of is looked at again: each of them is there once."""


@dataclass(frozen=True, slots=True)
class Swap:
    """The journal of one swap."""

    record: str
    """Path of the commit record; the swap counts once this holds a commit with the same tag."""
    tag: str
    """Part of the name of each file of this commit."""
    table: str
    """Folder of the table, without links in its path."""
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
    key: str = ""
    """Part of the names of all files of this writer and interval, whichever commit: those of others of them go."""

    def is_old(self, name: str) -> bool:
        """Whether the file belongs to what this commit replaces."""
        tokens = [token for token in (self.old_tag, self.key) if token]
        is_new = bool(self.tag) and self.tag in name
        return not is_new and any(token in name for token in tokens)


def lock_path(table: str) -> str:
    """What is locked while the table's content changes."""
    return join_path(name_hidden_folder(table), "lock")


def write_journal(store: Store, swap: Swap) -> None:
    """Say what is to be done, before the commit."""
    store.write_text(_make_journal_path(swap.draft), json.dumps(encode_plain(swap), sort_keys=True))


def remove_journal(store: Store, draft: str) -> None:
    """What is left of the draft is rubbish from now on."""
    store.delete(_make_journal_path(draft))


def has_journal(store: Store, draft: str) -> bool:
    """Whether the swap of the draft was begun, and not finished or given up."""
    return store.exists(_make_journal_path(draft))


def _make_journal_path(draft: str) -> str:
    return join_path(draft, "swap.json")


def list_torn(store: Store, table: str) -> tuple[str, ...]:
    """Drafts of ``table`` with a journal: the lock's holder works on one, or one died at it."""
    entries = (
        entry for entry in store.list(name_hidden_folder(table)) if entry.is_folder and entry.name not in COORDINATION
    )
    found = (join_path(name_hidden_folder(table), entry.name) for entry in entries)
    return tuple(draft for draft in found if has_journal(store, draft))


def read_journal(store: Store, draft: str) -> Swap | None:
    """The journal in ``draft``; None if its writer died while it wrote it, so before the commit."""
    try:
        return parse_dataclass(Swap, store.read_text(_make_journal_path(draft)))
    except FileNotFoundError:
        return None


def disarm(store: Store, draft: str, token: str) -> None:
    """Make late moves of earlier holders of the lock fail. Call under the lock, before anything else is looked at."""
    for entry in store.list(draft):
        if entry.name.startswith("old-") and not entry.name.startswith(f"old-{token}."):
            with suppress(FileNotFoundError):  # an earlier holder, late, did it
                store.rename(join_path(draft, entry.name), join_path(draft, f"was-{token}-{entry.name}"))


def move_all(store: Store, swap: Swap, token: str) -> None:
    """Do all moves of the swap that are not done yet. Call under the lock; the draft stays."""
    if swap.mode == "append":
        _remove_all_old(store, swap, token)
    for folder in swap.folders:
        if swap.mode == "overwrite":
            _replace_folder(store, swap, folder, token)
        else:
            _add_files(store, swap, folder)
    # Beside partitions, the file that gave the empty table its schema would be one without their columns.
    if swap.folders and swap.folders != ("",):
        _delete_files(store, swap.table, [each.name for each in store.list(swap.table) if EMPTY in each.name])
    if swap.mode == "overwrite":
        _remove_all_old(store, swap, token)
    store.mkdirs(swap.table)
    if swap.empty and not any(not is_hidden(entry.name) for entry in store.list(swap.table)):
        _move_if_there(store, join_path(swap.draft, swap.empty), join_path(swap.table, swap.empty))


def find_tagged(store: Store, path: str, tag: str) -> tuple[tuple[str, ...], int, bool]:
    """The files in folder ``path`` with ``tag`` in the name, their bytes, and whether nothing else is there."""
    visible = [each for each in store.list(path) if not is_hidden(each.name)]
    ours = [each for each in visible if tag in each.name and not each.is_folder]
    return (
        tuple(join_path(path, each.name) for each in ours),
        sum(each.size for each in ours),
        len(ours) == len(visible),
    )


def _replace_folder(store: Store, swap: Swap, folder: str, token: str) -> None:
    """The whole folder: old out, new in; what is not there to come in leaves the old one where it is."""
    # A partition may be a link to another disk: what changes is behind it.
    seen = store.resolve(join_path(swap.table, folder))
    for attempt in range(ATTEMPTS):
        if find_tagged(store, seen, swap.tag)[0]:
            return
        # From the draft, or from what was taken out when a late move had come first.
        new = next((path for path in _where_new(store, swap, folder) if find_tagged(store, path, swap.tag)[0]), None)
        if new is None:
            log.error("%s: what was to be moved to %s is gone: it has to be made again", swap.draft, seen)
            return
        try:
            if store.exists(seen):
                # One atomic step; what was there is in ``new`` then, and goes with the draft.
                if store.exchange(new, seen):
                    return
                # A folder of this holder and this attempt alone: late moves fail on it, see the module.
                old = join_path(swap.draft, f"old-{token}.{attempt}", "table", folder)
                store.mkdirs(old.rpartition("/")[0])
                # From here until the next rename readers find nothing there, but never a mix.
                store.rename(seen, old)
            store.mkdirs(seen.rpartition("/")[0])
            store.rename(new, seen)
        except (FileNotFoundError, FileExistsError) as error:
            log.info("%s: somebody else was there: %s", seen, error)


def _where_new(store: Store, swap: Swap, folder: str) -> Iterator[str]:
    """Where what is to come in may be: also among what was taken out, by who met a late move in."""
    yield join_path(swap.draft, "new", folder)
    for entry in store.list(swap.draft):
        if entry.name.startswith(("old-", "was-")):
            yield join_path(swap.draft, entry.name, "table", folder)


def _add_files(store: Store, swap: Swap, folder: str) -> None:
    """Files one by one; those that are no longer in the draft were moved before."""
    new, seen = join_path(swap.draft, "new", folder), store.resolve(join_path(swap.table, folder))
    for entry in store.list(new):
        if not entry.is_folder and not is_hidden(entry.name):
            _move_if_there(store, join_path(new, entry.name), join_path(seen, entry.name))


def _move_if_there(store: Store, source: str, target: str) -> None:
    """Move a file that a late move of another may have moved, into a folder that another may have removed."""
    # Each turn somebody else moved the file, or removed the folder: both end.
    for _ in range(ATTEMPTS):
        try:
            store.mkdirs(target.rpartition("/")[0])
            store.rename(source, target)
        except FileExistsError:
            return
        except FileNotFoundError:
            if not store.exists(source):
                return
        else:
            return


def _remove_all_old(store: Store, swap: Swap, token: str) -> None:
    kept = swap.folders if swap.mode == "overwrite" else ()
    for folder in sorted(set(swap.old_folders) - set(kept)):
        _remove_old(store, swap, folder, token)


def _remove_old(store: Store, swap: Swap, folder: str, token: str) -> None:
    """The earlier commits' files, unless another writer has replaced them; then folders left empty."""
    path = join_path(swap.table, folder)
    entries = store.list(path)
    visible = [each for each in entries if not is_hidden(each.name)]
    old = [each.name for each in entries if not each.is_folder and swap.is_old(each.name)]
    alone = all(not each.is_folder and swap.is_old(each.name) for each in visible)
    # All that is in it goes: in one step. Else file by file, and a reader may see some of them gone.
    if visible and alone and folder and folder not in swap.folders:
        _move_out(store, path, join_path(swap.draft, f"old-{token}.gone", "table", folder))
    else:
        _delete_files(store, path, old)
    # Only if empty, in one step: somebody may be moving something in.
    while (folder := folder.rpartition("/")[0]) and store.delete_empty(join_path(swap.table, folder)):
        pass


def _move_out(store: Store, path: str, target: str) -> None:
    try:
        store.mkdirs(target.rpartition("/")[0])
        store.rename(path, target)
    except FileNotFoundError:
        log.info("%s: somebody else took it out", path)


def _delete_files(store: Store, path: str, names: list[str]) -> None:
    for name in names:
        store.delete(join_path(path, name))


def list_draft_files(store: Store, draft: str) -> Files:
    """The files below ``new/``, with their bytes."""
    found = walk_files(store, join_path(draft, "new"))
    return tuple(
        sorted((join_path(folder, entry.name) if folder else entry.name, entry.size) for folder, entry in found)
    )


def list_folders(files: Files) -> tuple[str, ...]:
    """The folders that have files in them."""
    return tuple(sorted({path.rpartition("/")[0] for path, _ in files}))


def list_replaced(store: Store, draft: str) -> Iterator[str]:
    """Files that the swap took out of the table."""
    return (entry.name for folder, entry in walk_files(store, draft) if folder)
