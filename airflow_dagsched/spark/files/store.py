"""The few file operations that commits, leases and swaps stand on, for any file system.

Names are whole paths, plain or with a scheme, and come back the way they were given. What must be atomic:
``create_exclusive`` (one of any number of callers wins; the text is there with the name) and ``rename`` (one wins,
and none moves to a name that exists).
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from airflow_dagsched import exclusive


class Entry(NamedTuple):
    """A file or folder as a listing shows it."""

    name: str
    is_folder: bool
    size: int
    """Bytes; 0 for a folder."""
    modified_ns: int
    """Nanoseconds since 1970, as exact as the file system keeps it."""


@dataclass(frozen=True, slots=True)
class Fence:
    """What the holder of a lock knows of it."""

    token: str = "0"
    """Of two holders after each other that may both live, each has its own."""
    check: Callable[[], None] = lambda: None
    """Raises ``WriteRefused`` if the lock is another's meanwhile."""


class Store(Protocol):
    """Files of one file system. A missing file is ``FileNotFoundError``, other trouble ``OSError``."""

    def read_text(self, path: str) -> str:
        """What is there; bytes that are no UTF-8 are shown by characters that no record has."""
        ...

    def create_exclusive(self, path: str, text: str) -> bool:
        """Make the file, with its folders; False, and nothing changed, if it is there."""
        ...

    def write_text(self, path: str, text: str) -> None:
        """Make or replace the file."""
        ...

    def list(self, path: str) -> tuple[Entry, ...]:
        """What is directly in the folder, by name, hidden files too; nothing if it is missing."""
        ...

    def exists(self, path: str) -> bool: ...

    def mkdirs(self, path: str) -> None: ...

    def rename(self, source: str, target: str) -> None:
        """Move a file or folder to a name that does not exist, in one step; its parent folder must be there.

        Raises ``FileExistsError`` if the name is taken: never moves *into* a folder.
        """
        ...

    def exchange(self, one: str, other: str) -> bool:
        """Swap two folders in one atomic step; False, and nothing changed, where that cannot be done."""
        ...

    def delete(self, path: str) -> None:
        """Remove the file or the folder with all in it; nothing to do if it is missing."""
        ...

    def delete_empty(self, path: str) -> bool:
        """Remove the folder if it is empty, in one step; whether it was."""
        ...

    def resolve(self, path: str) -> str:
        """The path without links in it, whether it exists or not."""
        ...

    def sync(self, paths: tuple[str, ...]) -> None:
        """Return when these files, and the names in these folders, would outlive a power cut."""
        ...

    def lock(self, path: str) -> AbstractContextManager[Fence] | None:
        """Keep all others that lock ``path`` out, threads and processes, while the block runs.

        None where the file system has no locks that end with their holder: there a lease is one (``outputs/locks``).
        """
        ...


def walk_files(store: Store, root: str) -> Iterator[tuple[str, Entry]]:
    """Each visible file below ``root`` with the folder it is in, relative to ``root`` ("" for itself), by name."""
    folders = [""]
    while folders:
        folder = folders.pop()
        for entry in store.list(join_path(root, folder)):
            if is_hidden(entry.name):
                continue
            if entry.is_folder:
                folders.append(join_path(folder, entry.name))
            else:
                yield folder, entry


def is_hidden(name: str) -> bool:
    """Whether Spark leaves the name out when it reads a folder."""
    # Spark's own rule (``HadoopFSUtils.shouldFilterOutPathName``): a partition column may begin with ``_``.
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def join_path(folder: str, *names: str) -> str:
    """Path of ``names`` in ``folder``; empty ones are left out."""
    # ``or folder``: of "/" nothing would be left.
    return "/".join(filter(None, (folder.rstrip("/") or folder, *names)))


def make_local_path(url: str) -> Path:
    """``url`` as the operating system names it. Like Hadoop, decodes nothing."""
    return Path(url.removeprefix("file:").removeprefix("//") if url.startswith("file:") else url)


