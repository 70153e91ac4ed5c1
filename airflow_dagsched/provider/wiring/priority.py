"""What Airflow is told of a launch task's turn: its priority weight, and how many slots of its pool it takes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_dagsched.model.dataflow import Dataflow
    from airflow_dagsched.plan.grouping.coarsest import Grouped
    from airflow_dagsched.provider.authoring.dataflow import SparkDataflow
    from airflow_dagsched.provider.wiring.plan_file import Structure

START_S = 8.0
"""Of an application, where no plan file says what was measured."""
WEIGHTS = ("priority_weight", "weight_rule")


def compute_turns(flow: SparkDataflow, dataflow: Dataflow, found: Structure) -> dict[str, dict[str, Any]]:
    """For each group the arguments of its launch task; what the author gives comes first.

    The weight is the longest remaining path in seconds, under the rule ``absolute``: that of a task downstream
    counts nothing on top.
    """
    from airflow_dagsched.plan.remaining_paths import measure_remaining_s

    weighted = not _read_author_args(flow, WEIGHTS)
    known = {group.id: group.end_s - group.start_s for group in found.plan.groups} if found.plan else None
    paths = measure_remaining_s(dataflow, found.grouping.groups, START_S, known_s=known) if weighted else {}
    return {
        group.id: {**_weigh_path(paths.get(group.id)), **_count_slots(flow, dataflow, group)}
        for group in found.grouping.groups
    }


def _weigh_path(path_s: float | None) -> dict[str, Any]:
    return {} if path_s is None else {"priority_weight": max(1, math.ceil(path_s)), "weight_rule": "absolute"}


def _count_slots(flow: SparkDataflow, dataflow: Dataflow, group: Grouped) -> dict[str, Any]:
    """As many as the cores its widest steps can keep busy side by side, at most the pool's."""
    if flow.pool_cores is None or _read_author_args(flow, ("pool_slots",)):
        return {}
    inside = set(group.steps)
    steps = [step for step in dataflow.steps if step.id in inside]
    widths = sorted((step.cores * step.parallelism for step in steps), reverse=True)
    together = widths if any(step.mode == "streaming" for step in steps) else widths[: flow.slots]
    return {"pool_slots": min(flow.pool_cores, sum(together))}


def check_pool(flow: SparkDataflow) -> None:
    """Raise ``InvalidInput`` for slots that the pool does not have: such a task is never scheduled."""
    if flow.pool_cores is None:
        return
    asked = _read_author_args(flow, ("pool_slots",)).get("pool_slots", 1)
    if flow.pool_cores < 1:
        raise flow.make_error(f"must be at least 1, not {flow.pool_cores}", "pool_cores")
    if not _read_author_args(flow, ("pool",)):
        raise flow.make_error("is the size of a pool: say which with pool=", "pool_cores")
    if isinstance(asked, int) and asked > flow.pool_cores:
        raise flow.make_error(f"{asked} slots of a pool of {flow.pool_cores} are never free at once", "pool_slots")


def _read_author_args(flow: SparkDataflow, names: tuple[str, ...]) -> dict[str, Any]:
    """What the author says of ``names``: at the dataflow, in its default_args, or the DAG's."""
    given = {**flow.dag.default_args, **(flow.launch_args.get("default_args") or {}), **flow.launch_args}
    return {name: given[name] for name in names if name in given}
