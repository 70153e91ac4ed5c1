"""A log: one sequence of records, each made exclusively under the next number.

A record's number is settled by the file system: of all that judged the same story one makes the next record, the others
read it and judge again. So what a record says was true of all records before it when it came to be.

**Compaction** (``compaction``) makes numbers free again. A process that stood still meanwhile could make a record under
one of them, or read such a record. But records are removed upwards: where a number was made free, the record before it
is gone or is another file. So who has made or read a record looks at the one before it afterwards, and begins anew from
the snapshot if that is not the file it was. What such a process left is below a snapshot, and nobody's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Generic

from airflow_dagsched.exclusive import create_exclusive
from airflow_dagsched.switch.log.compaction import compact_log, read_snapshot, restore_written
from airflow_dagsched.switch.log.log_rules import LogRules, R, S, load_file
from airflow_dagsched.switch.log.numbered_files import (
    Identity,
    identify_file,
    list_numbers,
    name_record_file,
    read_file,
)
from airflow_dagsched.switch.records import GarbledLog

_PATIENCE = 100
"""Snapshots in vain, each replaced by the next while it was read."""
_LONGEST = 500
"""Records after which it is looked whether the log can be made shorter."""
_SET_BACK_S = 86_400.0
"""By so much may a clock be set back, or hosts' differ, for records to keep the order of their times. By more, and the
clock was so wrong before that no time-out would end.
"""


class NumberedLog(Generic[R, S]):
    """One reader and writer of a log. Not to be shared between threads: each has its own."""

    def __init__(self, folder: Path, rules: LogRules[R, S], clock: Callable[[], float] = time.time) -> None:
        self.folder = folder
        self.story: S = rules.empty
        """Of all that was read."""
        self._rules = rules
        self._clock = clock
        self._last: Identity | None = None
        """The file of the last record read; None: none was read."""
        self._newest_at = 0.0
        """Time of the newest record, in seconds since 1970."""
        self._is_whole = False
        """Whether it was looked, once, that no number is missing."""
        self._compacted = 0
        """Number of the last record when this process compacted the log."""

    def read(self) -> tuple[R, ...]:
        """Read on; what is new, in order. Raises ``GarbledLog`` and ``IllegalTransition``."""
        seen = self.story.last
        found: list[R] = []
        while True:
            record = self._read_next()
            if record is not None:
                found.append(record)
            elif self._is_compacted():
                found = self._begin_anew()
            elif self._is_whole or self._has_end():
                return tuple(each for each in found if each.n > seen)

    def append(self, make: Callable[[S, int, float], R | None]) -> R | None:
        """Add the record that ``make`` wants as the next one, and return it; None if it wants none.

        :param make: of the story, the next number and the time, the record to make; None: none any more.

        It is asked again, with the new story, whenever another record has come; also where its own was made, and a
        compaction came before this process had looked: then the story has it. Raises as ``read``, and
        ``IllegalTransition`` for a record that may not come: then nothing was written.
        """
        while True:
            self.read()
            record = make(self.story, self.story.last + 1, self._find_time())
            if record is None or self._write_next(record):
                return record

    def _find_time(self) -> float:
        """Now, and not before what is there already, for all that a clock may have been set back."""
        now = self._clock()
        return max(now, self._newest_at) if self._newest_at - now <= _SET_BACK_S else now

    def compact(self, keep: int = 200) -> None:
        """Make the log shorter, but for the last ``keep`` records, if it has grown enough since this process did."""
        if self.story.last - self._compacted >= _LONGEST:
            self._compacted = self.story.last
            compact_log(self.folder, keep, self._rules)

    def _read_next(self) -> R | None:
        """The record under the next number, which is part of the story then; None: it can't be had, or be trusted."""
        path = name_record_file(self.folder, self.story.last + 1)
        read = read_file(path)
        if read is None or self._is_compacted():
            return None
        text, identity = read
        record = self._rules.fit(load_file(text, path), str(path))
        if record.n != self.story.last + 1:
            raise GarbledLog(str(path), f"holds record {record.n}")
        self.story, self._last = self._rules.fold(self.story, record), identity
        self._newest_at = max(self._newest_at, record.at)
        return record

    def _write_next(self, record: R) -> bool:
        """False, and nothing is changed: another record has the number, or it is nobody's any more."""
        after = self._rules.fold(self.story, record)
        path = name_record_file(self.folder, record.n)
        if not create_exclusive(path, self._rules.encode(record)):
            return False
        if self._is_compacted():
            # A number below the snapshot's is nobody's. One that is the snapshot's own is true, and others stand on it:
            # then this very record was read and compacted between the two lines above.
            if record.n < max(list_numbers(self.folder).snapshots, default=0):
                path.unlink(missing_ok=True)
            return False
        self.story, self._last = after, identify_file(path)
        self._newest_at = max(self._newest_at, record.at)
        return True

    def _is_compacted(self) -> bool:
        """Whether the record that was read last is gone, or is another file."""
        if self._last is None:
            return bool(list_numbers(self.folder).snapshots)
        return identify_file(name_record_file(self.folder, self.story.last)) != self._last

    def _has_end(self) -> bool:
        """Whether the record read last is the last there is; False: another has come. Raises ``GarbledLog``."""
        # Numbers are made one after the other: what is listed now was made after the next one.
        is_last = max(list_numbers(self.folder).records, default=0) <= self.story.last
        path = name_record_file(self.folder, self.story.last + 1)
        if not is_last and identify_file(path) is None and not self._is_compacted():
            raise GarbledLog(str(path), "is missing, and later ones are there")
        self._is_whole = is_last
        return is_last

    def _begin_anew(self) -> list[R]:
        """Take the story of the newest snapshot; its records."""
        missing, why = self.story.last, "is gone, and no snapshot has it"
        for _ in range(_PATIENCE):
            numbers = list_numbers(self.folder)
            if not numbers.snapshots:
                break
            last = numbers.snapshots[-1]
            missing, why = last, "is missing, and its snapshot is there"
            written = read_snapshot(self.folder, last, self._rules)
            identity = identify_file(name_record_file(self.folder, last))
            # Either is gone as soon as there is a newer snapshot.
            if written is not None and identity is not None:
                self.story, self._last = restore_written(written, self.folder, last, self._rules), identity
                records = [each.record for each in written]
                self._newest_at = max((each.at for each in records), default=0.0)
                return records
        raise GarbledLog(str(name_record_file(self.folder, missing)), why)
