"""What is known of the rows that a node of a plan makes, and how it follows from its inputs'."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from airflow_dagsched.spark.streams.plans.refusals import Refusal
from airflow_dagsched.spark.streams.plans.time_columns import (
    Attribute,
    Columns,
    TimeColumn,
    merge_columns,
    read_attribute,
    resolve,
)
from airflow_dagsched.spark.streams.plans.tree import Node, read_expressions


@dataclass(frozen=True, slots=True)
class Rows:
    """Of one node. What is said of time holds for streams alone: rows that are there at once have no columns here."""

    output: tuple[Attribute, ...] = ()
    columns: Columns = field(default_factory=dict)
    streaming: bool = False
    marked: bool = False
    """Whether a watermark is below."""
    unmarked: bool = False
    """Whether a stream without a watermark is below."""
    reach_s: float = 0.0
    """By how much rows may be older than the first of the flow's window that they are counted in."""
    refusals: tuple[Refusal, ...] = ()

    @property
    def time(self) -> str:
        """Name of the column with the event time; empty: there is none."""
        return next((column.name for column in self.columns.values() if column.part == "time"), "")

    @property
    def attributes(self) -> Mapping[int, str]:
        """Number to name."""
        return {each.id: each.name for each in self.output}


def unite(below: Iterable[Rows]) -> Rows:
    """Of all inputs together, one beside the other."""
    inputs = tuple(below)
    return Rows(
        output=tuple(each for rows in inputs for each in rows.output),
        columns={number: column for rows in inputs for number, column in rows.columns.items()},
        streaming=any(rows.streaming for rows in inputs),
        marked=any(rows.marked for rows in inputs),
        unmarked=any(rows.unmarked for rows in inputs),
        reach_s=max((rows.reach_s for rows in inputs), default=0.0),
        # Two inputs may be the same one, read twice.
        refusals=tuple(dict.fromkeys(refusal for rows in inputs for refusal in rows.refusals)),
    )


def refuse(rows: Rows, *refusals: Refusal) -> Rows:
    """The rows, with more that is wrong."""
    return replace(rows, refusals=tuple(dict.fromkeys((*rows.refusals, *refusals))))


def project(rows: Rows, expressions: Iterable[Node]) -> Rows:
    """Rows of these expressions, each with a name, made of ``rows``."""
    listed = tuple(expressions)
    return rename(rows, map(read_attribute, listed), [resolve(each, rows.columns) for each in listed])


def rename(rows: Rows, output: Iterable[Attribute], columns: Iterable[TimeColumn | None]) -> Rows:
    """The rows, as ``output``: what is known of each of its columns is listed in ``columns``; None: nothing."""
    listed = tuple(output)
    known = {each.id: replace(column, name=each.name) for each, column in zip(listed, columns, strict=False) if column}
    return replace(rows, output=listed, columns=known if rows.streaming else {})


def expand(rows: Rows, node: Node) -> Rows:
    """Several rows of one: a column is known if it is the same in all of them."""
    projections = [read_expressions(each) for each in node.fields["projections"]]
    found = [merge_columns([resolve(each, rows.columns) for each in one]) for one in zip(*projections, strict=True)]
    return rename(rows, map(read_attribute, read_expressions(node.fields["output"])), found)


def append_unions(below: tuple[Rows, ...]) -> Rows:
    """Rows of all inputs, one behind the other: columns are matched by their places."""
    found = [
        merge_columns([rows.columns.get(attribute.id) for rows, attribute in zip(below, place, strict=True)])
        for place in zip(*(rows.output for rows in below), strict=False)
    ]
    return rename(unite(below), below[0].output, found)


def blur(rows: Rows) -> Rows:
    """The rows of an outer join's side that may be missing."""
    return replace(rows, columns={number: replace(each, optional=True) for number, each in rows.columns.items()})
