"""What a dataflow reads that another one of its DAG writes before it: a listing shows what was there, not what will be.

    collect   sink   writes /t      0 on w1, 1 on w2
    receive   src    reads /t       on w1 and w2, where a store that is on the workers keeps them; whatever is there now

A launch of ``receive`` lists the table once it is written. Who plans before that expects each instance's share on the
host of its executor, as for groups of one dataflow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from airflow_dagsched.launch.planning.facts import Facts
from airflow_dagsched.launch.planning.planned import Planned
from airflow_dagsched.model.dataflow import Channel, Dataflow, Source, Step
from airflow_dagsched.model.state import State, apply_measured
from airflow_dagsched.plan.merge_dataflows import join_by_tables
from airflow_dagsched.plan.passes.written_rows import add_written_rows, is_stored_on_workers
from airflow_dagsched.plan.pruning.conditions.condition import ALWAYS
from airflow_dagsched.plan.pruning.sources import Selection
from airflow_dagsched.plan.pruning.steps import Selections
from airflow_dagsched.plan.reasons.pruning import ListingRefused


def expect_rows(facts: Facts, reads: Mapping[str, Iterable[str]], earlier: Planned, history: State) -> Facts:
    """The facts of a dataflow that begins when ``earlier`` has ended; as they are where it reads none of its tables.

    :param reads: step -> the tables that its author says it reads.
    :param history: of ``earlier``: how many bytes its steps write.
    """
    channels = _join(facts.dataflow, reads, earlier.dataflow, history)
    if not channels:
        return facts
    tables = {table for step in earlier.dataflow.steps for table in step.writes}
    known = _forget_listed(facts, tables, earlier.plan.dataflow)
    known = replace(known, origin=replace(known.origin, behind=(*known.origin.behind, earlier.plan.dataflow)))
    stays = any(is_stored_on_workers(flow, facts.cluster) for flow in (facts.dataflow, earlier.dataflow))
    return _place_rows(known, channels, earlier) if stays else known


def _join(
    dataflow: Dataflow, reads: Mapping[str, Iterable[str]], written: Dataflow, history: State
) -> tuple[Channel, ...]:
    """A channel from each step that writes a table to each that reads it."""
    readers = (
        replace(step, sources=tuple(Source(path=table) for table in reads.get(step.id, ()))) for step in dataflow.steps
    )
    joined = tuple(join_by_tables(written, replace(dataflow, steps=tuple(readers))))
    return apply_measured(Dataflow(name=written.name, channels=joined), history).channels


def _forget_listed(facts: Facts, tables: Iterable[str], writer: str) -> Facts:
    """The facts as if nobody had listed the tables."""
    steps = (replace(step, sources=tuple(_unlist(step, tables))) for step in facts.dataflow.steps)
    selections = facts.selections
    if selections is not None:
        unknown = ListingRefused(f"dataflow {writer!r} writes it before")
        selections = {
            key: replace(found, needed=(), left_out=(), objection=unknown, listed=False) if key[1] in tables else found
            for key, found in selections.items()
        }
    return replace(facts, dataflow=replace(facts.dataflow, steps=tuple(steps)), selections=selections)


def _unlist(step: Step, tables: Iterable[str]) -> Iterator[Source]:
    for source in step.sources:
        yield replace(source, partitions=()) if source.path in tables else source


def _place_rows(facts: Facts, channels: Iterable[Channel], earlier: Planned) -> Facts:
    dataflow = add_written_rows(facts.dataflow, channels, earlier.plan.groups, earlier.cluster)
    selections = facts.selections
    return replace(
        facts,
        dataflow=dataflow,
        selections=None if selections is None else {**_select_new(facts.dataflow, dataflow), **selections},
    )


def _select_new(before: Dataflow, after: Dataflow) -> Selections:
    """All of each source that there was not before."""
    pairs = zip(before.steps, after.steps, strict=True)
    new = ((now, source) for was, now in pairs for source in now.sources[len(was.sources) :])
    return {(step.id, one.path): Selection(one.path, ALWAYS, one.partitions) for step, one in new}
