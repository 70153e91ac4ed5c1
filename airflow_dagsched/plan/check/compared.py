"""What the groups were chosen from: the chosen grouping is that of the plan, and no other is better.

What the others would take is not worked out: that takes a planner. What has been pruned, or placed by a policy, since
the choice leaves the chosen groups and spills, not their times; and a run part-way keeps what its first plan compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from airflow_dagsched.model.ranges import MOST, MOST_SECONDS
from airflow_dagsched.plan.check.facts import Facts, Violation
from airflow_dagsched.plan.values import Compared, Group

TOLERANCE_S = 1e-3
HOUR_S = 3600.0
ROUNDING = 1e-6
"""Of told seconds."""


def check_compared(facts: Facts) -> Iterator[Violation]:
    """A plan may leave out what it was compared with."""
    plan = facts.plan
    if not plan.compared or facts.part_way:
        return
    chosen, *others = plan.compared
    yield from _differing(chosen, "groups", chosen.groups, len(plan.groups), 0)
    yield from _differing(chosen, "spilled_bytes", chosen.spilled_bytes, sum(spill.bytes for spill in plan.spills), 0)
    if facts.as_sized:
        if not facts.settings.failures_per_hour:
            yield from _differing(chosen, "makespan_s", chosen.makespan_s, plan.makespan_s, TOLERANCE_S)
        held, rounding = _core_seconds(facts)
        yield from _differing(chosen, "core_seconds", chosen.core_seconds, held, TOLERANCE_S + rounding)
    for one in plan.compared:
        if one.makespan_s < plan.lower_bound_s - TOLERANCE_S:
            text = f"ends after {one.makespan_s:g} s, but no plan ends before {plan.lower_bound_s:g} s"
            yield Violation("compared", one.what, text)
    for other in others if chosen.makespan_s < MOST_SECONDS else ():  # beyond that all are told alike
        if _order(other) < _order(chosen):
            yield Violation("compared", other.what, f"is better than what was chosen, {chosen.what!r}")


def _differing(chosen: Compared, what: str, told: float, found: float, tolerance: float) -> Iterator[Violation]:
    if abs(told - found) > tolerance:
        yield Violation("compared", chosen.what, f"was chosen with {what} {told:g}, the plan has {found:g}")


def _order(one: Compared) -> tuple[float, float, int, int]:
    return one.makespan_s, one.core_seconds, one.spilled_bytes, one.groups


def _core_seconds(facts: Facts) -> tuple[float, float]:
    """Held by all groups, with the repeats to expect; and how far that may be from what was known before rounding."""
    rate = facts.settings.failures_per_hour / HOUR_S
    held = [(_cores(group), _expected_s(group.time.total_s, rate)) for group in facts.plan.groups]
    total = sum(cores * seconds for cores, seconds in held)
    return min(total, MOST), ROUNDING * (total + 4 * sum(cores for cores, _ in held))


def _cores(group: Group) -> int:
    return sum(box.cores for box in group.containers)


def _expected_s(seconds: float, rate: float) -> float:
    """On average, if failures come at random, ``rate`` a second, and each repeats all of the group (Young 1974)."""
    return math.expm1(min(rate * seconds, 600.0)) / rate if rate else seconds
