"""The queries of a graph that goes on with the states of the one before it: rehearsed beside that, then taken over.

::

    old graph   runs ─────────────────────────── fence ── its last batch is committed, it ends
    new graph   ········· rehearsed, and ready ···················································· takes over

Behind the fence there is no way back. So all that is done there is done before it once, with the states as they are by
then, and thrown away: where the author's code fails it fails while the old graph runs on.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from airflow_dagsched.errors import DagschedError
from airflow_dagsched.launch.streams.exact_starts import has_own_list
from airflow_dagsched.launch.streams.manifest import QuerySpec, SourceSpec
from airflow_dagsched.spark.session.query_listeners import stop_listening
from airflow_dagsched.spark.session.sessions import open_session
from airflow_dagsched.spark.steps.call_step import StepFault
from airflow_dagsched.spark.stream_driver.graphs.accepted_epoch import AcceptedEpoch
from airflow_dagsched.spark.stream_driver.graphs.graph import Graph, QueryRows, StepFailed, list_sources
from airflow_dagsched.spark.stream_driver.graphs.preparing import Preparation, Reads
from airflow_dagsched.spark.streams.carry.handed import HandedQuery, find_handed, keep_handed, read_handed
from airflow_dagsched.spark.streams.carry.old_state import OldState, copy_states, find_old_state, open_copied
from airflow_dagsched.spark.streams.carry.processors import Carrying, carry_into
from airflow_dagsched.spark.streams.carry.python_of_state import can_keep_state
from airflow_dagsched.spark.streams.carry.shapes import Mismatch, compare_shapes, tell_mismatch
from airflow_dagsched.spark.streams.file_lists import ReadFiles
from airflow_dagsched.spark.streams.sources import SETTINGS
from airflow_dagsched.switch.log.committed import find_committed
from airflow_dagsched.switch.places import EpochPlaces
from airflow_dagsched.switch.story import EpochStory, Story

NO_PROTOBUF = "calls transformWithState, for which the Python of executors needs protobuf: install it there"


@dataclass
class NotCarried(DagschedError):
    """States can't go on; a sentence for each reason."""

    sentences: tuple[str, ...]

    def __str__(self) -> str:
        return "; ".join(self.sentences)


def build_first(session: SparkSession, epoch: AcceptedEpoch, sources: Sequence[SourceSpec]) -> tuple[QueryRows, ...]:
    """What each query writes of a graph that follows nobody, and whose states are to go on. Raises ``StepFailed``."""
    return tuple(_build(session, epoch, sources, query)[0] for query in epoch.manifest.queries)


def has_state(epoch: AcceptedEpoch, story: Story) -> bool:
    """Whether Spark has committed a batch of each query of the graph before the epoch."""
    old = story.epochs[epoch.record.x_after]
    places = _name_places(epoch, old)
    return all(find_committed(places, step) >= 0 for step in (*old.record.x_queries, *old.queries))


def rehearse_queries(
    main: SparkSession, epoch: AcceptedEpoch, story: Story, check: Callable[[], None]
) -> tuple[QueryRows, ...]:
    """Do what ``take_over_queries`` will, as far as no query runs then, and leave nothing behind; what each writes.

    :param check: called all the while; raises what is to end the epoch.

    Raises ``StepFailed``, also for states that can't go on; ``UnknownLayout``; as ``check``.
    """
    old, found = story.epochs[epoch.record.x_after], list[QueryRows]()
    for query in epoch.manifest.queries:
        if query.step not in {*old.record.x_queries, *old.queries}:
            raise _refuse(query.step, (Mismatch("new query"),))
        folder = epoch.places.name_query(query.step) / "rehearsal"
        shutil.rmtree(folder, ignore_errors=True)
        try:
            found.append(_Handover(main, epoch, query, _name_places(epoch, old), folder, check).rehearse())
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return tuple(found)


def take_over_queries(
    main: SparkSession,
    session: SparkSession,
    epoch: AcceptedEpoch,
    sources: Sequence[SourceSpec],
    story: Story,
    check: Callable[[], None],
) -> tuple[QueryRows, ...]:
    """What each query writes, once the old graph has ended; also where the epoch is started again.

    :param session: that the queries start in.
    :param sources: of the epoch, as they are read from now on.

    Raises as ``rehearse_queries``.
    """
    old = story.epochs.get(epoch.record.x_after)
    # One that is forgotten is long gone: what was to be had of it is kept.
    places = None if old is None else _name_places(epoch, old)
    handovers = [
        _Handover(main, epoch, query, places, epoch.places.name_query(query.step), check)
        for query in epoch.manifest.queries
    ]
    return tuple(each.take_over(session, sources) for each in handovers)


def _name_places(epoch: AcceptedEpoch, old: EpochStory) -> EpochPlaces:
    return epoch.flow.name_epoch(old.record.x_folder)


