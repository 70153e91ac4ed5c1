"""Small files that come to be whole or not at all, in plain Python: what locks, records and logs stand on.

``create_exclusive`` is the one way in which several processes settle who is first: one of any number of callers wins,
and the text is there with the name. ``replace_text`` is for what is told again and again: a reader has the old text or
the new.
"""

from __future__ import annotations

import errno
import os
import uuid
from pathlib import Path


def create_exclusive(path: Path, text: str) -> bool:
    """Make the file, with its folders, to outlive a power cut; False, and nothing changed, if the name is taken."""
    draft = _write_draft(path, text, durable=True)
    try:
        # link(2) refuses a name that is taken, where rename(2) replaces; by O_EXCL it would come before its text.
        path.hardlink_to(draft)
        sync_path(path.parent)
        return True
    except FileExistsError:
        return False
    finally:
        draft.unlink()


def replace_text(path: Path, text: str, *, durable: bool = True) -> None:
    """Make or replace the file, with its folders.

    :param durable: False: it may be lost in a power cut, or be empty after it; for what is soon written again.
    """
    draft = _write_draft(path, text, durable)
    try:
        # rename(2) replaces in one step: a reader has the old text or the new.
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def sync_path(path: Path) -> None:
    """Return when the file, or the names in the folder, would outlive a power cut."""
    # A folder opens for reading only; fsync takes that. It is what keeps a new name, not the file's own fsync.
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that knows no such thing for folders
            raise
    finally:
        os.close(handle)


def _write_draft(path: Path, text: str, durable: bool) -> Path:
    # In the same folder: neither link nor rename leaves a file system.
    draft = path.with_name(f".draft-{uuid.uuid4().hex}")
    _make_folders(draft.parent)
    try:
        with draft.open("x", encoding="utf-8") as file:
            file.write(text)
            if durable:
                file.flush()
                # Else a power cut may leave the name with nothing in it: ext4 allocates late.
                os.fsync(file.fileno())
    except BaseException:
        # A disk that is full is tried again and again.
        draft.unlink(missing_ok=True)
        raise
    return draft


def _make_folders(folder: Path) -> None:
    """With those above it, each to outlive a power cut."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        # Another process may make it at the same time.
        each.mkdir(exist_ok=True)
        sync_path(each.parent)
