"""How many instances of each step run, after all that a group leaves out, and how long an ordinary task takes."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_dagsched.model.dataflow import Step
from airflow_dagsched.plan.checking.facts.plan_facts import Facts
from airflow_dagsched.plan.plan_types import Group

ALL = 2**62
"""More instances than any step has."""


def count_instances(group: Group, steps: Sequence[Step]) -> list[int]:
    """Running instances of each of the ``steps`` of the group."""
    pruned = _count_pruned(group) if group.pruned else {}
    if not pruned:
        return [step.parallelism for step in steps]
    # Below zero only in a plan of nonsense.
    return [max(0, step.parallelism - pruned.get(step.id, 0)) for step in steps]


def _count_pruned(group: Group) -> dict[str, int]:
    """Step -> instances that do not run."""
    counts: dict[str, int] = {}
    for entry in group.pruned:
        if entry.what == "step":
            # More than any parallelism, so that instances left out besides do not matter.
            counts[entry.id] = ALL
        elif entry.what == "instance":
            name = entry.id.rpartition("/")[0]
            counts[name] = counts.get(name, 0) + 1
    return counts


def estimate_task_s(facts: Facts, task: str) -> float:
    """Seconds of an ordinary task: as declared, else as the settings say."""
    return facts.tasks[task].runtime_s or facts.settings.task_runtime_s
