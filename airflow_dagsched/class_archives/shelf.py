"""The folder of archives on this host.

::

    <cache_dir>/class-archives/     0700
        <key>.jsa                   an archive, 0400
        <key>.jar                   what its drivers have before Spark's jars, if anything, 0400
        <key>.json                  what it was made for, and how large it is; touched by each driver that has it
        <key>.failed.json           why there is none, and since when
        lock                        held by who makes one
        making-<random>/            of one that is being made
        hs_err.log                  what the last Java said that crashed with an archive

Somebody may have another folder of this name: all that writes or removes goes through :meth:`Shelf._enter`, which
refuses one that others may write, and a link to one; and what has not the name of any of these stays.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import tempfile
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
from airflow_dagsched.launch.class_archive.verdict import KEEP_OUT
from airflow_dagsched.launch.secrecy.cache_folder import is_own_folder
from airflow_dagsched.launch.secrecy.trust import find_strange_folder, find_stranger, find_stranger_above

MAKING = "making-"
NOTE, FAILURE = ".json", ".failed.json"
_OWN = re.compile(r"(?P<key>[0-9a-f]{24})(?P<rest>\.jsa|\.jar|\.json|\.failed\.json)")
"""Of a file of an archive, whose key is as ``compute_key`` makes it."""
_DRAFT = re.compile(r"\.draft-[0-9a-f]{32}")
"""Of a file that a note was to come of, as ``exclusive`` names it."""
_MAKING = re.compile(rf"{MAKING}[a-z0-9_]{{8}}")


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

    @property
    def report(self) -> Path:
        """File of what is seen of a crash."""
        return self.folder / "hs_err.log"

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
            self._enter()
            os.utime(self._note(key))

    def list_notes(self) -> Iterator[tuple[str, Note, float]]:
        """Key, note, and when it was last used (seconds of the epoch), of each archive."""
        for key in self.list_keys(NOTE):
            note = self.read_note(key)
            if note is not None:
                yield key, note, self._note(key).stat().st_mtime

    def list_keys(self, *kinds: str) -> tuple[str, ...]:
        """Of all that is there: archives, failures, and a jar whose archive never came to be.

        :param kinds: ends of the names of what is asked for; none: all.
        """
        found = filter(None, map(_OWN.fullmatch, self._list_names()))
        return tuple(sorted({each["key"] for each in found if not kinds or each["rest"] in kinds}))

    def read_failure(self, key: str) -> Failure | None:
        """Why there is no archive with this key; None: nobody has tried to make it in vain."""
        try:
            return msgspec.json.decode(self._failure(key).read_bytes(), type=Failure)
        except (OSError, msgspec.DecodeError):
            return None

    def open(self) -> None:
        """Make the folder, this user's alone. Raises ``OSError``, also where nothing can be written into it, or others
        may write it.
        """
        self.folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._refuse(find_stranger_above(self.folder))
        self.folder.mkdir(mode=0o700, exist_ok=True)
        if not os.access(self._enter(), os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, "nothing can be written there", str(self.folder))

    def _enter(self) -> Path:
        """The folder, to change what is in it.

        Raises ``PermissionError`` where others may write it or it is a link, ``FileNotFoundError`` where there is none.
        """
        self._refuse(find_strange_folder(self.folder))
        return self.folder

    def _refuse(self, stranger: str) -> None:
        if stranger:
            raise PermissionError(errno.EACCES, f"{stranger}; {KEEP_OUT}", str(self.folder))

    @contextmanager
    def hold_lock(self) -> Iterator[bool]:
        """Whether this process alone makes archives here, until the end of the block, or its own."""
        # The kernel frees it with its holder, however that ends; children don't inherit it.
        handle = os.open(self._enter() / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
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
        self._enter()  # what was this user's alone when it was begun may be others' by now
        self._note(key).unlink(missing_ok=True)  # of one before it: never beside a file that it doesn't mean
        draft.replace(self.locate(key))
        found = self.locate(key).stat()
        note = Note(host, found.st_size, int(found.st_mtime), unsigned)
        replace_text(self._note(key), msgspec.json.encode(note).decode())
        self._failure(key).unlink(missing_ok=True)

    def note_failure(self, key: str, reason: str) -> None:
        """Say why there is none; nothing where not even that can be written."""
        with suppress(OSError):
            self._enter()
            replace_text(self._failure(key), msgspec.json.encode(Failure(reason, time.time())).decode(), durable=False)

    def remove(self, key: str) -> None:
        """Take the archive, and what is noted of it, away; Java goes on with one that it has mapped."""
        self._enter()
        for path in (self._note(key), self._failure(key), self.locate(key), self.locate_unsigned(key)):
            path.unlink(missing_ok=True)

    def remove_all(self) -> Iterator[str]:
        """Take all archives away, and what was seen of a crash; the key of each that is gone.

        Raises ``OSError``, before the first where others may write the folder.
        """
        try:
            self._enter()
        except FileNotFoundError:
            return
        self.report.unlink(missing_ok=True)
        for key in self.list_keys():
            self.remove(key)
            yield key

    def remove_unsigned(self, key: str) -> None:
        """Take the jar away whose archive could not be made; nothing where not even that can be done."""
        with suppress(OSError):
            self._enter()
            self.locate_unsigned(key).unlink(missing_ok=True)

    @contextmanager
    def open_draft(self) -> Iterator[Path]:
        """A folder to make an archive in, until the end of the block."""
        with open_draft(self._enter()) as draft:
            yield draft

    def sweep(self) -> None:
        """Take away what a maker left that died, and failures that are over; to be called with the lock."""
        folder, names = self._enter(), self._list_names()
        for path in (folder / name for name in names if _MAKING.fullmatch(name)):
            if is_own_folder(path):
                shutil.rmtree(path, ignore_errors=True)
        for path in (folder / name for name in names if _DRAFT.fullmatch(name)):
            path.unlink(missing_ok=True)
        for key in self.list_keys(".jsa", ".jar"):
            if self.read_note(key) is None:
                self.locate(key).unlink(missing_ok=True)
                self.locate_unsigned(key).unlink(missing_ok=True)
        for key in self.list_keys(FAILURE):
            failure = self.read_failure(key)
            if failure is None or failure.is_over(time.time()):
                self._failure(key).unlink(missing_ok=True)

    def _list_names(self) -> tuple[str, ...]:
        try:
            return tuple(path.name for path in self.folder.iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return ()

    def _note(self, key: str) -> Path:
        return self.folder / f"{key}{NOTE}"

    def _failure(self, key: str) -> Path:
        return self.folder / f"{key}{FAILURE}"


@contextmanager
def open_draft(folder: Path) -> Iterator[Path]:
    """A folder in ``folder`` to make an archive in, until the end of the block."""
    draft = Path(tempfile.mkdtemp(prefix=MAKING, dir=folder))
    try:
        yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)
