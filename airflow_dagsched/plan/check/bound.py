"""The lower bound is what its reason can give, and no lower than the simplest bounds there are: all worked out here.

*Path.* The longest path of steps and ordinary tasks; see ``paths``.

*Area.* What starts no earlier than some ``head`` and has some ``tail`` behind it has to find room between the two:
core-seconds on all cores, or padded memory for as long as it is held in all memory.

    ├── head ──┤▒▒▒▒▒▒▒▒ area / room ▒▒▒▒▒▒▒▒├── tail ──┤

*Crowd.* Of ``k * cores + 1`` instances some core has ``k + 1``, between a head and a tail likewise.

What the exact mode has proved would take the exact mode again: that it is no higher than the makespan is all that can
be said of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise

from airflow_dagsched.plan.check.facts import TOLERANCE_S, Facts, Violation
from airflow_dagsched.plan.check.paths import Paths, Work

LOOKS = 8
"""Different heads, and tails, between which a crowd is looked at exactly; of more, some."""
LOOKED_AT = 20_000
"""Instances, each on one core, over which those looks go together."""
Row = tuple[float, float, float]
"""Head, tail, and what is held times seconds, as a share of all there is."""


def check_bound(facts: Facts) -> Iterator[Violation]:
    """Part-way through a run the bound is that of what is left, from a moment on that the plan does not say."""
    plan = facts.plan
    if plan.lower_bound_s and not plan.lower_bound_reason:
        yield Violation("reason", "lower_bound_s", "says nothing")
    if facts.part_way or not _is_partition(facts):
        return
    work = Work.of(facts, narrowed=True)
    paths = Paths.of(facts, work)
    for what, found in (("path", paths.longest_s), ("core-seconds", _least_area(work))):
        least = min(found, plan.makespan_s)
        if plan.lower_bound_s < least - _tolerance(least):
            yield Violation("times", "lower_bound_s", f"is {plan.lower_bound_s:g} s, but the {what} take {found:g} s")
    if any(one.what == "instance" for group in plan.groups for one in group.pruned):  # once it was known
        work = Work.of(facts, narrowed=False)
        paths = Paths.of(facts, work)
    yield from _overstated(facts, work, paths)


def _is_partition(facts: Facts) -> bool:
    """Whether every step is in one group: else there is nothing to work out."""
    placed = [name for group in facts.plan.groups for name in group.steps]
    return len(placed) == len(facts.steps) and facts.steps.keys() == set(placed)


def _tolerance(seconds: float) -> float:
    return TOLERANCE_S + 1e-9 * seconds


def _overstated(facts: Facts, work: Work, paths: Paths) -> Iterator[Violation]:
    """Whether the bound is more than its reason gives."""
    told, reason = facts.plan.lower_bound_s, facts.plan.lower_bound_reason
    most = next((most for begins, most in GIVEN if reason.startswith(begins)), None)
    if most is not None:
        found = most(facts, work, paths)
        if told > found + _tolerance(found) and all(step.mode == "streaming" for step in work.steps):
            found = most(facts, work, Paths.of(facts, work, parted=True))
        if told > found + _tolerance(found):
            yield Violation("times", "lower_bound_s", f"is {told:g} s, but by its reason {found:g} s: {reason}")


def _least_area(work: Work) -> float:
    """What streams may hold its cores while its application starts."""
    rows = zip(work.steps, work.counts, work.seconds, strict=True)
    held = sum([step.cores * count * seconds for step, count, seconds in rows])
    return (0.0 if work.streams else work.start_s) + held / work.cores if work.cores and held else 0.0


def _by_path(facts: Facts, work: Work, paths: Paths) -> float:
    return paths.longest_s


def _by_cores(facts: Facts, work: Work, paths: Paths) -> float:
    """Core-seconds between some head and some tail."""
    held = [step.cores * count for step, count in zip(work.steps, work.counts, strict=True)]
    return _area(_rows(work, paths, held, work.cores), facts.plan.lower_bound_s) if work.cores else 0.0


def _by_memory(facts: Facts, work: Work, paths: Paths) -> float:
    """MiB-seconds likewise, where what runs holds memory of its own: on a core of its own, or as a stream."""
    room = sum(worker.free_memory_mb for worker in facts.cluster.workers)
    if not room or not (work.streams or all(step.cores == 1 for step in work.steps)):
        return 0.0
    default, padded = facts.settings.step_memory_mb, 1 + facts.settings.padding_fraction
    pairs = zip(work.steps, work.counts, strict=True)
    held = [(step.memory_mb or default) * padded * count for step, count in pairs]
    return _area(_rows(work, paths, held, room), facts.plan.lower_bound_s)


def _spans(work: Work, paths: Paths) -> Iterator[tuple[float, float, float]]:
    """Head, tail and seconds of an instance of each step; what streams holds its share from its application's start."""
    tails = paths.tails()
    for at, step in enumerate(work.steps):
        start = work.start_s if step.mode == "streaming" else 0.0
        node = paths.node[at]
        yield paths.head[node] - start, tails[node], work.seconds[at] + start


def _rows(work: Work, paths: Paths, held: Sequence[float], room: int) -> list[Row]:
    spans = zip(_spans(work, paths), held, strict=True)
    return [(head, tail, amount * seconds / room) for (head, tail, seconds), amount in spans]


def _area(rows: list[Row], enough: float) -> float:
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


def _by_crowd(facts: Facts, work: Work, paths: Paths) -> float:
    """Of ranges of heads and of tails, as much as all that is in them would give at their ends."""
    pieces = [step.cores * count for step, count in zip(work.steps, work.counts, strict=True)]
    spans = sorted(zip(_spans(work, paths), pieces, strict=True), key=lambda one: -one[0][2])
    looks = max(1, min(LOOKS, math.isqrt(LOOKED_AT // max(1, sum(pieces)))))
    found = 0.0
    for ahead, last_head in _spread([span[0] for span, _ in spans], looks):
        for behind, last_tail in _spread([span[1] for span, _ in spans], looks):
            longest = [span[2] for span, n in spans if span[0] >= ahead and span[1] >= behind for _ in range(n)]
            waves = _waves(longest, work.cores) if work.cores else 0.0
            found = max(found, last_head + waves + last_tail if waves else 0.0)
    return found


def _spread(values: Sequence[float], looks: int) -> list[tuple[float, float]]:
    """So many ranges of values that there are: the first and the last of each."""
    ordered = sorted(set(values))
    cuts = sorted({at * len(ordered) // looks for at in range(looks + 1)})
    return [(ordered[first], ordered[end - 1]) for first, end in pairwise(cuts)]


def _waves(longest: Sequence[float], cores: int) -> float:
    """Seconds of some core, zero where there is no crowd; ``longest``: of instances on one core, by falling lengths."""
    sums = [0.0, *accumulate(longest)]
    waves = range(1, (len(longest) - 1) // cores + 1)
    return max([sums[k * cores + 1] - sums[k * cores - k] for k in waves], default=0.0)


GIVEN: tuple[tuple[str, Callable[[Facts, Work, Paths], float]], ...] = (
    ("the longest path is", _by_path),
    ("the steps need their memory", _by_memory),
    ("the steps need", _by_cores),
    ("the longest steps are more", _by_crowd),
)
"""How a reason begins, and the most that a bound for this reason can be."""
