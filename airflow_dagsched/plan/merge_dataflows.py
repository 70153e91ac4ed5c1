"""Several dataflows as one, to be planned on one cluster together: each keeps its applications, they share the workers.

    sales    load ══> clean  writes "t"        sales/load ══> sales/clean ──┐ t
    report   sum  reads "t" ══> mail           report/sum ══> report/mail <─┘    a buffered channel joins them

After Twister2's connected dataflows, where one's collector hands on to the other's receptor by name: here the name is
the table's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, pairwise, permutations

from msgspec.structs import replace

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.model.dataflow import DATAFLOW, Channel, Dataflow, Step, Task
from airflow_dagsched.model.order import natural_key


def merge_dataflows(dataflows: Sequence[Dataflow]) -> Dataflow:
    """One dataflow of all of them, whatever their order; one alone stays as it is.

    Steps and ordinary tasks are called ``dataflow/step``; steps of two dataflows never share an application. A step
    that reads a table which a step of another dataflow writes waits for it.

    Raises ``InvalidInput`` where two dataflows have one name.
    """
    if len(dataflows) == 1:
        return dataflows[0]
    ranked = sorted(dataflows, key=lambda each: natural_key(each.name))
    _refuse_equal_names(ranked)
    qualified = [_qualify_names(each) for each in ranked]
    joined = (join_by_tables(one, other) for one, other in permutations(qualified, 2))
    return Dataflow(
        name=" + ".join(each.name for each in ranked),
        steps=tuple(_list_in_order(qualified)),
        channels=tuple(channel for each in qualified for channel in each.channels) + tuple(chain.from_iterable(joined)),
        tasks=tuple(task for each in qualified for task in each.tasks),
        dependencies=tuple(edge for each in qualified for edge in each.dependencies),
    )


def _refuse_equal_names(ranked: Sequence[Dataflow]) -> None:
    for one, other in pairwise(ranked):
        if one.name == other.name:
            rule = f"{one.name!r} is the name of two: planned together, each has its own"
            raise InvalidInput("dataflows", "name", rule)


def _qualify_names(dataflow: Dataflow) -> Dataflow:
    """The dataflow with its name in front of all that has an id."""

    def qualify(name: str) -> str:
        return f"{dataflow.name}/{name}"

    return replace(
        dataflow,
        steps=tuple(_qualify_step(step, dataflow.name) for step in dataflow.steps),
        channels=tuple(replace(each, src=qualify(each.src), dst=qualify(each.dst)) for each in dataflow.channels),
        tasks=tuple(Task(id=qualify(task.id), runtime_s=task.runtime_s) for task in dataflow.tasks),
        dependencies=tuple((qualify(src), qualify(dst)) for src, dst in dataflow.dependencies),
    )


def _qualify_step(step: Step, name: str) -> Step:
    # An application belongs to one launch task, and a launch task to one dataflow: as a setting that must be equal
    # within one application, the name keeps them apart wherever groups are made, compared or checked.
    return replace(step, id=f"{name}/{step.id}", application={**step.application, DATAFLOW: name})


def _list_in_order(dataflows: Sequence[Dataflow]) -> Iterator[Step]:
    """All steps, their positions in their authors' files counted on from one dataflow to the next."""
    begin = 0
    for dataflow in dataflows:
        for step in dataflow.steps:
            yield replace(step, order=begin + step.order)
        begin += 1 + max((step.order for step in dataflow.steps), default=0)


def join_by_tables(written: Dataflow, other: Dataflow) -> Iterator[Channel]:
    """A channel from who writes a table in one dataflow to each step of the other that reads it."""
    readers = [(step.id, {source.path for source in step.sources}) for step in other.steps if step.sources]
    for writer in written.steps if readers else ():
        # Within its own dataflow an author passes rows on; who reads the table there may want those of before.
        found = [reader for reader, tables in readers if not tables.isdisjoint(writer.writes)] if writer.writes else ()
        rows = _count_bytes(writer, written) if found else 0
        for reader in found:
            yield Channel(src=writer.id, dst=reader, kind="buffered", bytes=rows)


def _count_bytes(writer: Step, home: Dataflow) -> int:
    """What the step hands on in its own dataflow is what it writes; 0: not known."""
    return max((each.bytes for each in home.channels if each.src == writer.id and not each.output), default=0)
