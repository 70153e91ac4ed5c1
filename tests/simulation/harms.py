"""What may happen to files between the death of a writer and the next one: a link, a mount, files gone, files empty."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from airflow_dagsched.launch.protocol.keys import name_hidden_folder
from tests.simulation.drivers import TABLE
from tests.simulation.places import Places
from tests.simulation.snapshots import Snapshot, restore, take

HOME = name_hidden_folder(TABLE)
BY_LINK = "/links/clean"
"""Where the table is too, once somebody made a link to it."""
Harm = Callable[[Snapshot], Snapshot | None]
"""The files after it; None where there is nothing to do it to."""


def do_nothing(files: Snapshot) -> Snapshot:
    """Only time passes."""
    return files


def remove_draft_file(files: Snapshot) -> Snapshot | None:
    """A data file of a draft, whether it was committed or not."""
    return _without_newest(files, lambda path: path.startswith(HOME) and "/new/" in path)


def remove_journal(files: Snapshot) -> Snapshot | None:
    """The one file of a draft that says what is to be done."""
    return _without_newest(files, lambda path: path.startswith(HOME) and path.endswith("/swap.json"))


def remove_table_file(files: Snapshot) -> Snapshot | None:
    """A data file of the step's that the newest record names, or an earlier one."""
    return _without_newest(files, lambda path: path.startswith(f"{TABLE}/") and files.nodes[path].text[:2] == "a ")


def remove_record(files: Snapshot) -> Snapshot | None:
    """The newest."""
    return _without_newest(files, _is_record)


def remove_commits(files: Snapshot) -> Snapshot | None:
    """All records, and refusals, of the table."""
    folder = f"{HOME}/commits"
    return files.without(folder) if folder in files.nodes else None


def empty_record(files: Snapshot) -> Snapshot | None:
    """The newest."""
    return _with_newest(files, _is_record, "")


def null_record(files: Snapshot) -> Snapshot | None:
    """The newest: text, but none of a record."""
    return _with_newest(files, _is_record, "null")


def empty_lease(files: Snapshot) -> Snapshot | None:
    """The newest."""
    return _with_newest(files, lambda path: path.startswith(f"{HOME}/leases/mon/"), "")


def empty_lock(files: Snapshot) -> Snapshot | None:
    """The newest lease that is the table's lock, where a lock is one."""
    return _with_newest(files, lambda path: path.startswith(f"{HOME}/lock/"), "")


def link_table(files: Snapshot) -> Snapshot | None:
    """The writers to come reach the table through a link."""
    return _changed(files, lambda tree: tree.link(BY_LINK, TABLE))


def move_table(files: Snapshot) -> Snapshot | None:
    """The table goes elsewhere, without the hidden folder; a link leads there from its old place."""
    return _moved(files, TABLE, "/elsewhere/clean")


def move_partition(files: Snapshot) -> Snapshot | None:
    """A partition goes elsewhere; a link leads there from its old place."""
    return _moved(files, f"{TABLE}/p=2", "/elsewhere/p2")


def mount_table(files: Snapshot) -> Snapshot | None:
    """The table is a mount point."""
    return replace(files, mounts=frozenset({TABLE}))


def mount_partition(files: Snapshot) -> Snapshot | None:
    """A partition is a mount point."""
    folder = f"{TABLE}/p=2"
    return replace(files, mounts=frozenset({folder})) if folder in files.nodes else None


IN_BETWEEN: tuple[Harm, ...] = (
    do_nothing,
    remove_draft_file,
    remove_journal,
    remove_table_file,
    remove_record,
    remove_commits,
    empty_record,
    null_record,
    empty_lease,
    empty_lock,
)
LINKS: tuple[Harm, ...] = (link_table, move_table, move_partition)
"""Where there are links."""
MOUNTS: tuple[Harm, ...] = (mount_table, mount_partition)


def _is_record(path: str) -> bool:
    return path.startswith(f"{HOME}/commits/mon/") and path.endswith(".json")


def _newest(files: Snapshot, is_meant: Callable[[str], bool]) -> str | None:
    paths = [path for path, each in files.nodes.items() if each.kind == "file" and is_meant(path)]
    return max(paths, key=lambda path: (files.nodes[path].modified, path), default=None)


def _without_newest(files: Snapshot, is_meant: Callable[[str], bool]) -> Snapshot | None:
    path = _newest(files, is_meant)
    return files.without(path) if path else None


def _with_newest(files: Snapshot, is_meant: Callable[[str], bool], text: str) -> Snapshot | None:
    path = _newest(files, is_meant)
    return files.with_text(path, text) if path else None


def _moved(files: Snapshot, path: str, to: str) -> Snapshot | None:
    def move(tree: Places) -> None:
        tree.make_folder(to.rpartition("/")[0])
        tree.put(to, tree.take(path))
        tree.link(path, to)

    return _changed(files, move) if path in files.nodes else None


def _changed(files: Snapshot, change: Callable[[Places], None]) -> Snapshot:
    tree = Places(lambda: files.now)
    restore(files, tree)
    change(tree)
    return take(tree, files.now)
