"""Bin completion: the largest item still to be packed opens a bin, the set of others that fills it best completes it.

    open      |■■■■      |
    complete  |■■■■ ▪▪▪ ▪▪|   out of a sample of what fits, by a depth-first search that gives up after
                              so many sets; heaviest items first, so that small ones are kept for later

After Gent, "Heuristic solution of open bin packing problems" (1998) and Korf, "A new algorithm for optimal bin
packing" (2002), for one dimension; here a set is as good as it is heavy.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from operator import mul

from msgspec import Struct

from airflow_dagsched.placement.containers.packing.item_kinds import (
    Bin,
    ItemKinds,
    Load,
    Size,
    divide_size,
    group_by_size,
)

# Counts of work, not seconds: equal inputs give equal bins on every machine.
CANDIDATES = 16
"""Kinds that may complete a bin: a sample of those that fit."""
MAX_SETS = 100
"""Sets of items looked at to complete a bin."""
FULL = 0.9995
"""A bin whose items weigh so much of all they could weigh is full enough: the search ends."""


def pack_into(sizes: Sequence[Size], bins: Sequence[Size]) -> tuple[tuple[int, ...], ...] | None:
    """The items of each bin, by position among ``sizes``, the first bins filled first; None: no way was found."""
    # Cheap, where the search would fill every bin before it gave up.
    if any(sum(need) > sum(has) for need, has in zip(zip(*sizes, strict=True), zip(*bins, strict=True), strict=False)):
        return None
    kinds = group_by_size(sizes, bins)
    # Seeded: equal sizes give equal bins in every process.
    remaining = _Remaining(kinds, kinds.count_load(), _sum_shares(kinds), random.Random(0))
    order, filled = kinds.order_by_share(), list[Bin]()
    for free in bins:
        filled.append(_fill_bin(remaining, order, kinds.fields.pack_size(free)))
        order = [kind for kind in order if remaining.load[kind]]
    return None if order else kinds.deal_items(filled)


def _sum_shares(kinds: ItemKinds) -> list[float]:
    """How many bins' worth of each dimension all items ask for."""
    total = [0.0] * len(kinds.largest)
    for kind, count in kinds.count_load().items():
        for at, share in enumerate(kinds.shares[kind]):
            total[at] += share * count
    return total


class _Remaining(Struct, frozen=True):
    """What is still to be packed; ``load``, and ``demand`` in bins' worth, shrink as bins are filled."""

    kinds: ItemKinds
    load: Load
    demand: list[float]
    rng: random.Random

    def select_fitting(self, order: Sequence[int], free: int) -> list[int]:
        # One subtraction compares all dimensions: see ``SizeFields``.
        guard, packed, load = self.kinds.fields.guard, self.kinds.packed, self.load
        free += guard
        return [kind for kind in order if load[kind] and (free - packed[kind]) & guard == guard]

    def take_items(self, taken: Bin) -> int:
        """Take items off; returns their size, packed."""
        for kind in taken:
            self.load[kind] -= 1
            for at, share in enumerate(self.kinds.shares[kind]):
                self.demand[at] -= share
        return sum(self.kinds.packed[kind] for kind in taken)

    def sample_kinds(self, fitting: list[int]) -> list[int]:
        return fitting if len(fitting) <= CANDIDATES else self.rng.sample(fitting, CANDIDATES)


def _fill_bin(remaining: _Remaining, order: Sequence[int], free: int) -> Bin:
    """One bin. A sample may miss what still fits beside the best of it: then there is another."""
    held: Bin = []
    # The largest has the fewest bins to go to, so others are fitted round it (Korf 2002).
    chosen = remaining.select_fitting(order, free)[:1]
    while chosen:
        free -= remaining.take_items(chosen)
        held += chosen
        chosen = _choose_set(remaining, remaining.sample_kinds(remaining.select_fitting(order, free)), free)
    return held


def _choose_set(remaining: _Remaining, candidates: Sequence[int], free: int) -> Bin:
    """The heaviest set of items that completes the bin. The scarcer a dimension, the more it weighs."""
    kinds, scarcest = remaining.kinds, max(remaining.demand)
    # The scarcest dimension decides how many bins it takes; gaps in the others cost nothing.
    factors = [total / scarcest if scarcest > 0 else 0.0 for total in remaining.demand]
    weighed = sorted((-sum(map(mul, factors, kinds.shares[kind])), kind) for kind in candidates)
    choice = _Choice(
        packed=[kinds.packed[kind] for _, kind in weighed],
        weights=[-weight for weight, _ in weighed],
        counts=[remaining.load[kind] for _, kind in weighed],
    )
    full = FULL * sum(map(mul, factors, divide_size(kinds.fields.unpack_size(free), kinds.largest)))
    return [weighed[at][1] for at in _find_heaviest_set(choice, free, kinds.fields.guard, full)]


class _Choice(Struct, frozen=True):
    """What may complete a bin, heaviest first: size, weight and how many there are."""

    packed: Sequence[int]
    weights: Sequence[float]
    counts: Sequence[int]


def _find_heaviest_set(choice: _Choice, free: int, guard: int, full: float) -> list[int]:
    """The heaviest of the first ``MAX_SETS`` sets beside which no other item fits: positions in ``choice``."""
    packed, weights, counts = choice.packed, choice.weights, list(choice.counts)
    free += guard
    best: list[int] = []
    chosen: list[int] = []
    best_weight, weight, at, sets = -1.0, 0.0, 0, MAX_SETS
    while sets:
        while at < len(packed) and not (counts[at] and (free - packed[at]) & guard == guard):
            at += 1
        if at < len(packed):
            chosen.append(at)
            counts[at] -= 1
            free -= packed[at]
            weight += weights[at]
            continue
        # Counted at sets beside which nothing fits: what leads there costs little.
        sets -= 1
        if weight > best_weight:
            best, best_weight = chosen.copy(), weight
        if not chosen or best_weight >= full:
            break
        # Back by one, and on from the next kind: so no set comes twice.
        at = chosen.pop()
        counts[at] += 1
        free += packed[at]
        weight -= weights[at]
        at += 1
    return best
