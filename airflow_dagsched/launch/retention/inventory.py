"""Looks at files without stumbling: what is gone is not there, what cannot be read is said and left alone."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from airflow_dagsched.launch.protocol.wire import load_json


@dataclass(frozen=True, slots=True)
class Listed:
    """A file or folder as a listing shows it; a link is a file."""

    name: str
    is_folder: bool
    modified: float
    """Seconds since 1970."""
    is_mine: bool = True
    """Whether it belongs to who looks."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """What could not be read or removed."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


class Files(Protocol):
    """Files of one file system. A missing file is ``FileNotFoundError``, other trouble ``OSError``."""

    def list(self, path: str) -> tuple[Listed, ...]:
        """What is in the folder."""
        ...

    def read_text(self, path: str) -> str:
        """The text of the file, in UTF-8."""
        ...

    def exists(self, path: str) -> bool:
        """Whether there is a file, a folder, or a link to nowhere."""
        ...

    def delete(self, path: str) -> None:
        """Remove the file, or the folder with all in it."""
        ...

    def delete_empty(self, path: str) -> bool:
        """Remove the folder if it is empty; whether it was."""
        ...


class Inventory:
    """One look at ``files``; remembers what troubled it."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._troubles: dict[str, Trouble] = {}

    @property
    def troubles(self) -> tuple[Trouble, ...]:
        """What could not be looked at or removed, in the order in which it was met."""
        return tuple(self._troubles.values())

    def is_known(self, path: str) -> bool:
        """Whether nothing troubled a look at it."""
        return path not in self._troubles

    def _note_trouble(self, path: str, error: Exception) -> None:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        self._troubles[path] = Trouble(path, reason)

    def list_folder(self, path: str) -> tuple[Listed, ...]:
        """What is in the folder; nothing if it is gone, or no folder, or cannot be read."""
        try:
            return self._files.list(path)
        except (FileNotFoundError, NotADirectoryError):
            return ()
        # A record may name any path: ValueError is for one with a NUL in it.
        except (OSError, ValueError) as error:
            self._note_trouble(path, error)
            return ()

    def walk_folders(self, path: str, depth: int) -> Iterator[tuple[str, Listed]]:
        """Folders so many levels below, with their names relative to ``path``."""
        for entry in self.list_folder(path):
            if entry.is_folder and depth == 1:
                yield entry.name, entry
            elif entry.is_folder:
                for name, lower in self.walk_folders(join_path(path, entry.name), depth - 1):
                    yield f"{entry.name}/{name}", lower

    def list_files(self, folder: str, ending: str) -> tuple[tuple[str, float], ...]:
        """Path and date of each file whose name ends so, by name."""
        found = (entry for entry in self.list_folder(folder) if not entry.is_folder and entry.name.endswith(ending))
        return tuple((join_path(folder, entry.name), entry.modified) for entry in found if entry.name[0] != ".")

    def read_json(self, path: str) -> dict[str, Any]:
        """The JSON object in the file; empty if it is torn, gone, or something else."""
        try:
            raw = load_json(self._files.read_text(path))
        except FileNotFoundError:
            return {}
        except OSError as error:
            self._note_trouble(path, error)
            return {}
        # A torn file is for its own readers to say; it troubles nobody who looks at what is old.
        except ValueError:
            return {}
        return raw if isinstance(raw, dict) else {}

    def exists(self, path: str) -> bool:
        """Whether it is there, or nobody can tell."""
        try:
            return self._files.exists(path)
        except (OSError, ValueError):
            return True

    def find_newest(self, path: str, entry: Listed) -> float:
        """Date of the last change of the file, or of anything in the folder; never, if that cannot be told."""
        if not entry.is_folder:
            return entry.modified
        inside = [self.find_newest(join_path(path, each.name), each) for each in self.list_folder(path)]
        # A folder that can't be looked into may hold something new.
        return max([entry.modified, *inside]) if self.is_known(path) else float("inf")

    def remove(self, path: str) -> bool:
        """Whether it is gone now."""
        try:
            self._files.delete(path)
        except FileNotFoundError:
            return True
        except OSError as error:
            self._note_trouble(path, error)
            return False
        return True

    def remove_empty(self, path: str) -> None:
        """Remove the folder if nothing is in it."""
        try:
            self._files.delete_empty(path)
        # Not empty, or gone already: somebody else's either way.
        except OSError:
            return


class LocalFiles:
    """Files of this machine, or of a mounted file system."""

    def list(self, path: str) -> tuple[Listed, ...]:
        with os.scandir(path) as entries:
            listed = [each for entry in entries if (each := _read_entry(entry)) is not None]
        return tuple(sorted(listed, key=lambda each: each.name))

    def read_text(self, path: str) -> str:
        return Path(path).read_text("utf-8")

    def exists(self, path: str) -> bool:
        return os.path.lexists(path)

    def delete(self, path: str) -> None:
        # What a link leads to is not ours: the link goes, as a file.
        if Path(path).is_dir() and not Path(path).is_symlink():
            shutil.rmtree(path)
        else:
            Path(path).unlink()

    def delete_empty(self, path: str) -> bool:
        Path(path).rmdir()
        return True


LOCAL = LocalFiles()


def _read_entry(entry: os.DirEntry[str]) -> Listed | None:
    """None if it went while the folder was listed."""
    try:
        status = entry.stat(follow_symlinks=False)  # a link's own date: what it leads to may be anything
    except FileNotFoundError:
        return None
    return Listed(entry.name, stat.S_ISDIR(status.st_mode), status.st_mtime, status.st_uid == os.getuid())


def join_path(folder: str, *names: str) -> str:
    """Path of ``names`` in ``folder``."""
    return "/".join((folder.rstrip("/"), *names))


def get_parent(path: str) -> str:
    """The folder that it is in."""
    return path.rpartition("/")[0]
