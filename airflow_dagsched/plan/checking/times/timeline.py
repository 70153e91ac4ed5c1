"""Predicted times agree with each other and with who waits for whom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from airflow_dagsched.plan.checking.facts.plan_facts import TOLERANCE_S, Facts, Violation, measure_tolerance
from airflow_dagsched.plan.checking.facts.running_instances import estimate_task_s


def check_times(facts: Facts) -> Iterator[Violation]:
    """A group takes the time its parts take, starts after all it waits for; the makespan covers all."""
    ends = find_earliest_ends(facts)
    ready = find_ready_times(facts, ends)
    for at, group in enumerate(facts.plan.groups):
        time, lasts = group.time, group.end_s - group.start_s
        if abs(lasts - (time.start + time.read + time.compute + time.write)) > measure_tolerance(group.end_s):
            yield Violation("times", group.id, f"lasts {lasts:g} s, its parts take {time.total_s:g} s")
        if group.finish_spread_s > time.compute + measure_tolerance(time.compute):
            yield Violation("times", group.id, f"its steps end {group.finish_spread_s:g} s apart in {time.compute:g} s")
        # Which of those it waits for comes too late is worked out only now: rarely is there one.
        if group.start_s < ready[at] - measure_tolerance(ready[at]):
            yield from _explain_early(facts, at, ends)
    yield from _check_totals(facts, max(ends, default=0.0))


def _explain_early(facts: Facts, at: int, ends: Sequence[float]) -> Iterator[Violation]:
    group = facts.plan.groups[at]
    for unit in sorted(facts.edges.above[at]):
        if ends[unit] > group.start_s + measure_tolerance(group.start_s):
            # Later than ready is allowed: room may be short.
            text = f"starts at {group.start_s:g} s, {facts.units[unit]!r} ends at {ends[unit]:g} s"
            yield Violation("times", group.id, text)


def _check_totals(facts: Facts, end: float) -> Iterator[Violation]:
    """Makespan, bound and gap; ``end``: of the last group or ordinary task."""
    plan = facts.plan
    begun = any(group.progress != "planned" for group in plan.groups)
    tolerance = measure_tolerance(end)
    late = plan.makespan_s > end + tolerance and not begun  # an ordinary task may be later than it was to be
    if late or plan.makespan_s < end - tolerance:
        yield Violation("times", "makespan_s", f"is {plan.makespan_s:g} s, but the last end is {end:g} s")
    if plan.lower_bound_s > plan.makespan_s + tolerance:
        yield Violation("times", "lower_bound_s", f"{plan.lower_bound_s:g} s is above makespan {plan.makespan_s:g} s")
    if plan.lower_bound_s and abs(plan.makespan_s / plan.lower_bound_s - 1 - plan.gap) > TOLERANCE_S:
        yield Violation("times", "gap", f"is {plan.gap:g}, not what makespan and lower bound say")


def find_ready_times(facts: Facts, ends: Sequence[float]) -> list[float]:
    """By unit: seconds at which the last of all that it waits for ends; ``ends``: by unit."""
    return [max([ends[before] for before in above], default=0.0) for above in facts.edges.above]


def find_earliest_ends(facts: Facts) -> list[float]:
    """By unit: ends of the groups as predicted, and the earliest the ordinary tasks behind them can end."""
    groups, above = facts.plan.groups, facts.edges.above
    ends = [group.end_s for group in groups] + [0.0] * len(facts.tasks)
    ended = _find_ended_tasks(facts) if facts.tasks else set()
    # Units on a cycle are not in the order: their ends stay 0, and ``check_waits`` reports the cycle.
    for unit in facts.edges.order if facts.tasks else ():
        if unit >= len(groups):
            ends[unit] = max([ends[before] for before in above[unit]], default=0.0)
            # A task takes no room, so it ends as early as it can: nothing of it is in the plan to be compared.
            ends[unit] += 0.0 if unit in ended else estimate_task_s(facts, facts.units[unit])
    return ends


def _find_ended_tasks(facts: Facts) -> set[int]:
    """Ordinary tasks that are over, as the state says, or as groups behind them show that have begun: they took less.

    How long they took is not known, so they count as if they had taken no time.
    """
    groups = facts.plan.groups
    reached = [at for at, group in enumerate(groups) if group.progress != "planned"]
    seen = set(reached)
    for unit in reached:
        fresh = facts.edges.above[unit] - seen
        # Up from what has begun: all above it must be over.
        seen |= fresh
        reached += fresh
    finished = set(facts.state.finished)
    return {at for at in range(len(groups), len(facts.units)) if at in seen or facts.units[at] in finished}
