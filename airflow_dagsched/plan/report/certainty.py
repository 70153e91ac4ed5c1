"""How sure a plan's seconds are, as a person would say it: a guess is not told as a proof."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_dagsched.plan.plan_types import Plan, WorkShares
from airflow_dagsched.plan.report.words import format_count, format_duration, format_share


def say_known(work: WorkShares) -> str:
    """How much of the work is measured, declared, assumed; empty where there is no work."""
    known = ", ".join(f"{format_share(share)} is {origin}" for origin, share in _list_known(work))
    if not work.assumed_steps:  # the assumed part says what the shares are of
        known = known.replace(" is ", " of the work is ", 1)
    assumed = ", ".join(_list_assumed(work))
    return "; ".join(filter(None, [assumed and f"{assumed}: seconds are a guess", known]))


def _list_assumed(work: WorkShares) -> Iterator[str]:
    if work.assumed_steps:
        steps = format_count(work.assumed_steps, "step")
        yield f"{format_share(work.assumed)} of the work is assumed ({work.assumed_s:g} s a step, {steps})"
    if work.assumed_tasks:
        tasks, are = format_count(work.assumed_tasks, "ordinary task"), "is" if work.assumed_tasks == 1 else "are"
        yield f"{tasks} {are} assumed to take {work.assumed_task_s:g} s"


def _list_known(work: WorkShares) -> Iterator[tuple[str, float]]:
    yield from ((origin, share) for origin in ("measured", "declared") if (share := getattr(work, origin)))


def say_bound_of(plan: Plan) -> str:
    """The makespan against what no plan can beat with these runtimes; empty where none of them is known."""
    if plan.work is not None and plan.work.assumed == 1:
        return ""
    if not plan.gap:
        return "with these runtimes no plan can take less"
    if format_duration(plan.makespan_s) == format_duration(plan.lower_bound_s):
        # In seconds: both would be told alike.
        return f"{plan.makespan_s - plan.lower_bound_s:.2g} s more than what no plan can beat with these runtimes"
    least = format_duration(plan.lower_bound_s)
    return f"{plan.gap:.1%} more than the {least} that no plan can beat with these runtimes"
