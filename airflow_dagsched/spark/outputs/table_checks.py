"""What has to be right before a table's commit record is made, and after: nothing is to be found out in between."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from airflow_dagsched.errors import DagschedError
from airflow_dagsched.launch.protocol.keys import digest_parts, name_hidden_folder
from airflow_dagsched.spark.files.store import Store, join_path, walk_files
from airflow_dagsched.spark.outputs.commits import Files
from airflow_dagsched.spark.outputs.swap import Swap, list_draft_files


@dataclass
class DraftChanged(DagschedError):
    """What a step wrote aside is not what it was when it was written."""

    draft: str
    missing: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"{self.draft}: files written there are missing, added or of another size: "
            f"{', '.join(self.missing[:3])}. The table was not changed: something else writes, or cleans up, beside it"
        )


@dataclass
class NoWayIn(DagschedError):
    """Files cannot be moved into a table."""

    table: str
    folder: str
    reason: str

    def __str__(self) -> str:
        hidden = name_hidden_folder(self.table)
        return (
            f"{self.table}: a file of {hidden} cannot be moved to {self.folder}: {self.reason}. The table was not "
            "changed. Where it, or a part of it, is a mount point or a link to another file system, declare "
            "it by its path there, one folder below the mount"
        )


def check_draft(store: Store, swap: Swap, files: Files) -> None:
    """Raise ``DraftChanged`` unless the draft holds exactly these files."""
    # Both ways: a cleaner takes files away, a second writer adds some.
    different = set(list_draft_files(store, swap.draft)) ^ set(files)
    if different:
        raise DraftChanged(swap.draft, tuple(sorted({path for path, _ in different})))


def check_way_in(store: Store, swap: Swap) -> None:
    """Move a hidden file into each folder of the table that changes, and back. Raises ``NoWayIn``."""
    # A rename across a mount fails (EXDEV). After the record there would be no way back from that.
    probe = join_path(swap.draft, "probe")
    store.write_text(probe, "")
    for folder in sorted(
        {_find_existing(store, swap.table, each) for each in (*swap.folders, *swap.old_folders)} - {""}
    ):
        there = join_path(folder, f".dagsched-probe-{digest_parts(swap.draft)}")
        try:
            store.rename(probe, there)
            store.rename(there, probe)
        except FileNotFoundError:
            store.write_text(probe, "")  # the folder is just gone: nothing to move into
        except OSError as error:
            raise NoWayIn(swap.table, folder, error.strerror or str(error)) from error
    store.delete(probe)


def _find_existing(store: Store, table: str, folder: str) -> str:
    """The folder of the table that the moves of ``folder`` begin in; "" if the table itself is not there."""
    while not store.exists(join_path(table, folder)):
        if not folder:
            return ""
        folder = folder.rpartition("/")[0]
    return store.resolve(join_path(table, folder))


def folders_with(store: Store, table: str, token: str) -> tuple[str, ...]:
    """Folders of the table with files that have ``token`` in the name."""
    return tuple(sorted({folder for folder, entry in walk_files(store, table) if token in entry.name}))


def find_missing_files(store: Store, root: str, files: Files) -> tuple[str, ...]:
    """Those of ``files`` that are not below ``root``, or of another size."""
    there: dict[str, int] = {}
    # One listing a folder, not a look at each file: on object stores each is a request.
    for folder in sorted({path.rpartition("/")[0] for path, _ in files}):
        entries = (entry for entry in store.list(join_path(root, folder)) if not entry.is_folder)
        there.update({join_path(folder, entry.name) if folder else entry.name: entry.size for entry in entries})
    return tuple(path for path, size in files if there.get(path) != size)


def make_durable(store: Store, files: Files, draft: str, top: str) -> None:
    """Return when the draft, with its journal, would outlive a power cut.

    :param top: folder above the draft up to which names are looked after.
    """
    new = join_path(draft, "new")
    folders = {join_path(new, each) for path, _ in files for each in _list_above(path)}
    names = [join_path(new, path) for path, _ in files]
    # Files, then folders from the deepest up: a name lasts once the folder it is in does.
    above = [join_path(top, each) for each in _list_above(draft.removeprefix(top).strip("/"))]
    store.sync((*names, *sorted(folders, reverse=True), draft, *above))


def make_table_durable(store: Store, swap: Swap) -> None:
    """Return when the moves would outlive a power cut: the journal may go then."""
    folders = {
        join_path(swap.table, each)
        for folder in (*swap.folders, *swap.old_folders)
        for each in _list_above(f"{folder}/")
    }
    # Folders that the swap emptied are gone.
    there = (folder for folder in sorted({*folders, swap.table}, reverse=True) if store.exists(folder))
    store.sync((*there, swap.table.rpartition("/")[0]))


def _list_above(path: str) -> Iterator[str]:
    """The folders that ``path`` is in, to the top, which is ""."""
    while path:
        path = path.rpartition("/")[0]
        yield path
