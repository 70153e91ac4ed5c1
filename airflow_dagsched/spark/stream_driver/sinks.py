"""Where the rows of a query go: its sink, made from what the epoch's manifest says of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from airflow_dagsched.launch.streams.manifest import QuerySpec
from airflow_dagsched.spark.files.store import LocalStore
from airflow_dagsched.spark.steps.call_step import call_step
from airflow_dagsched.spark.stream_driver.graphs.accepted_epoch import AcceptedEpoch
from airflow_dagsched.spark.stream_driver.graphs.graph import QueryRows, find_start, list_sources
from airflow_dagsched.spark.streams.checkpoint import list_idle, read_begin
from airflow_dagsched.spark.streams.draft_writer import RowWindows
from airflow_dagsched.spark.streams.drafts import place_aside
from airflow_dagsched.spark.streams.mover import finish_moves, list_due
from airflow_dagsched.spark.streams.newest import Newest, read_observed
from airflow_dagsched.spark.streams.output_window import OutputWindow
from airflow_dagsched.spark.streams.prepared_checkpoint import BATCHES, read_prepared
from airflow_dagsched.spark.streams.sink import BatchBegin, RowCounts, StreamSink, Target
from airflow_dagsched.spark.streams.targets import FunctionTarget, open_table_target
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.places import EpochPlaces
from airflow_dagsched.switch.story import Story

NO_WINDOWS = RowWindows(OutputWindow("", "time"), 0.0)
"""Of rows that are written already: nothing asks for the window of one."""


def make_sink(
    session: SparkSession,
    epoch: AcceptedEpoch,
    written: QueryRows,
    target: Target,
    check: Callable[[], None],
    count_rows: Callable[[], RowCounts],
) -> StreamSink:
    """The sink of a query of the session.

    :param check: raises what is to end the query, within a batch too.
    :param count_rows: of the epoch's query, until now.
    """
    manifest, query, handed = epoch.manifest, written.query, written.handed
    sources = list_sources(manifest, query.step)
    checkpoint = epoch.places.name_checkpoint(query.step)
    prepared = read_prepared(checkpoint)
    read_by_it = [each for each in manifest.sources if each.name in sources]
    declared = {each.name: find_start(epoch.record, each, handed).offset for each in read_by_it}
    newest = Newest(epoch.places.name_newest(query.step))
    read = partial(
        read_begin,
        checkpoint,
        sources=sources,
        lateness_s=manifest.settings.lateness_s,
        start={**declared, **prepared},
        find_before=newest.find_before,
    )

    def begin(batch: int) -> BatchBegin:
        begun = read(batch)
        found = begun.newest if handed is None else handed.add_newest(begun.newest)
        return replace(begun, newest=found, counts=count_rows())

    def note_read(batch: int, begun: BatchBegin) -> None:
        if len(sources) > 1:
            idle = dict.fromkeys(list_idle(checkpoint, batch, begun))
            newest.add(batch, begun.newest, {**idle, **read_observed(session, query.step, sources)})

    return StreamSink(
        # Of its own: its thread is not the one that looks at the log every second.
        log=FlowLog(epoch.flow.log),
        epoch=epoch.number,
        query=query.step,
        target=target,
        read_begin=begin,
        check=check,
        note_read=note_read,
        prepared=BATCHES if prepared else 0,
    )


def open_target(session: SparkSession, epoch: AcceptedEpoch, query: QuerySpec, windows: RowWindows) -> Target:
    """Where the rows of a query go: into a table, or to the author's function."""
    if query.writes is not None:
        return open_table_target(session, query.writes, epoch.flow, windows)
    return _open_function(session, epoch, query.step, epoch.places, windows)


def _open_function(
    session: SparkSession, epoch: AcceptedEpoch, step: str, places: EpochPlaces, windows: RowWindows
) -> Target:
    """The epoch's function, for rows of the same step that are in ``places``, this epoch's or another's."""
    name = f"{epoch.manifest.dag_id}/{epoch.manifest.flow}/{step}"
    return FunctionTarget(session, _make_function(epoch, step, session), name, place_aside(places, step), windows)


def hand_left_rows(session: SparkSession, new: AcceptedEpoch, left: EpochPlaces, story: Story) -> None:
    """Give the rows that an epoch has left for functions to those of the graph that follows: they may be mended."""
    for query in new.manifest.queries:
        if query.writes is None:
            target = _open_function(session, new, query.step, left, NO_WINDOWS)
            finish_moves(target.store, target.place, story, target.deliver)


def finish_left_moves(session: SparkSession, epoch: AcceptedEpoch, story: Story) -> None:
    """Deliver what was recorded of an epoch that no driver runs any more."""
    for query in epoch.manifest.queries:
        target = open_target(session, epoch, query, NO_WINDOWS)
        finish_moves(target.store, target.place, story, target.deliver)


def has_left_aside(places: EpochPlaces, queries: Iterable[str], story: Story) -> bool:
    """Whether there are rows of the epoch for an author's function, which is had from the epoch alone."""
    return any(list_due(LocalStore(), place_aside(places, step), story) for step in queries)


def _make_function(epoch: AcceptedEpoch, step: str, session: SparkSession) -> Callable[[DataFrame, str], Any]:
    """The step's function, its input the rows of a batch."""
    context = {**epoch.manifest.context, "spark": session}

    def deliver(rows: DataFrame, key: str) -> Any:
        call = epoch.payload.get_call(step)
        return call_step(call, session, lambda *_: rows, lambda name, _: context[name], {"key": key})

    return deliver
