"""The problem that a plan solves: frozen in truth, nothing is filled in later.

What passes decide is in the ``Draft``; what evaluations look up again and again is in the ``Evaluator``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.codec import check_value
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.graph import Graph
from airflow_dagsched.model.validate import build_valid_graph, validate_cluster
from airflow_dagsched.plan.problem.exclusions import NOTHING_EXCLUDED, Exclusions
from airflow_dagsched.plan.problem.rules import Rules, apply_rules
from airflow_dagsched.plan.problem.run import NO_RUN, Run, StoredDataset
from airflow_dagsched.plan.problem.step_arrays import StepArrays
from airflow_dagsched.plan.settings import DEFAULTS, Settings


class StoredNodes(NamedTuple):
    """A dataset from before the run, with steps and tasks as nodes."""

    bytes: int
    readers: tuple[int, ...]
    kept_for: tuple[int, ...]
    """The nodes for which it takes room for spills; empty where it is no spill."""


class Problem(Struct, frozen=True):
    """A valid dataflow as its graph, a valid cluster, settings, one run of it; and what follows from these alone."""

    declared: Graph
    graph: Graph
    """The same with the steps that its author keeps together drawn together, as those of a loop are."""
    cluster: Cluster
    settings: Settings
    rules: Rules
    arrays: StepArrays
    run: Run = NO_RUN
    stored: tuple[StoredNodes, ...] = ()
    """Datasets from before, by size."""
    exclusions: Exclusions = NOTHING_EXCLUDED
    """What is left out of a problem that has been narrowed to what a run needs."""

    @classmethod
    def of(cls, dataflow: Dataflow, cluster: Cluster, settings: Settings = DEFAULTS, run: Run = NO_RUN) -> Problem:
        """Check all that is given. Raises ``InvalidInput`` where one of them breaks a rule."""
        valid_cluster, valid_settings = validate_cluster(cluster), check_value(Settings, settings, "settings")
        declared = build_valid_graph(dataflow)
        graph, rules = apply_rules(declared, valid_settings)
        arrays = StepArrays.of(declared, valid_cluster, valid_settings)
        stored = _number_stored(run.stored, graph)
        return cls(declared, graph, valid_cluster, valid_settings, rules, arrays, run, stored)

    @property
    def has_streaming(self) -> bool:
        """Whether any step streams: its group then holds what it needs from start to end."""
        return any(self.arrays.streaming)


def _number_stored(stored: Sequence[StoredDataset], graph: Graph) -> tuple[StoredNodes, ...]:
    """The datasets by size, names as nodes."""

    def number(names: Sequence[str]) -> tuple[int, ...]:
        return tuple(sorted(graph.index[name] for name in names))

    # In an order of their own: what was finished first means nothing.
    return tuple(sorted(StoredNodes(one.bytes, number(one.readers), number(one.kept_for)) for one in stored))
