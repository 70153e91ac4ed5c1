"""What Spark wrote down in a query's checkpoint before it ran a batch: where the batch begins, and how far rows were.

``offsets/<n>`` has the watermark that batch n begins with, and the offsets it ends at; the batch before has those it
begins at. In a query with one watermark that one, and the lateness, say the newest event time before the batch: of all
rows that the watermark saw, which are all rows of the source (``sources``). A watermark is in whole milliseconds, cut
off, so the row may be up to 999 microseconds later.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow_dagsched.launch.protocol.wire import load_json
from airflow_dagsched.spark.streams.sink import BatchBegin

_VERSION = "v2"
"""Of the file, in which offsets have the names of their sources."""
_CUT_OFF_S = 0.000999
"""What is finer than a watermark, at most, in seconds."""


def read_begin(
    checkpoint: Path,
    batch: int,
    sources: Sequence[str],
    lateness_s: float,
    start: Mapping[str, Any],
    find_before: Callable[[int], Mapping[str, float | None] | None] = lambda _: None,
) -> BatchBegin:
    """Where a batch begins that Spark runs now, or has run.

    :param sources: that the query reads.
    :param start: source -> offset at which batch 0 begins; None: the beginning.
    :param find_before: newest event times before a batch of a query that reads several sources.
    """
    planned = _name_offsets(checkpoint, batch)
    watermark_ms, _ = _read_offsets(planned)
    begun = dict(start) if batch == 0 else _read_offsets(_name_offsets(checkpoint, batch - 1))[1]
    offsets = {name: begun.get(name) for name in sources}
    if all(offset == start.get(name) for name, offset in offsets.items()):
        newest: Mapping[str, float | None] = dict.fromkeys(sources)
    elif len(sources) > 1:
        newest = find_before(batch) or {}
    else:
        newest = find_newest(sources, watermark_ms, lateness_s)
    return BatchBegin(watermark_ms / 1000, offsets, newest, hashlib.sha256(planned.read_bytes()).hexdigest())


@dataclass(frozen=True, slots=True)
class BatchEnd:
    """Where a batch ended that Spark has committed. Moments are in seconds since 1970; 0: no row has moved it."""

    offsets: Mapping[str, Any]
    """Source -> offset; None: nothing was read."""
    watermark: float
    """That the batch began with: by it the next one judges which rows are late."""
    next_watermark: float
    """That the next one begins with."""


def read_end(checkpoint: Path, batch: int) -> BatchEnd:
    """Where a batch ended. Raises ``FileNotFoundError`` for one that Spark has not committed."""
    watermark_ms, offsets = _read_offsets(_name_offsets(checkpoint, batch))
    # A line with the version, then what was committed.
    committed = load_json((checkpoint / "commits" / str(batch)).read_text().partition("\n")[2])
    return BatchEnd(offsets, watermark_ms / 1000, committed["nextBatchWatermarkMs"] / 1000)


def list_idle(checkpoint: Path, batch: int, begin: BatchBegin) -> tuple[str, ...]:
    """Sources of which the batch has nothing."""
    _, ends = _read_offsets(_name_offsets(checkpoint, batch))
    return tuple(name for name, offset in begin.offsets.items() if ends.get(name) == offset)


def find_newest(sources: Sequence[str], watermark_ms: int, lateness_s: float) -> dict[str, float | None]:
    """The newest event time that moved the watermark there, by source; empty: it does not tell."""
    # Of several sources the watermark is the least; and 0 is what Spark says where no row has moved it.
    if len(sources) != 1 or watermark_ms == 0:
        return {}
    return {sources[0]: (watermark_ms + round(lateness_s * 1000)) / 1000 + _CUT_OFF_S}


def _name_offsets(checkpoint: Path, batch: int) -> Path:
    return checkpoint / "offsets" / str(batch)


def _read_offsets(path: Path) -> tuple[int, dict[str, Any]]:
    """The watermark in milliseconds since 1970 that the batch begins with, and source -> offset at which it ends."""
    version, metadata, *lines = path.read_text().splitlines()
    if version != _VERSION:
        raise ValueError(f"{path} is of format {version}, not {_VERSION}: another program has begun this query")
    pairs = (line.partition(":") for line in lines)
    offsets = {name: None if text == "-" else load_json(text) for name, _, text in pairs}
    return int(load_json(metadata)["batchWatermarkMs"]), offsets
