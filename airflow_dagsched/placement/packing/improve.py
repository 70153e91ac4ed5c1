"""Fewer bins by emptying some and packing their items anew: the lightest bins, and others at random beside them.

    |■■■ |  |▪▪   |  |■■ ▪|        |■■■ ▪|  |■■ ▪▪|        a round is kept if it needs fewer bins, or as many
     lightest    at random          packed anew            with the items drawn together in the fuller ones

A large neighbourhood search (Shaw 1998; as "ruin and recreate", Schrimpf et al. 2000).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from itertools import repeat
from operator import mul

from airflow_dagsched.placement.packing.completion import Effort, complete
from airflow_dagsched.placement.packing.first_fit import MEASURES, decreasing
from airflow_dagsched.placement.packing.kinds import Bin, Kinds, asked

SHARE = 0.1
"""So many of the bins are emptied in a round, half of them the lightest."""
LEAST, MOST = 3, 60
"""And never fewer or more: what a round costs does not grow with the number of bins."""


def improved(kinds: Kinds, bins: Sequence[Bin], room: int, bound: int, effort: Effort) -> list[Bin]:
    """At most as many bins of ``room``; ends early at ``bound``, which no packing can be below."""
    rng = random.Random(0)
    demand = asked(kinds, kinds.load())
    weight = [sum(map(mul, demand, shares)) for shares in kinds.shares]
    found = list(bins)
    for _ in range(effort.rounds):
        if len(found) <= bound:
            break
        found.sort(key=lambda box: (sum(weight[kind] for kind in box), sorted(box)))
        found = _round(kinds, found, room, weight, effort, rng)
    return found


def _round(
    kinds: Kinds, bins: Sequence[Bin], room: int, weight: Sequence[float], effort: Effort, rng: random.Random
) -> list[Bin]:
    """``bins`` come lightest first."""
    count = min(len(bins), MOST, max(LEAST, round(len(bins) * SHARE)))
    light = (count + 1) // 2
    emptied = {*range(light), *rng.sample(range(light, len(bins)), count - light)}
    old = [bins[at] for at in sorted(emptied)]
    load = Counter(kind for box in old for kind in box)
    order = decreasing(kinds, load, MEASURES[rng.choice(sorted(MEASURES))])
    new = complete(kinds, load, repeat(room), order, effort, rng)
    if _rank(new, weight) > _rank(old, weight):
        return list(bins)
    return [box for at, box in enumerate(bins) if at not in emptied] + new


def _rank(bins: Sequence[Bin], weight: Sequence[float]) -> tuple[int, float]:
    """Few bins are best; then uneven ones (Falkenauer's measure), whose lightest are soon empty."""
    return len(bins), -sum(sum(weight[kind] for kind in box) ** 2 for box in bins)
