"""The lower bound is no more than what can be derived, and no less than the simplest bounds there are.

Derived here, whatever the plan says its bound comes from:

*Path.* The longest path of steps and ordinary tasks; see ``paths``.

*Area.* What starts no earlier than some ``head`` and has some ``tail`` behind it has to find room between the two:
core-seconds on all cores, or padded memory for as long as it is held in all memory.

    ├── head ──┤▒▒▒▒▒▒▒▒ area / room ▒▒▒▒▒▒▒▒├── tail ──┤

*Crowd.* Of ``k * cores + 1`` instances some core has ``k + 1``, between a head and a tail likewise.

What the exact mode has proved (``lower_bound_proof``) would take the exact mode again: that it is no higher than the
makespan is all that can be said of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from airflow_dagsched.plan.checking.facts.plan_facts import Facts, Violation, measure_tolerance
from airflow_dagsched.plan.checking.optimality.paths import Paths, RunningSteps

LOOKS = 64
"""Different heads, and tails, between which a crowd is looked at exactly; of more, some."""
LOOKED_AT = 100_000
"""Instances, each on one core, over which those looks go together."""
Row = tuple[float, float, float]
"""Head, tail, and what is held times seconds, as a share of all there is."""


def check_bound(facts: Facts) -> Iterator[Violation]:
    """Part-way through a run the bound is that of what is left, from a moment on that the plan does not say."""
    plan = facts.plan
    if plan.lower_bound_s and not plan.lower_bound_reason:
        yield Violation("reason", "lower_bound_s", "says nothing")
    if facts.has_begun or not facts.is_partition:
        return
    # Without what pruning left out: a bound with it could be above the makespan.
    running = RunningSteps.of(facts, narrowed=True)
    paths = Paths.of(facts, running)
    for what, seconds in (("path", paths.longest_s), ("core-seconds", _measure_least_area(running))):
        # Where this check's own bound is above the makespan, it is the times that are wrong, and their rule says so.
        least = min(seconds, plan.makespan_s)
        if plan.lower_bound_s < least - measure_tolerance(least):
            text = f"is {plan.lower_bound_s:g} s, but the {what} take {seconds:g} s"
            yield Violation("times", "lower_bound_s", text)
    if plan.lower_bound_proof != "exact":
        yield from _check_not_overstated(facts, running, paths)


def _check_not_overstated(facts: Facts, running: RunningSteps, paths: Paths) -> Iterator[Violation]:
    """Whether the bound is more than anything gives; what is derived first nearly always gives as much."""
    planned_s, most = facts.plan.lower_bound_s, 0.0
    for seconds in _derive_bounds(facts, running, paths):
        most = max(most, seconds)
        # Bounds are worked out one by one, the cheap ones first: most plans stop at the path.
        if planned_s <= most + measure_tolerance(most):
            return
    yield Violation("times", "lower_bound_s", f"is {planned_s:g} s, but nothing gives more than {most:g} s")


def _derive_bounds(facts: Facts, running: RunningSteps, paths: Paths) -> Iterator[float]:
    """Seconds of each bound there is, the cheapest to work out first."""
    if any(entry.what == "instance" for group in facts.plan.groups for entry in group.pruned):
        # instances are trimmed once a group is placed: the bound is of before
        running = RunningSteps.of(facts, narrowed=False)
        paths = Paths.of(facts, running)
    yield from _derive_from(facts, running, paths)
    # Steps that cannot share a group only for want of room are far apart in streaming alone.
    if all(step.mode == "streaming" for step in running.steps):
        yield from _derive_from(facts, running, Paths.of(facts, running, parted=True))


def _derive_from(facts: Facts, running: RunningSteps, paths: Paths) -> Iterator[float]:
    yield paths.longest_s
    yield _bound_by_cores(facts, running, paths)
    yield _bound_by_memory(facts, running, paths)
    yield _bound_by_crowd(running, paths)


def _measure_least_area(running: RunningSteps) -> float:
    """Seconds that all cores take for the steps; streams may hold theirs while their application starts."""
    rows = zip(running.steps, running.counts, running.seconds, strict=True)
    held = sum([step.cores * count * seconds for step, count, seconds in rows])
    return (0.0 if running.streams else running.start_s) + held / running.cores if running.cores and held else 0.0


def _bound_by_cores(facts: Facts, running: RunningSteps, paths: Paths) -> float:
    """Core-seconds between some head and some tail."""
    held = [step.cores * count for step, count in zip(running.steps, running.counts, strict=True)]
    return (
        _find_area(_list_rows(running, paths, held, running.cores), facts.plan.lower_bound_s) if running.cores else 0.0
    )


def _bound_by_memory(facts: Facts, running: RunningSteps, paths: Paths) -> float:
    """MiB-seconds likewise, where what runs holds memory of its own: on a core of its own, or as a stream."""
    total = sum(worker.free_memory_mb for worker in facts.cluster.workers)
    if not total or not (running.streams or all(step.cores == 1 for step in running.steps)):
        return 0.0
    default, padded = facts.settings.step_memory_mb, 1 + facts.settings.padding_fraction
    pairs = zip(running.steps, running.counts, strict=True)
    held = [(step.memory_mb or default) * padded * count for step, count in pairs]
    return _find_area(_list_rows(running, paths, held, total), facts.plan.lower_bound_s)


def _list_spans(running: RunningSteps, paths: Paths) -> Iterator[tuple[float, float, float]]:
    """Head, tail and seconds of an instance of each step; a stream holds its share from its application's start."""
    tails = paths.find_tails()
    for at, step in enumerate(running.steps):
        start = running.start_s if step.mode == "streaming" else 0.0
        node = paths.node[at]
        yield paths.head[node] - start, tails[node], running.seconds[at] + start


