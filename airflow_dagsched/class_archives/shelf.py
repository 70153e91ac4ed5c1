"""The folder of archives on this host.

::

    <cache_dir>/class-archives/     0700
        <key>.jsa                   an archive, 0400
        <key>.jar                   what its drivers have before Spark's jars, if anything, 0400
        <key>.json                  what it was made for, and how large it is; touched by each driver that has it
        <key>.failed.json           why there is none, and since when
        lock                        held by who makes one
        making-<random>/            of one that is being made
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec import Struct

from airflow_dagsched.class_archives.look import read_jar
from airflow_dagsched.exclusive import replace_text, sync_path
from airflow_dagsched.launch.class_archive.bounds import Failure
from airflow_dagsched.launch.class_archive.host import Host, Jar
from airflow_dagsched.launch.secrecy.trust import find_stranger

MAKING = "making-"
NOTE = ".json"


class Note(Struct, frozen=True):
    """Of an archive that is there."""

    host: Host
    bytes: int
    changed_s: int
    """When its file was written, in whole seconds."""
    unsigned: Jar | None = None
    """What it wants before Spark's jars."""


@dataclass(frozen=True, slots=True)
class Shelf:
    """The archives of one cache folder."""

    folder: Path

    @classmethod
    def of(cls, cache_dir: Path) -> Shelf:
        """That of a cache folder, which need not be there."""
        return cls(cache_dir / "class-archives")

    @property
    def no_folder(self) -> Path:
        """Where never anything is."""
        return self.folder / "no-conf"

    def locate(self, key: str) -> Path:
        """File of the archive with this key."""
        return self.folder / f"{key}.jsa"

    def locate_unsigned(self, key: str) -> Path:
        """File of the jar that goes with it."""
        return self.folder / f"{key}.jar"

    def read_note(self, key: str) -> Note | None:
        """What there is with this key; None: nothing that anybody has finished."""
        try:
            return msgspec.json.decode(self._note(key).read_bytes(), type=Note)
        except (OSError, msgspec.DecodeError):
            return None

    def find_stranger(self, key: str) -> str:
        """What lets others write the archive, or what is noted of it; empty if nothing does."""
        jar = self.locate_unsigned(key)
        files = (self.locate(key), self._note(key), *((jar,) if jar.exists() else ()))
        try:
            return next(filter(None, map(find_stranger, files)), "")
        except OSError as error:
            return f"{error.filename}: {error.strerror}"

    def is_as_noted(self, key: str, note: Note) -> bool:
        """Whether the files are those that were proven."""
        try:
            found = self.locate(key).stat()
            is_jar_same = note.unsigned is None or note.unsigned == read_jar(self.locate_unsigned(key))
        except OSError:
            return False
        return is_jar_same and (found.st_size, int(found.st_mtime)) == (note.bytes, note.changed_s)

    def note_use(self, key: str) -> None:
        """A driver has it: so it is removed after others. Nothing where the folder is read-only."""
        with suppress(OSError):
            os.utime(self._note(key))

    def list_notes(self) -> Iterator[tuple[str, Note, float]]:
        """Key, note, and when it was last used (seconds of the epoch), of each archive."""
        for path in sorted(self.folder.glob(f"*{NOTE}")):
            note = self.read_note(path.stem)
            if note is not None:
                yield path.stem, note, path.stat().st_mtime

    def list_keys(self) -> tuple[str, ...]:
        """Of all that is there: archives, failures, and a jar whose archive never came to be."""
        return tuple(sorted({path.name.partition(".")[0] for path in self.folder.glob("[!.]*.j*")}))

    def read_failure(self, key: str) -> Failure | None:
        """Why there is no archive with this key; None: nobody has tried to make it in vain."""
        try:
            return msgspec.json.decode(self._failure(key).read_bytes(), type=Failure)
        except (OSError, msgspec.DecodeError):
            return None

    def open(self) -> None:
        """Make the folder, this user's alone. Raises ``OSError``, also where nothing can be written into it."""
        self.folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder.mkdir(mode=0o700, exist_ok=True)
        if not os.access(self.folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, "nothing can be written there", str(self.folder))

    @contextmanager
    def hold_lock(self) -> Iterator[bool]:
        """Whether this process alone makes archives here, until the end of the block, or its own."""
        # The kernel frees it with its holder, however that ends; children don't inherit it.
        handle = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield True
        except BlockingIOError:
            yield False
        finally:
            os.close(handle)

    def keep(self, draft: Path, key: str, host: Host, unsigned: Jar | None) -> None:
        """Put a finished archive in its place, beside its jar, to outlive a power cut. Raises ``OSError``."""
        if unsigned is not None:
            sync_path(Path(unsigned.path))
        draft.chmod(0o400)
        sync_path(draft)
        self._note(key).unlink(missing_ok=True)  # of one before it: never beside a file that it doesn't mean
        draft.replace(self.locate(key))
        found = self.locate(key).stat()
        note = Note(host, found.st_size, int(found.st_mtime), unsigned)
        replace_text(self._note(key), msgspec.json.encode(note).decode())
        self.forget_failure(key)

    def note_failure(self, key: str, reason: str) -> None:
        """Say why there is none; nothing where not even that can be written."""
        with suppress(OSError):
            replace_text(self._failure(key), msgspec.json.encode(Failure(reason, time.time())).decode(), durable=False)

    def forget_failure(self, key: str) -> None:
        """Let it be tried again at once."""
        self._failure(key).unlink(missing_ok=True)

    def remove(self, key: str) -> None:
        """Take the archive, and what is noted of it, away; Java goes on with one that it has mapped."""
        for path in (self._note(key), self._failure(key), self.locate(key), self.locate_unsigned(key)):
            path.unlink(missing_ok=True)

    def sweep(self) -> None:
        """Take away what a maker left that died; to be called with the lock."""
        for path in self.folder.glob(f"{MAKING}*"):
            shutil.rmtree(path, ignore_errors=True)
        for path in self.folder.glob(".draft-*"):
            path.unlink(missing_ok=True)
        for path in (*self.folder.glob("*.jsa"), *self.folder.glob("*.jar")):
            if self.read_note(path.stem) is None:
                path.unlink(missing_ok=True)

    def _note(self, key: str) -> Path:
        return self.folder / f"{key}{NOTE}"

    def _failure(self, key: str) -> Path:
        return self.folder / f"{key}.failed{NOTE}"
