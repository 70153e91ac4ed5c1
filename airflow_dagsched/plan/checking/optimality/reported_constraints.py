"""The plan says of each constraint its author set where it is kept: one sentence each, and none of anything else."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_dagsched.plan.checking.facts.plan_facts import Facts, Violation
from airflow_dagsched.plan.settings import DEFAULTS


def check_reported_constraints(facts: Facts) -> Iterator[Violation]:
    """Counted, not read: that the constraints are kept is for ``structure.settings``."""
    reported = len(facts.plan.asked)
    expected = _count_constraints(facts) if facts.plan.groups else 0
    if reported != expected:
        yield Violation("asked", facts.plan.dataflow, f"reports {reported} constraints, its author set {expected}")


def _count_constraints(facts: Facts) -> int:
    settings = facts.settings
    return (
        len(settings.apart)
        + len(settings.together)
        + any(step.isolate for step in facts.dataflow.steps)
        + (settings.max_steps_per_group < DEFAULTS.max_steps_per_group)
        + bool(settings.failures_per_hour and facts.plan.compared)
        + (facts.cluster.spill_mb is not None)
    )