def name_local(path: Path) -> str:
    """``path`` of this machine for Spark, whose paths without a scheme may be of another file system."""
    # Not ``as_uri``: Hadoop decodes nothing.
    return f"file://{path}"


class LocalStore:
    """Paths of this machine (or a mounted file system), in plain Python."""

    def read_text(self, path: str) -> str:
        # A torn record must be readable, to be judged as none.
        return make_local_path(path).read_text("utf-8", "surrogateescape")

    def create_exclusive(self, path: str, text: str) -> bool:
        return exclusive.create_exclusive(make_local_path(path), text)

    def write_text(self, path: str, text: str) -> None:
        exclusive.replace_text(make_local_path(path), text)

    def list(self, path: str) -> tuple[Entry, ...]:
        try:
            with os.scandir(make_local_path(path)) as found:
                entries = [entry for item in found if (entry := _make_entry(item)) is not None]
        except (FileNotFoundError, NotADirectoryError):
            return ()
        return tuple(sorted(entries, key=lambda entry: entry.name))

    def exists(self, path: str) -> bool:
        # A link to nowhere takes the name all the same.
        return os.path.lexists(make_local_path(path))

    def mkdirs(self, path: str) -> None:
        make_local_path(path).mkdir(parents=True, exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        # rename(2) replaces an empty folder of the target's name without a word.
        if _call_renameat2(make_local_path(source), make_local_path(target), _RENAME_NOREPLACE):
            return
        if self.exists(target):
            raise FileExistsError(errno.EEXIST, "the target of a rename exists", target)
        make_local_path(source).rename(make_local_path(target))

    def exchange(self, one: str, other: str) -> bool:
        return _call_renameat2(make_local_path(one), make_local_path(other), _RENAME_EXCHANGE)

    def delete(self, path: str) -> None:
        """See ``Store``. A file that another writer adds meanwhile does not stop it."""
        local = make_local_path(path)
        if local.is_dir() and not local.is_symlink():
            # Twice: a file that comes while the first walks makes its last rmdir fail; what the second meets is real.
            shutil.rmtree(local, ignore_errors=True)
        if local.is_dir() and not local.is_symlink():
            shutil.rmtree(local)
        else:
            local.unlink(missing_ok=True)

    def delete_empty(self, path: str) -> bool:
        try:
            make_local_path(path).rmdir()
        except OSError:
            return False
        return True

    def resolve(self, path: str) -> str:
        scheme = "file://" if path.startswith("file:") else ""
        return scheme + os.path.realpath(make_local_path(path))

    def sync(self, paths: tuple[str, ...]) -> None:
        for path in paths:
            exclusive.sync_path(make_local_path(path))

    @contextmanager
    def lock(self, path: str) -> Iterator[Fence]:
        """See ``Store``. The system frees the lock of a process that dies, and takes it from no other."""
        make_local_path(path).parent.mkdir(parents=True, exist_ok=True)
        # Never removed: who holds the lock of a removed file keeps nobody out.
        with make_local_path(path).open("a", encoding="utf-8") as file:
            # Not lockf: POSIX record locks are a process's. Two threads would both have it; any close would free it.
            fcntl.flock(file, fcntl.LOCK_EX)
            yield Fence()


def _make_entry(item: os.DirEntry[str]) -> Entry | None:
    """None if the file went while the folder was listed."""
    try:
        stat = item.stat()
    except FileNotFoundError:
        return None
    folder = item.is_dir()
    return Entry(item.name, folder, 0 if folder else stat.st_size, stat.st_mtime_ns)


_AT_FDCWD = -100
_RENAME_NOREPLACE = 1
_RENAME_EXCHANGE = 2


def _call_renameat2(one: Path, other: Path, how: int) -> bool:
    """Rename, where the system has the call and the file system supports it; False, and nothing changed, elsewhere."""
    # Python has no function for it; glibc has since 2.28.
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return False
    if call(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), how) == 0:
        return True
    number = ctypes.get_errno()
    # EINVAL: the file system lacks the flag; ENOSYS: the kernel is older than 3.15.
    if number in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
        return False
    raise OSError(number, os.strerror(number), str(one), None, str(other))
