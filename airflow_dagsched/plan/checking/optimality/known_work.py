"""How much of the work a plan says is known, against the work as measured, declared and assumed."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_dagsched.model.dataflow import Step
from airflow_dagsched.plan.checking.facts.plan_facts import Facts, Violation

TOLERANCE = 1e-5
"""Shares are rounded."""


def check_known_work(facts: Facts) -> Iterator[Violation]:
    """Each share is that of the steps whose runtimes are known so; of a plan made by hand, which has none, nothing."""
    told = facts.plan.work
    if told is None:
        return
    settings = facts.settings
    for name, right in (
        ("assumed_s", settings.step_runtime_s),
        ("assumed_steps", sum(step.runtime_s == 0 for step in facts.steps.values())),
        ("assumed_task_s", settings.task_runtime_s),
        ("assumed_tasks", sum(task.runtime_s == 0 for task in facts.tasks.values())),
    ):
        if getattr(told, name) != right:
            yield Violation("work", name, f"is {getattr(told, name):g} by the plan, but {right:g}")
    for origin, share in _share_out(facts).items():
        if abs(getattr(told, origin) - share) > TOLERANCE:
            yield Violation("work", origin, f"is {getattr(told, origin):g} by the plan, {share:g} of the steps' work")


def _share_out(facts: Facts) -> dict[str, float]:
    """Shares by origin; where no step takes any time, all is assumed."""
    shares = {"measured": 0.0, "declared": 0.0, "assumed": 0.0}
    if not facts.steps:
        return shares
    amounts = [(_tell_origin(facts, step), _measure_work(facts, step)) for step in facts.steps.values()]
    whole = sum(amount for _, amount in amounts)
    for origin, amount in amounts if whole else [("assumed", 1.0)]:
        shares[origin] += amount / (whole or 1.0)
    return shares


def _tell_origin(facts: Facts, step: Step) -> str:
    if step.runtime_s == 0:
        return "assumed"
    seen = facts.state.measured.get(step.id)
    return "declared" if seen is None or seen.runtime_s is None else "measured"


def _measure_work(facts: Facts, step: Step) -> float:
    """Core-seconds."""
    seconds = step.runtime_s if step.runtime_s > 0 else facts.settings.step_runtime_s
    return seconds * step.parallelism * step.cores
