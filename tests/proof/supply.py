"""Files that come while a stream runs, at the pace at which they are read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from airflow_dagsched.switch.records import Aborted, Epoch, Started
from tests.proof.bulk import StagedFile
from tests.streams.kit import Flow

AHEAD = 6
"""Files that come before others were read: what two batches take."""
MOST_BEFORE_START = 9
"""Files that come between the request for a graph and its start: however long that takes, others are left for it."""


class Supply:
    """Gives a stream its files, one after another.

    :param list_readers: epochs that have to read what comes.
    """

    def __init__(
        self, flow: Flow, staged: Sequence[StagedFile], lateness_s: float, list_readers: Callable[[], Collection[int]]
    ) -> None:
        self.given: list[Path] = []
        """All files so far."""
        self._flow = flow
        self._staged = staged
        self._lateness_s = lateness_s
        self._list_readers = list_readers
        self._asked = 0
        """The newest epoch that was asked for, and how many files there were then."""
        self._at_ask = 0

    @property
    def is_over(self) -> bool:
        return len(self.given) == len(self._staged)

    def find_watermark(self, files: int) -> float:
        """Of a graph that has read so many files, in seconds since 1970."""
        # Watermarks are in whole milliseconds.
        return max(each.newest for each in self._staged[:files]) // 1000 / 1000 - self._lateness_s

    def until(self, is_reached: Callable[[], bool]) -> Callable[[], bool]:
        """What a driver is waited for with: files come."""

        def is_over() -> bool:
            self.go_on()
            return is_reached()

        return is_over

    def go_on(self) -> None:
        """Give what there is room for."""
        while not self.is_over and self._may_come():
            file = self._staged[len(self.given)].path
            self.given.append(file.rename(self._flow.source / file.name))

    def _may_come(self) -> bool:
        given = len(self.given)
        return given < AHEAD or (not self._must_wait() and self._have_read(given - AHEAD + 1))

    def _have_read(self, files: int) -> bool:
        """Whether all that have to have read so many."""
        due, readers = self.find_watermark(files), self._list_readers()
        return bool(readers) and all(self._flow.has_read(each, due, self._lateness_s) for each in readers)

    def _must_wait(self) -> bool:
        """Whether a graph has been asked for, and does not run after so many files."""
        records = self._flow.read()
        asked = max((each.epoch for each in records if isinstance(each, Epoch)), default=0)
        if asked != self._asked:
            self._asked, self._at_ask = asked, len(self.given)
        has_begun = any(isinstance(each, Started | Aborted) and each.epoch == asked for each in records)
        return not has_begun and len(self.given) >= self._at_ask + MOST_BEFORE_START
