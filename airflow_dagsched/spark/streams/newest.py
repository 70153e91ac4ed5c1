"""How far a query has read each of several sources, in event time: a watermark says it of the slowest one alone.

What Spark observes while it runs a batch is added up, in a file beside the query's checkpoint: it is written before the
batch is recorded, and has what was before that batch, too, which Spark may repeat.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from airflow_dagsched.exclusive import replace_text
from airflow_dagsched.launch.protocol.wire import encode_plain, parse_dataclass
from airflow_dagsched.spark.streams.sources import MICROS, name_read
from airflow_dagsched.switch.windows import find_latest

log = logging.getLogger(__name__)

Moments = Mapping[str, float | None]
"""Source -> newest event time in seconds since 1970; None: there was no row."""


@dataclass(frozen=True, slots=True)
class _Read:
    batch: int
    before: Moments
    after: Moments


class Newest:
    """Of one query.

    :param path: where it outlives the driver.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        # Not looked for again: a driver that has lost the query may write there for a moment.
        self._last = parse_dataclass(_Read, path.read_text()) if path.exists() else None

    def find_before(self, batch: int) -> Moments | None:
        """Of all rows before the batch; None: it is not known."""
        last = self._last
        if last is None or batch not in (last.batch, last.batch + 1):
            return None
        return last.before if batch == last.batch else last.after

    def add(self, batch: int, before: Moments, seen: Moments) -> None:
        """Add what was seen of a batch. Of a source that is missing in either it is not known from then on."""
        after = {name: find_latest((before[name], seen[name])) for name in before if name in seen}
        self._last = _Read(batch, before, after)
        replace_text(self._path, json.dumps(encode_plain(self._last)))


def read_observed(session: SparkSession, query: str, sources: Iterable[str]) -> dict[str, float | None]:
    """What was seen of the batch that a query of the session runs, of each source that Spark says it of."""
    try:
        # Private names of Spark: what it tells of a batch by public ones comes after that.
        running = next(each for each in session.streams.active if each.name == query)
        metrics = running._jsq.streamingQuery().lastExecution().observedMetrics()
        found = {name: metrics.get(name_read(name)) for name in sources}
        rows = {name: row.get() for name, row in found.items() if row.isDefined()}
        return {name: None if row.isNullAt(0) else row.getLong(0) / MICROS for name, row in rows.items()}
    except (Py4JError, StopIteration) as error:
        log.warning("Spark does not tell how far %s has read: %s", query, error)
        return {}