def _list_rows(running: RunningSteps, paths: Paths, held: Sequence[float], total: int) -> list[Row]:
    spans = zip(_list_spans(running, paths), held, strict=True)
    return [(head, tail, amount * seconds / total) for (head, tail, seconds), amount in spans]


def _find_area(rows: list[Row], enough: float) -> float:
    """The most of head + area + tail, or as much as is ``enough``: behind no tail, then behind each.

    Steps come in by falling tails; a tree over the heads keeps the most of head + area (Theta-tree, Vilim 2004).
    """
    rows = sorted(rows)
    areas = list(accumulate([area for _, _, area in reversed(rows)]))[::-1]
    best = max([head + area for (head, _, _), area in zip(rows, areas, strict=True)], default=0.0)
    best += min([tail for _, tail, _ in rows], default=0.0)
    if best >= enough:
        return best
    leaves = 1 << max(0, len(rows) - 1).bit_length()
    area, most = [0.0] * (2 * leaves), [-math.inf] * (2 * leaves)
    for leaf in sorted(range(len(rows)), key=lambda leaf: -rows[leaf][1]):
        head, tail, own = rows[leaf]
        at = leaves + leaf
        area[at], most[at] = own, head + own
        while at > 1:
            at //= 2
            area[at] = area[2 * at] + area[2 * at + 1]
            most[at] = max(most[2 * at + 1], most[2 * at] + area[2 * at + 1])
        best = max(best, tail + most[1])
    return best


def _bound_by_crowd(running: RunningSteps, paths: Paths) -> float:
    """Of ranges of heads and of tails, as much as all that is in them would give at their ends."""
    pieces = [step.cores * count for step, count in zip(running.steps, running.counts, strict=True)]
    spans = sorted(zip(_list_spans(running, paths), pieces, strict=True), key=lambda row: -row[0][2])
    looks = max(1, min(LOOKS, math.isqrt(LOOKED_AT // max(1, sum(pieces)))))
    best = 0.0
    for ahead, last_head in _split_into_ranges([span[0] for span, _ in spans], looks):
        for behind, last_tail in _split_into_ranges([span[1] for span, _ in spans], looks):
            longest = [span[2] for span, n in spans if span[0] >= ahead and span[1] >= behind for _ in range(n)]
            waves = _measure_waves(longest, running.cores) if running.cores else 0.0
            best = max(best, last_head + waves + last_tail if waves else 0.0)
    return best


def _split_into_ranges(values: Sequence[float], looks: int) -> list[tuple[float, float]]:
    """So many ranges of values that there are: the first and the last of each."""
    ordered = sorted(set(values))
    cuts = sorted({at * len(ordered) // looks for at in range(looks + 1)})
    return [(ordered[first], ordered[end - 1]) for first, end in pairwise(cuts)]


def _measure_waves(longest: Sequence[float], cores: int) -> float:
    """Seconds of some core, zero where there is no crowd; ``longest``: of instances on one core, by falling lengths."""
    sums = [0.0, *accumulate(longest)]
    waves = range(1, (len(longest) - 1) // cores + 1)
    return max([sums[k * cores + 1] - sums[k * cores - k] for k in waves], default=0.0)
