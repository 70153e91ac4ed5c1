"""What an optimised plan takes of a leaf: read in a few messages with Java, however many nodes it has.

::

    Project [b]                            parts: this plan without its subqueries, and each of these
    +- Filter a > (subquery 1)             names of the nodes: Project, Filter, LogicalRDD
       +- LogicalRDD [a, b, c]             columns taken: a, b          asked of the leaf's rows: a > (subquery 1)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from pyspark.sql import SparkSession

from airflow_dagsched.spark.java_objects import iterate_items
from airflow_dagsched.spark.session.plan_nodes import list_ids, list_names, list_nodes, list_references

NAMING = frozenset({
    "Aggregate", "ArrowEvalPython", "BatchEvalPython", "CollectMetrics", "Expand", "Filter", "Generate", "GlobalLimit",
    "Join", "LocalLimit", "Offset", "Project", "RebalancePartitions", "Repartition", "RepartitionByExpression",
    "Sample", "Sort", "Window", "WindowGroupLimit",
})  # fmt: skip
"""Nodes whose expressions name every column below that their rows, or the order of these, depend on."""
TAKING_ALL = frozenset({
    "FlatMapCoGroupsInArrow", "FlatMapCoGroupsInPandas", "FlatMapGroupsInArrow", "FlatMapGroupsInPandas", "MapInArrow",
    "MapInPandas", "Union", "CTERelationDef", "WithCTE",
})  # fmt: skip
"""Nodes that take all there is below, by its position."""


@dataclass(frozen=True, slots=True)
class Part:
    """A plan, without its subqueries."""

    plan: Any
    names: tuple[str, ...]
    """Of its nodes: each before those below it."""
    nodes: Any
    """In this order."""
    leaves: tuple[str, ...]
    """The names of those with nothing below."""


def read_part(session: SparkSession, plan: Any) -> Part:
    """What is in ``plan``."""
    leaves = list_names(session, plan.collectLeaves())
    return Part(plan, list_names(session, plan), list_nodes(session, plan), leaves)


def names_all(part: Part) -> bool:
    """Whether it is known what each node takes of what is below it."""
    return (Counter(part.names) - Counter(part.leaves)).keys() <= NAMING | TAKING_ALL


def list_taken(session: SparkSession, part: Part) -> Iterator[str]:
    """The ids of the columns that are named in it, and of those that leave it: a subquery's rows do, too."""
    yield from list_references(session, part.plan)
    yield from list_ids(session, part.plan.output())
    for at, name in enumerate(part.names):
        for below in iterate_items(part.nodes.apply(at).children()) if name in TAKING_ALL else ():
            yield from list_ids(session, below.output())


def find_leaves(part: Part, rdd: int) -> Iterator[tuple[Any, list[Any]]]:
    """The leaves over the RDD of this number, each with what is asked of its rows before anything else is done."""
    for at, name in enumerate(part.names):
        leaf = part.nodes.apply(at) if name == "LogicalRDD" else None
        if leaf is not None and leaf.rdd().id() == rdd:
            yield leaf, [*_list_filters(part, at)]


def _list_filters(part: Part, leaf: int) -> Iterator[Any]:
    """What the filters right above a leaf ask, the lowest first."""
    # Of those that have one node below, this is the next.
    above = [*takewhile(lambda at: part.names[at] in ("Filter", "Project"), range(leaf - 1, -1, -1))]
    while above and part.names[above[-1]] == "Project":
        above.pop()
    for at in above:
        node = part.nodes.apply(at)
        # What is drawn by lot for each row would be drawn for others, if rows were let out before.
        if not node.deterministic():
            return
        if part.names[at] == "Filter":
            yield node.condition()
