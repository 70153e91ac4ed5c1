"""What Airflow is told of a launch task's turn: its priority weight, and how many slots of its pool it takes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_dagsched.plan.grouping.coarsest import Grouped
    from airflow_dagsched.provider.spec.dataflow_spec import DataflowSpec
    from airflow_dagsched.provider.wiring.plan_file import Structure

START_S = 8.0
"""Of an application, where no plan file says what was measured."""
WEIGHTS = frozenset({"priority_weight", "weight_rule"})


def compute_turns(flow: DataflowSpec, found: Structure) -> dict[str, dict[str, Any]]:
    """For each group the arguments of its launch task; what the author gives comes first.

    The weight is the longest remaining path in seconds, under the rule ``absolute``: that of a task downstream
    counts nothing on top.
    """
    from airflow_dagsched.plan.remaining_paths import measure_remaining_s

    weighted = not flow.authors_args.keys() & WEIGHTS
    known = {group.id: group.end_s - group.start_s for group in found.plan.groups} if found.plan else None
    paths = measure_remaining_s(flow.graph.dataflow, found.grouping.groups, START_S, known_s=known) if weighted else {}
    return {
        group.id: {**_weigh_path(paths.get(group.id)), **_count_slots(flow, group)} for group in found.grouping.groups
    }


def _weigh_path(path_s: float | None) -> dict[str, Any]:
    # At least 1, as any task has: 0 is what mirrors and gates have, which let all others go first.
    return {} if path_s is None else {"priority_weight": max(1, math.ceil(path_s)), "weight_rule": "absolute"}


def _count_slots(flow: DataflowSpec, group: Grouped) -> dict[str, Any]:
    """As many as the cores its widest steps can keep busy side by side, at most the pool's."""
    if flow.pool_cores is None or "pool_slots" in flow.authors_args:
        return {}
    inside = set(group.steps)
    steps = [step for step in flow.graph.dataflow.steps if step.id in inside]
    widths = sorted((step.cores * step.parallelism for step in steps), reverse=True)
    # Streaming steps all run at once; of batch steps at most ``slots``.
    together = widths if any(step.mode == "streaming" for step in steps) else widths[: flow.settings.slots]
    return {"pool_slots": min(flow.pool_cores, sum(together))}
