"""How much of the work of a dataflow is known: measured, declared, or no more than assumed."""

from __future__ import annotations

import math
from collections.abc import Collection

from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.units import DIGITS
from airflow_dagsched.plan.needs import resolve_step_runtime
from airflow_dagsched.plan.plan_types import WorkShares
from airflow_dagsched.plan.settings import Settings


def share_work(dataflow: Dataflow, measured: Collection[str], settings: Settings) -> WorkShares:
    """Shares of the core-seconds of the steps; ``measured``: those whose runtime is from earlier runs."""
    work: dict[str, list[float]] = {"measured": [], "declared": [], "assumed": []}
    for step in dataflow.steps:
        origin = "assumed" if not step.runtime_s else "measured" if step.id in measured else "declared"
        work[origin].append(step.cores * step.parallelism * resolve_step_runtime(step, settings))
    # Exact sums: the order of the steps means nothing.
    seconds = {origin: math.fsum(values) for origin, values in work.items()}
    whole = math.fsum(seconds.values())
    shares = {origin: round(value / whole, DIGITS) for origin, value in seconds.items()} if whole else {}
    unknown = len(work["assumed"])
    if unknown and not whole:  # all that is there is assumed to take no time
        shares = {"assumed": 1.0}
    return WorkShares(
        **shares,
        assumed_s=settings.step_runtime_s,
        assumed_steps=unknown,
        assumed_task_s=settings.task_runtime_s,
        assumed_tasks=sum(not task.runtime_s for task in dataflow.tasks),
    )
