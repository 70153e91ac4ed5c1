"""The rows that each query of an epoch writes: its steps called once, from the sources down."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from airflow_dagsched.launch.protocol.calls import Output
from airflow_dagsched.launch.protocol.manifest import StepSpec
from airflow_dagsched.launch.streams.above import list_above
from airflow_dagsched.launch.streams.manifest import QuerySpec, SourceSpec, StreamManifest
from airflow_dagsched.spark.session.capture_output import end_lines
from airflow_dagsched.spark.session.current import work_for
from airflow_dagsched.spark.session.sessions import enter_session
from airflow_dagsched.spark.steps.call_step import call_step, check_answer, route_rows
from airflow_dagsched.spark.steps.source_rows import check_source_rows
from airflow_dagsched.spark.stream_driver.graphs.accepted_epoch import AcceptedEpoch
from airflow_dagsched.spark.streams.carry.handed import HandedQuery
from airflow_dagsched.spark.streams.draft_writer import RowWindows
from airflow_dagsched.spark.streams.inbox.inbox_reader import open_inbox
from airflow_dagsched.spark.streams.plan_check import check_query
from airflow_dagsched.spark.streams.sources import SourceStart, open_source, read_source
from airflow_dagsched.spark.streams.start_options import choose_start_options
from airflow_dagsched.switch.records import Epoch


class StepFailed(Exception):
    """A step's function raised; what, is the cause."""

    def __init__(self, step: str) -> None:
        super().__init__(step)
        self.step = step


@dataclass(frozen=True)
class QueryRows:
    """What a query writes, and how each row tells its window."""

    query: QuerySpec
    rows: DataFrame
    windows: RowWindows
    handed: HandedQuery | None = None
    """Where the same query of the graph before it has ended, whose state it goes on with; None: with no state."""


