"""Summaries of batches as files of their epoch, one of each batch of a query."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from airflow_dagsched.exclusive import replace_text
from airflow_dagsched.launch.protocol.keys import escape_key
from airflow_dagsched.launch.protocol.wire import encode_plain, parse_dataclass
from airflow_dagsched.switch.comparing.summary import Summaries, Summary, merge_summaries
from airflow_dagsched.switch.places import EpochPlaces
from airflow_dagsched.switch.windows import find_latest

KEPT = 500
"""So many of a query: who has waited for a person for longer compares the last ones."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """A file."""

    successor: int
    """The epoch that is to take over: windows are compared for one switch."""
    windows: Mapping[str, Summary] = field(default_factory=dict)
    """End of a window in digits -> what the batch has in it."""
    from_behind: float | None = None
    """Batches without a file, before this one, may have rows of windows up to here."""

    @property
    def newest(self) -> float | None:
        """The last window that is wholly or partly here, or before."""
        return find_latest((*map(float, self.windows), self.from_behind))


@dataclass(frozen=True, slots=True)
class SummaryFiles:
    """Of one query of an epoch."""

    places: EpochPlaces
    step: str

    def write(self, batch: int, successor: int, windows: Summaries, before: float | None) -> None:
        """Put down what a batch has; a repeat of it has the same.

        :param before: the newest window of the batches that are recorded.
        """
        earlier = {number: path for number, path in self._list_files() if number < batch}
        last = _read_kept(earlier[max(earlier)]) if earlier else None
        goes_on = last is not None and last.successor == successor
        left = {number: path for number, path in earlier.items() if not goes_on or number <= batch - KEPT}
        # Of batches before the first file nothing is known but how far they came.
        behind = last.from_behind if last is not None and goes_on else before
        if goes_on:
            newest = (each.newest for path in left.values() if (each := _read_kept(path)))
            behind = find_latest((behind, *newest))
        texts = {repr(window): each for window, each in windows.items()}
        kept = json.dumps(encode_plain(_Kept(successor, texts, behind)))
        # Not to disk: it is of use for as long as a person looks.
        replace_text(self.places.name_comparison(self.step, batch), kept, durable=False)
        for path in left.values():
            path.unlink(missing_ok=True)

    def read(self, successor: int) -> tuple[Summaries, float | None]:
        """What all batches have together; windows up to the moment behind it may lack some, None: none lacks any."""
        found = (_read_kept(path) for _, path in self._list_files())
        ours = [each for each in found if each is not None and each.successor == successor]
        windows: Summaries = {}
        for each in ours:
            windows = merge_summaries(windows, {float(window): one for window, one in each.windows.items()})
        return windows, find_latest(each.from_behind for each in ours)

    def _list_files(self) -> Iterator[tuple[int, Path]]:
        for path in self.places.name_comparison(self.step, 0).parent.glob("*.json"):
            step, _, batch = path.stem.rpartition("-")
            if step == escape_key(self.step) and batch.isdecimal():
                yield int(batch), path


def _read_kept(path: Path) -> _Kept | None:
    try:
        return parse_dataclass(_Kept, path.read_text("utf-8"))
    except FileNotFoundError:  # removed by its driver a moment ago
        return None