class _Handover:
    """Of one query.

    :param old: of the graph before the epoch; None: nothing of it is there any more.
    :param folder: for what is handed on, and the checkpoint that begins with it.
    """

    def __init__(
        self,
        main: SparkSession,
        epoch: AcceptedEpoch,
        query: QuerySpec,
        old: EpochPlaces | None,
        folder: Path,
        check: Callable[[], None],
    ) -> None:
        self._main = main
        self._epoch = epoch
        self._query = query
        self._old = old
        self._kept = folder / "carried"
        self._checkpoint = folder / "checkpoint"
        self._check = check
        names = list_sources(epoch.manifest, query.step)
        self._sources = tuple(each for each in epoch.manifest.sources if each.name in names)

    def rehearse(self) -> QueryRows:
        """See ``rehearse_queries``."""
        with self._open_session() as session:
            written, carrying = _build(session, self._epoch, self._epoch.manifest.sources, self._query)
            handed = self._find_handed()
            self._refuse_new_sources(handed)
            if self._query.carries:
                mismatches = self._compare(self._find_state(session, handed), carrying)
                if mismatches:
                    raise _refuse(carrying.step, mismatches)
            self._check()
            self._keep(session)
        self._prepare(handed)
        return written

    def take_over(self, session: SparkSession, sources: Sequence[SourceSpec]) -> QueryRows:
        """See ``take_over_queries``."""
        if not self._kept.exists():
            with self._open_session() as session_of_state:
                self._keep(session_of_state)
        handed = read_handed(self._kept)
        self._prepare(handed)
        return _build(session, self._epoch, sources, self._query, handed, self._kept)[0]

    @contextmanager
    def _open_session(self) -> Iterator[SparkSession]:
        # Of its own: the author's steps register what they like in it.
        session = open_session(self._main, {**self._epoch.manifest.session, **SETTINGS})
        try:
            yield session
        finally:
            # Who reads state has the session listen, as if it were to begin a query.
            stop_listening(session, ())

    def _get_old(self) -> EpochPlaces:
        if self._old is None:
            raise FileNotFoundError(f"{self._kept} is gone, and so is the graph whose state was in it")
        return self._old

    def _find_handed(self) -> HandedQuery:
        old, step = self._get_old(), self._query.step
        batch, settings = find_committed(old, step), self._epoch.manifest.settings
        names = [each.name for each in self._sources]
        checkpoint, newest = old.name_checkpoint(step), old.name_newest(step)
        return find_handed(checkpoint, newest, batch, names, settings.lateness_s, settings.window_s)

    def _find_state(self, session: SparkSession, handed: HandedQuery) -> OldState | None:
        return find_old_state(session, self._get_old().name_checkpoint(self._query.step), handed.batch)

    def _compare(self, state: OldState | None, carrying: Carrying) -> tuple[Mismatch, ...]:
        if state is None:
            return (Mismatch("mixed"),)
        return compare_shapes(self._query.carries, state.shapes, carrying.list_shapes())

    def _refuse_new_sources(self, handed: HandedQuery) -> None:
        names = ", ".join(repr(each.name) for each in self._sources if each.name not in handed.offsets)
        if names:
            fault = f"reads {names}, as it does not in the graph that runs: write what it makes of it by another step"
            raise StepFailed(self._query.step) from StepFault(fault)

    def _keep(self, session: SparkSession) -> None:
        handed = self._find_handed()
        state = self._find_state(session, handed) if self._query.carries else None

        def copy_into(folder: Path) -> None:
            if state is not None:
                copy_states(session, state, self._query.carries, folder)

        keep_handed(handed, self._kept, copy_into)

    def _prepare(self, handed: HandedQuery) -> None:
        """Make the checkpoint of a query that reads on behind a list of files: with the state, which Spark takes over
        in a query's first batch alone.
        """
        if self._checkpoint.exists() or not all(map(has_own_list, self._sources)):
            return

        def build(session: SparkSession, sources: Sequence[SourceSpec]) -> tuple[QueryRows, ...]:
            return (_build(session, self._epoch, sources, self._query, handed, self._kept)[0],)

        reads = {self._query.step: self._list_reads(handed)}
        try:
            Preparation(self._main, self._epoch, reads, self._check).prepare(build, lambda _: self._checkpoint)
        except StreamingQueryException as error:
            raise StepFailed(self._query.step) from error

    def _list_reads(self, handed: HandedQuery) -> Reads:
        lists = self._get_old().name_checkpoint(self._query.step) / "sources"
        places = {each.name: handed.offsets[each.name] or {"logOffset": -1} for each in self._sources}
        return {name: ReadFiles(lists / name, place["logOffset"]) for name, place in places.items()}


def _build(
    session: SparkSession,
    epoch: AcceptedEpoch,
    sources: Sequence[SourceSpec],
    query: QuerySpec,
    handed: HandedQuery | None = None,
    kept: Path | None = None,
) -> tuple[QueryRows, Carrying]:
    """What the query writes, and what was noted of its processor. Raises ``StepFailed``.

    :param handed: where it begins; None: where the epoch does.
    :param kept: the state that it begins with; None: with none.
    """
    initial = open_copied(session, kept) if kept is not None and query.carries else None
    with carry_into(initial) as carrying:
        written = Graph(session, epoch, sources, handed).build_query(query)
    if not query.carries:
        return written, carrying
    if mismatches := carrying.judge():
        raise _refuse(carrying.step or query.step, mismatches)
    if not can_keep_state(session):
        raise StepFailed(carrying.step) from StepFault(NO_PROTOBUF)
    return written, carrying


def _refuse(step: str, mismatches: Sequence[Mismatch]) -> StepFailed:
    failed = StepFailed(step)
    failed.__cause__ = NotCarried(tuple(tell_mismatch(step, each) for each in mismatches))
    return failed