class Graph:
    """Calls the steps of one epoch, each in its turn.

    :param sources: what to read; as the manifest has them, if they are not given.
    :param handed: where a query that goes on with a state begins to read.
    """

    def __init__(
        self,
        session: SparkSession,
        epoch: AcceptedEpoch,
        sources: Sequence[SourceSpec] | None = None,
        handed: HandedQuery | None = None,
    ) -> None:
        self._session = session
        self._epoch = epoch
        self._handed = handed
        self._sources = {each.name: each for each in (epoch.manifest.sources if sources is None else sources)}
        self._made: dict[Output, Any] = {}

    def build(self) -> tuple[QueryRows, ...]:
        """What each query writes. Raises ``StepFailed``, also for what no stream can keep its windows of."""
        self._call_all(self._epoch.manifest.steps)
        return tuple(self._check(query) for query in self._epoch.manifest.queries)

    def build_query(self, query: QuerySpec) -> QueryRows:
        """What one query writes: the steps above it are called alone. Raises as ``build``."""
        above = list_above(query.step, list_inputs(self._epoch.manifest))
        self._call_all(spec for spec in self._epoch.manifest.steps if spec.id in above)
        return self._check(query)

    def _call_all(self, specs: Iterable[StepSpec]) -> None:
        for spec in specs:
            with _blame(spec.id), work_for(spec.id, self._session):
                enter_session(self._session, spec.id, spec.id)
                self._call(spec)
                end_lines()

    def _check(self, query: QuerySpec) -> QueryRows:
        manifest = self._epoch.manifest
        above = list_above(query.step, list_inputs(manifest))
        frames = {
            f"{output.step}/{output.name}" if output.name else output.step: rows
            for output, rows in self._made.items()
            if output.step in above and isinstance(rows, DataFrame)
        }
        rows = frames.pop(query.step)
        with _blame(query.step):
            settings = manifest.settings
            judged = check_query({**frames, query.step: rows}, settings.window_s, settings.reach_s, bool(query.carries))
        return QueryRows(query, rows, RowWindows(judged.output, manifest.settings.window_s), self._handed)

    def _call(self, spec: StepSpec) -> None:
        source = self._sources.get(spec.id)
        if source is not None:
            self._made[Output(spec.id)] = self._open(spec, source)
            return
        query = next((each for each in self._epoch.manifest.queries if each.step == spec.id), None)
        if query is not None and query.writes is None:
            # Its function gets the rows of one batch after another, later.
            self._made[Output(spec.id)] = self._made[spec.inputs[0]]
            return
        answer = check_answer(self._ask(spec, None), self._list_requested(spec), query is not None)
        self._made.update({Output(spec.id, name): rows for name, rows in answer.frames.items()})
        self._made.setdefault(Output(spec.id), answer.value)

    def _open(self, spec: StepSpec, source: SourceSpec) -> DataFrame:
        record, settings = self._epoch.record, self._epoch.manifest.settings
        if record.channel == "inbox":
            # The service has called the function, and rows are as it made them.
            return open_inbox(self._session, source, settings, self._epoch.flow.name_inbox(source.name), record)
        start = find_start(record, source, self._handed)
        return open_source(self._session, source, settings, partial(self._call_with, spec), start)

    def read_sources(self) -> dict[str, DataFrame]:
        """Source -> what the function of its step makes of the rows. Raises ``StepFailed``."""
        return {spec.id: self._read(spec, self._sources[spec.id]) for spec in self._epoch.manifest.steps}

    def _read(self, spec: StepSpec, source: SourceSpec) -> DataFrame:
        with _blame(spec.id), work_for(spec.id, self._session):
            enter_session(self._session, spec.id, spec.id)
            start = find_start(self._epoch.record, source)
            rows = read_source(self._session, source, partial(self._call_with, spec), start)
            end_lines()
        return rows

    def _call_with(self, spec: StepSpec, raw: DataFrame) -> DataFrame:
        """What the function of a source's step makes of the rows as they are read."""
        return check_source_rows(self._ask(spec, raw), self._sources[spec.id].event_time)

    def _ask(self, spec: StepSpec, raw: DataFrame | None) -> Any:
        def find_input(output: Output, session: SparkSession) -> Any:
            return route_rows(self._made[output], spec.routed, output)

        call = self._epoch.payload.get_call(spec.id)
        return call_step(call, self._session, find_input, self._get_context, {"rows": raw})

    def _get_context(self, name: str, session: SparkSession) -> Any:
        return session if name == "spark" else self._epoch.manifest.context[name]

    def _list_requested(self, spec: StepSpec) -> tuple[str, ...]:
        manifest = self._epoch.manifest
        read = {each.name for below in manifest.steps for each in below.inputs if each.step == spec.id}
        return tuple(sorted(read))


@contextmanager
def _blame(step: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise StepFailed(step) from error


def list_inputs(manifest: StreamManifest) -> dict[str, tuple[Output, ...]]:
    """Step -> what it takes."""
    return {spec.id: spec.inputs for spec in manifest.steps}


def list_sources(manifest: StreamManifest, query: str) -> tuple[str, ...]:
    """Sources that the query reads, in the author's order."""
    above = list_above(query, list_inputs(manifest))
    return tuple(source.name for source in manifest.sources if source.name in above)


def find_start(record: Epoch, source: SourceSpec, handed: HandedQuery | None = None) -> SourceStart:
    """Where the epoch begins to read the source.

    Of several queries that read it any one's offset does: each lies before all rows that count (``rows_from``).

    :param handed: of a query that goes on with a state: its own offsets, and rows that were late where it ended are
        late in this one.
    """
    if handed is not None:
        offset = handed.offsets.get(source.name)
        can_begin = bool(choose_start_options(source.format, offset))
        return SourceStart(offset if can_begin else None, handed.late_before or None)
    start = record.start or {}
    named = [offset for key, offset in sorted(start.items()) if key.rpartition("/")[2] == source.name]
    offset = next((each for each in named if each is not None), None)
    can_begin = bool(choose_start_options(source.format, offset))
    return SourceStart(offset if can_begin and None not in named else None, record.x_rows_from)
