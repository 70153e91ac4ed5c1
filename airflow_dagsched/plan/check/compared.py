"""What the groups were chosen from: the chosen grouping is that of the plan, and no other is better.

What the others would take is not worked out: that takes a planner. Of one application per step the groups and spilled
bytes are, and of what it takes the limits. What has been pruned, or placed by a policy, since the choice leaves the
chosen groups and spills, not their times; and a run part-way keeps what its first plan compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from operator import mul

from airflow_dagsched.model.ranges import MOST, MOST_SECONDS
from airflow_dagsched.plan.check.alone import Alone
from airflow_dagsched.plan.check.facts import TOLERANCE_S, Facts, Violation
from airflow_dagsched.plan.values import Compared

PER_STEP = "one application per step"
LIMITED = 300
"""Steps of a plan, at most, of which the limits of one application per step are worked out."""
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
        if one.groups == 1 and one.spilled_bytes:
            yield Violation("compared", one.what, f"spills {one.spilled_bytes} bytes, but has one group")
        if one.what == PER_STEP and _can_be_limited(facts):
            yield from _outside(one, Alone.of(facts), failures=bool(facts.settings.failures_per_hour))
    for other in others if chosen.makespan_s < MOST_SECONDS else ():  # beyond that all are told alike
        if _order(other) < _order(chosen):
            yield Violation("compared", other.what, f"is better than what was chosen, {chosen.what!r}")


def _can_be_limited(facts: Facts) -> bool:
    """Not of many steps, for it takes as long as all the rest; what the author keeps together is no step alone."""
    partition = all(len(group.steps) == len(steps) for group, steps in facts.members)
    small = len(facts.steps) == len(facts.home) <= LIMITED
    return small and partition and facts.as_sized and not facts.settings.together


def _outside(one: Compared, alone: Alone, *, failures: bool) -> Iterator[Violation]:
    """``failures``: whether each group may begin again, so that there is no most."""
    for what, told, found in (
        ("groups", one.groups, alone.groups),
        ("spilled_bytes", one.spilled_bytes, alone.spilled_bytes),
    ):
        if told != found:
            yield Violation("compared", one.what, f"is told to take {told} {what}, it takes {found}")
    for what, seconds, least, most in (
        ("makespan_s", one.makespan_s, alone.least_s, alone.most_s),
        ("core_seconds", one.core_seconds, alone.core_seconds, math.inf),
    ):
        tolerance = TOLERANCE_S + ROUNDING * (least + one.groups)
        if seconds < least - tolerance or (seconds > most + tolerance and not failures):
            text = f"is told to take {seconds:g} {what}, it takes {least:g} at least, {most:g} at most"
            yield Violation("compared", one.what, text)


def _differing(chosen: Compared, what: str, told: float, found: float, tolerance: float) -> Iterator[Violation]:
    if abs(told - found) > tolerance:
        yield Violation("compared", chosen.what, f"was chosen with {what} {told:g}, the plan has {found:g}")


def _order(one: Compared) -> tuple[float, float, int, int]:
    return one.makespan_s, one.core_seconds, one.spilled_bytes, one.groups


def _core_seconds(facts: Facts) -> tuple[float, float]:
    """Held by all groups, with the repeats to expect; and how far that may be from what was known before rounding."""
    rate = facts.settings.failures_per_hour / HOUR_S
    cores = [sum([box.cores for box in group.containers]) for group in facts.plan.groups]
    times = [group.time for group in facts.plan.groups]
    lasting = [_expected_s(time.start + time.read + time.compute + time.write, rate) for time in times]
    total = sum(map(mul, cores, lasting))
    return min(total, MOST), ROUNDING * (total + 4 * sum(cores))


def _expected_s(seconds: float, rate: float) -> float:
    """On average, if failures come at random, ``rate`` a second, and each repeats all of the group (Young 1974)."""
    return math.expm1(min(rate * seconds, 600.0)) / rate if rate else seconds
