"""The checkpoints of a new graph's queries over files, made before they start: what the old graph has read they do not
read again.

What that is, is known where a query has its name from the old graph and its sources are read as they were: an offset is
a place in the list of one query, of another's it says nothing. Any other query begins at the beginning, and drops rows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from airflow_dagsched.launch.streams.exact_starts import has_own_list
from airflow_dagsched.launch.streams.manifest import QuerySpec, SourceSpec
from airflow_dagsched.spark.files.store import name_local
from airflow_dagsched.spark.session.query_listeners import stop_listening
from airflow_dagsched.spark.session.sessions import open_session
from airflow_dagsched.spark.stream_driver.graphs.accepted_epoch import AcceptedEpoch
from airflow_dagsched.spark.stream_driver.graphs.graph import Graph, QueryRows, StepFailed, list_sources
from airflow_dagsched.spark.streams.empty_sources import empty_source, find_partition
from airflow_dagsched.spark.streams.file_lists import ReadFiles, UnknownLayout, find_path
from airflow_dagsched.spark.streams.prepared_checkpoint import prepare_checkpoint, read_prepared
from airflow_dagsched.spark.streams.sources import SETTINGS
from airflow_dagsched.spark.streams.start_options import choose_limit
from airflow_dagsched.switch.story import EpochStory, Story

log = logging.getLogger(__name__)

LOOK_S = 1
"""Between two looks whether the epoch is still wanted."""
_COMPACT_INTERVAL = "spark.sql.streaming.fileSource.log.compactInterval"
Reads = Mapping[str, ReadFiles]
"""Source -> what of it was read before."""
Build = Callable[[SparkSession, Sequence[SourceSpec]], Iterable[QueryRows]]
"""Calls steps in a session, to read sources as they are given."""


def prepare_queries(main: SparkSession, epoch: AcceptedEpoch, story: Story, check: Callable[[], None]) -> None:
    """Make the checkpoints of all queries of which is known what was read before.

    The author's steps are called once more for it, to read folders without rows.

    :param check: called all the while; raises what is to end the epoch.
    """
    missing = [each for each in epoch.manifest.queries if not epoch.places.name_checkpoint(each.step).exists()]
    reads = {query.step: find_read_files(epoch, story, query) for query in missing}
    known = {step: read for step, read in reads.items() if read}
    if known:
        try:
            Preparation(main, epoch, known, check).prepare(
                lambda session, sources: Graph(session, epoch, sources).build(), epoch.places.name_checkpoint
            )
        except (UnknownLayout, StepFailed, StreamingQueryException) as error:
            # Whatever is wrong with a step or with Spark, the queries themselves will say.
            log.warning("epoch %s reads what was read before, and drops its rows: %s", epoch.number, error)


def limit_sources(epoch: AcceptedEpoch, story: Story) -> tuple[SourceSpec, ...]:
    """The epoch's sources, with batches of bounded size until it is the owner: it may have a long way to go."""
    if story.owner == epoch.number:
        return epoch.manifest.sources
    return tuple(
        replace(each, options={**each.options, **choose_limit(each.format, each.options)})
        for each in epoch.manifest.sources
    )


def find_read_files(epoch: AcceptedEpoch, story: Story, query: QuerySpec) -> Reads | None:
    """What the old graph's query had read where this epoch begins; None: it is not known of all sources."""
    old = story.epochs.get(epoch.record.x_after)
    # An inbox is no source of the author's: all that is in it is listed, and folders of other epochs are passed over.
    if old is None or epoch.record.channel == "inbox" or query.step not in old.record.x_queries:
        return None
    names = list_sources(epoch.manifest, query.step)
    sources = [each for each in epoch.manifest.sources if each.name in names]
    found = {each.name: _find_read(epoch, old, query.step, each) for each in sources}
    return {name: read for name, read in found.items() if read is not None} if all(found.values()) else None


def _find_read(epoch: AcceptedEpoch, old: EpochStory, step: str, source: SourceSpec) -> ReadFiles | None:
    name, before = source.name, epoch.flow.name_epoch(old.record.x_folder)
    digest = epoch.record.x_sources.get(name)
    offset = _get_offset(epoch.record.start, step, name)
    if digest is None or digest != old.record.x_sources.get(name) or not has_own_list(source):
        return None
    if not isinstance(offset, Mapping) or not isinstance(offset.get("logOffset"), int):
        return None
    checkpoint = before.name_checkpoint(step)
    is_of_before = offset == _get_offset(old.record.start, step, name)
    # A place in the list of a graph before the old one, unless the old list began as a copy of that.
    if is_of_before and read_prepared(checkpoint).get(name) != offset:
        return None
    files = checkpoint / "sources" / name
    return ReadFiles(files, offset["logOffset"]) if files.is_dir() else None


def _get_offset(start: Mapping[str, Any] | None, step: str, source: str) -> Any:
    found = start or {}
    return found.get(f"{step}/{source}", found.get(source))


class Preparation:
    """Of checkpoints of an epoch's queries.

    :param reads: of each query.
    :param check: see ``prepare_queries``.
    """

    def __init__(
        self, main: SparkSession, epoch: AcceptedEpoch, reads: Mapping[str, Reads], check: Callable[[], None]
    ) -> None:
        self._epoch = epoch
        self._reads = reads
        self._check = check
        # Of its own: the author's steps register what they like in it.
        self._session = open_session(main, {**epoch.manifest.session, **SETTINGS})
        self._queries: list[StreamingQuery] = []

    def prepare(self, build: Build, name_checkpoint: Callable[[str], Path]) -> None:
        """Make them all. Raises ``UnknownLayout``, ``StepFailed``, what Spark raises, or as ``check``."""
        # In folders of the epoch's: a driver that was replaced must not be in the way of the next one.
        self._check()
        sources = tuple(self._empty(each) for each in self._epoch.manifest.sources)
        try:
            for written in build(self._session, sources):
                if written.query.step in self._reads:
                    self._prepare(written, name_checkpoint(written.query.step))
        finally:
            stop_listening(self._session, self._queries)

    def _empty(self, source: SourceSpec) -> SourceSpec:
        """The source over no rows, if a query that is prepared reads it."""
        read = next((found[source.name] for found in self._reads.values() if source.name in found), None)
        if read is None:
            return source
        folder = self._epoch.places.empty / source.name
        path = find_path(read.log) if read.log.is_dir() else None
        return empty_source(self._session, source, folder, find_partition(source, path))

    def _prepare(self, written: QueryRows, checkpoint: Path) -> None:
        self._check()
        interval = int(self._session.conf.get(_COMPACT_INTERVAL) or 0)
        prepare_checkpoint(
            checkpoint, self._reads[written.query.step], interval, lambda draft: self._run(written, draft)
        )

    def _run(self, written: QueryRows, checkpoint: Path) -> None:
        """All batches over nothing."""
        self._session.conf.set("spark.sql.shuffle.partitions", str(written.query.partitions))
        writer = written.rows.writeStream.option("checkpointLocation", name_local(checkpoint)).outputMode("append")
        query = writer.trigger(availableNow=True).foreachBatch(_execute).start()
        self._queries.append(query)
        try:
            while not query.awaitTermination(LOOK_S):
                self._check()
        finally:
            query.stop()
        if any(each["numInputRows"] for each in query.recentProgress):
            raise UnknownLayout(f"{written.query.step!r} has rows where no source has any")


def _execute(rows: DataFrame, batch: int) -> None:
    # No sink gets what a batch over nothing writes, so there must be nothing.
    if rows.collect():
        raise UnknownLayout(f"batch {batch} writes rows where no source has any")
