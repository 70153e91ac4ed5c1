"""What the query of an old graph hands on: where it has ended, and beside that its state, in one folder.

::

    queries/<step>/carried/ handed.json     where it has ended
                            rows/ keys.json its state, if it has one
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow_dagsched.exclusive import sync_path
from airflow_dagsched.launch.protocol.wire import encode_plain, load_json
from airflow_dagsched.spark.streams.checkpoint import BatchEnd, find_newest, read_end
from airflow_dagsched.spark.streams.newest import Moments, Newest
from airflow_dagsched.switch.windows import round_down

_HANDED = "handed.json"


@dataclass(frozen=True, slots=True)
class HandedQuery:
    """Where a query has ended. Moments are in seconds since 1970."""

    batch: int
    """Its last."""
    offsets: Mapping[str, Any]
    """Source -> where it has read to; None: it has read nothing."""
    late_before: float
    """Rows of earlier event time are late; 0: none are."""
    newest: Moments
    """Newest event time read of each source that is known of."""

    def add_newest(self, seen: Moments) -> dict[str, float | None]:
        """Newest event times with what was read before.

        :param seen: of the query that goes on. Of a source that is missing in either it is not known.
        """
        both = {name: (moment, self.newest[name]) for name, moment in seen.items() if name in self.newest}
        return {name: max((each for each in pair if each is not None), default=None) for name, pair in both.items()}


def find_handed(
    checkpoint: Path, newest: Path, batch: int, sources: Sequence[str], lateness_s: float, window_s: float
) -> HandedQuery:
    """Where a query has ended, by its checkpoint.

    :param newest: its file with how far it has read of several sources.
    :param batch: its last that Spark has committed.
    :param sources: that it reads.
    :param lateness_s: and ``window_s``: of the flow, in seconds.
    """
    end = read_end(checkpoint, batch)
    if len(sources) > 1:
        read = Newest(newest).find_before(batch + 1) or {}
    else:
        read = find_newest(sources, round(end.next_watermark * 1000), lateness_s)
    return HandedQuery(batch, end.offsets, _find_late(end, window_s), read)


def _find_late(end: BatchEnd, window_s: float) -> float:
    """What the batches that follow judge late rows by.

    The next one would by the watermark of the last one, the one behind that by what the last one has read. But the
    query that goes on has no watermark in either, so what it begins with holds for both: windows that the old one
    had closed by then get no more rows.
    """
    return max(end.watermark, round_down(end.next_watermark, window_s))


def keep_handed(handed: HandedQuery, folder: Path, copy_states: Callable[[Path], None]) -> None:
    """Make the folder, to outlive a power cut: whole, or not at all.

    :param copy_states: into a folder.
    """
    draft = folder.with_name(f".{folder.name}-draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    copy_states(draft)
    (draft / _HANDED).write_text(json.dumps(encode_plain(handed)))
    for path in (*draft.rglob("*"), draft):
        sync_path(path)
    draft.replace(folder)
    sync_path(folder.parent)


def read_handed(folder: Path) -> HandedQuery:
    """What ``keep_handed`` has kept."""
    return HandedQuery(**load_json((folder / _HANDED).read_text()))
