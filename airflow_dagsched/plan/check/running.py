"""What runs of each step, after all that a group leaves out, and how long an ordinary task takes."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_dagsched.model.dataflow import Step
from airflow_dagsched.plan.check.facts import Facts
from airflow_dagsched.plan.values import Group

ALL = 2**62


def instances_left(group: Group, steps: Sequence[Step]) -> list[int]:
    """For each of the ``steps`` of the group."""
    gone = _gone(group) if group.pruned else {}
    if not gone:
        return [step.parallelism for step in steps]
    return [max(0, step.parallelism - gone.get(step.id, 0)) for step in steps]


def _gone(group: Group) -> dict[str, int]:
    """Step -> instances that do not run."""
    gone: dict[str, int] = {}
    for pruned in group.pruned:
        if pruned.what == "step":
            gone[pruned.id] = ALL
        elif pruned.what == "instance":
            name = pruned.id.rpartition("/")[0]
            gone[name] = gone.get(name, 0) + 1
    return gone


def lasting_s(facts: Facts, task: str) -> float:
    """Seconds of an ordinary task: as declared, else as the settings say."""
    return facts.tasks[task].runtime_s or facts.settings.task_runtime_s
