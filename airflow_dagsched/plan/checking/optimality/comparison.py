"""What the groups were chosen from: the chosen grouping is that of the plan, and none is better.

Better is what ends more than 1% sooner; what has fewer groups and ends no more than 1% later than the soonest; and of
as many groups what ends sooner.

What the others would take is not worked out: that takes a planner. What has as many groups as there are steps must be
one application per step: its spilled bytes follow, and limits of its seconds. How groupings do with other runtimes
(``regret``) takes a planner as well: only that the chosen has about the least of those told. Pruning and policies
change the chosen groups alone: these are told as they became, and their order among the others may be another then. A
run part-way keeps what its first plan compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from operator import mul
from typing import Any

from msgspec import UNSET

from airflow_dagsched.model.ranges import MOST_PLANNED
from airflow_dagsched.plan.checking.facts.plan_facts import TOLERANCE_S, Facts, Violation, measure_tolerance
from airflow_dagsched.plan.checking.optimality.separate_applications import SeparateApplications
from airflow_dagsched.plan.plan_types import Compared

LIMITED = 300
"""Steps of a plan, at most, of which the limits of one application per step are worked out."""
HOUR_S = 3600.0
WITHIN = 0.01
"""As a share of the soonest: who ends so much later, with fewer groups, is better."""
ROUNDING = 1e-6
"""Of told seconds."""


def check_comparison(facts: Facts) -> Iterator[Violation]:
    """A plan may leave out what it was compared with."""
    plan = facts.plan
    # A plan of the rest of a run keeps what the first plan was chosen from.
    if not plan.compared or facts.has_begun:
        return
    yield from _check_chosen(facts, plan.compared[0])
    for entry in plan.compared:
        if entry.makespan_s < plan.lower_bound_s - measure_tolerance(plan.lower_bound_s):
            text = f"ends after {entry.makespan_s:g} s, but no plan ends before {plan.lower_bound_s:g} s"
            yield Violation("compared", entry.what, text)
        # A spill is a channel between two groups.
        if entry.groups == 1 and entry.spilled_bytes:
            yield Violation("compared", entry.what, f"spills {entry.spilled_bytes} bytes, but has one group")
    if _has_limits(facts):
        separate = SeparateApplications.of(facts)
        for entry in plan.compared:
            yield from _check_limits(entry, separate, has_failures=bool(facts.settings.failures_per_hour))
    # Policies and pruning change the chosen groups alone: the others are told as they were sized.
    if facts.is_as_sized:
        is_any_told = any(step.runtime_s for step in facts.steps.values())
        yield from _check_order(plan.compared, is_any_told=is_any_told)


def _check_chosen(facts: Facts, chosen: Compared) -> Iterator[Violation]:
    plan = facts.plan
    yield from _compare_amounts(chosen, "groups", chosen.groups, len(plan.groups), 0)
    yield from _compare_amounts(
        chosen, "spilled_bytes", chosen.spilled_bytes, sum(spill.bytes for spill in plan.spills), 0
    )
    # With failures to expect, groupings are compared with repeats, while the plan's own times are without any.
    if not facts.settings.failures_per_hour:
        yield from _compare_amounts(
            chosen, "makespan_s", chosen.makespan_s, plan.makespan_s, measure_tolerance(plan.makespan_s)
        )
    core_seconds, rounding = _sum_core_seconds(facts)
    yield from _compare_amounts(chosen, "core_seconds", chosen.core_seconds, core_seconds, TOLERANCE_S + rounding)


def _check_order(compared: Sequence[Compared], *, is_any_told: bool) -> Iterator[Violation]:
    """None is better than the first; of what takes longer than a plan can say, all take that long."""
    chosen = compared[0]
    # Capped values are all equal: nothing can be said of their order.
    if chosen.makespan_s >= MOST_PLANNED:
        return
    if chosen.regret is not UNSET:
        yield from _check_regrets([entry for entry in compared if entry.regret is not UNSET])
    # Where no runtime is told, regrets alone decide.
    if chosen.regret is UNSET or is_any_told:
        yield from _check_ends(compared)


def _check_ends(compared: Sequence[Compared]) -> Iterator[Violation]:
    """The first ends in time, and none that does so, too, has fewer groups, or is better with as many."""
    chosen, *others = compared
    latest_s = (1 + WITHIN) * min(entry.makespan_s for entry in compared)
    tolerance = measure_tolerance(latest_s)
    if chosen.makespan_s > latest_s + tolerance:
        text = f"ends after {chosen.makespan_s:g} s, others before {latest_s:g} s"
        yield Violation("compared", chosen.what, text)
    # Of those that end in time, too, regrets decide.
    if chosen.regret is UNSET:
        sooner = [other for other in others if other.makespan_s <= latest_s - tolerance]
        yield from _list_better(chosen, others, sooner, _sort_key)


def _check_regrets(compared: Sequence[Compared]) -> Iterator[Violation]:
    """The first has about the least regret, and none that has, too, has fewer groups, or less with as many."""
    chosen, *others = compared
    most = (1 + WITHIN) * (1 + min(map(_get_regret, compared))) - 1
    if _get_regret(chosen) > most + ROUNDING:
        yield Violation("compared", chosen.what, f"has a regret of {chosen.regret:g}, others less than {most:g}")
    about = [other for other in others if _get_regret(other) <= most - ROUNDING]
    yield from _list_better(chosen, others, about, _get_regret)


def _list_better(
    chosen: Compared, others: Sequence[Compared], as_good: Sequence[Compared], sort_key: Callable[[Compared], Any]
) -> Iterator[Violation]:
    """Others that are as good with fewer groups, or come first of those with as many."""
    fewer = [other for other in as_good if other.groups < chosen.groups]
    first = [other for other in others if other.groups == chosen.groups and sort_key(other) < sort_key(chosen)]
    for other in (*fewer, *first):
        yield Violation("compared", other.what, f"is better than what was chosen, {chosen.what!r}")


def _get_regret(entry: Compared) -> float:
    return 0.0 if entry.regret is UNSET else entry.regret


def _has_limits(facts: Facts) -> bool:
    """Not of many steps, for it takes as long as all the rest; what the author keeps together is no step alone."""
    small = len(facts.steps) <= LIMITED
    return small and facts.is_partition and facts.is_as_sized and not facts.settings.together


def _check_limits(entry: Compared, separate: SeparateApplications, *, has_failures: bool) -> Iterator[Violation]:
    """Of what has as many groups as there are steps, seconds, too: there is one such grouping, whatever it is called.

    ``has_failures``: each group may begin again, so that there is no most.
    """
    for what, planned, most in (
        ("groups", entry.groups, separate.groups),
        ("spilled_bytes", entry.spilled_bytes, separate.spilled_bytes),
    ):
        if planned > most:
            yield Violation("compared", entry.what, f"takes {planned} {what}, one application per step takes {most}")
    # Fewer groups than steps: which they are is not in the plan, so only the limits above hold.
    if entry.groups != separate.groups:
        return
    if entry.spilled_bytes != separate.spilled_bytes:
        text = f"spills {entry.spilled_bytes} bytes, so many groups spill {separate.spilled_bytes}"
        yield Violation("compared", entry.what, text)
    for what, seconds, least, most_s in (
        ("makespan_s", entry.makespan_s, separate.least_s, separate.most_s),
        # No most: a container may be wider than what runs in it.
        ("core_seconds", entry.core_seconds, separate.core_seconds, math.inf),
    ):
        tolerance = TOLERANCE_S + ROUNDING * (least + entry.groups)
        if seconds < least - tolerance or (seconds > most_s + tolerance and not has_failures):
            text = f"takes {seconds:g} {what}, so many groups take {least:g} at least, {most_s:g} at most"
            yield Violation("compared", entry.what, text)


def _compare_amounts(
    chosen: Compared, what: str, planned: float, actual: float, tolerance: float
) -> Iterator[Violation]:
    if abs(planned - actual) > tolerance:
        yield Violation("compared", chosen.what, f"was chosen with {what} {planned:g}, the plan has {actual:g}")


def _sort_key(entry: Compared) -> tuple[float, float, int]:
    """Of entries with as many groups."""
    return entry.makespan_s, entry.core_seconds, entry.spilled_bytes


def _sum_core_seconds(facts: Facts) -> tuple[float, float]:
    """Held by all groups, with the repeats to expect; and how far that may be from what was known before rounding."""
    rate = facts.settings.failures_per_hour / HOUR_S
    cores = [sum([box.cores for box in group.containers]) for group in facts.plan.groups]
    times = [group.time for group in facts.plan.groups]
    lasting = [_estimate_s(time.start + time.read + time.compute + time.write, rate) for time in times]
    total = sum(map(mul, cores, lasting))
    # Four rounded parts a group, each off by half a microsecond at most, times the cores that are held for it.
    return min(total, MOST_PLANNED), ROUNDING * (total + 4 * sum(cores))


def _estimate_s(seconds: float, rate: float) -> float:
    """On average, if failures come at random, ``rate`` a second, and each repeats all of the group (Young 1974)."""
    return math.expm1(min(rate * seconds, 600.0)) / rate if rate else seconds
