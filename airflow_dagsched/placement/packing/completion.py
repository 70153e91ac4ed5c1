"""Bin completion: the largest item left opens a bin, the set of others that fills it best completes it.

    open      |■■■■      |
    complete  |■■■■ ▪▪▪ ▪▪|   out of a sample of what fits, by a depth-first search that gives up after
                              so many sets; heaviest items first, so that small ones are kept for later

After Gent, "Heuristic solution of open bin packing problems" (1998) and Korf, "A new algorithm for optimal bin
packing" (2002), for one dimension; here a set is as good as it is heavy.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from operator import mul

from msgspec import Struct

from airflow_dagsched.placement.packing.kinds import Bin, Kinds, Load, asked, share_of

FULL = 0.9995
"""A bin whose items weigh so much of all they could weigh is full enough: the search ends."""


class Effort(Struct, frozen=True):
    """How much work a packing may take. Counts, not seconds: equal inputs give equal bins on every machine."""

    candidates: int = 60
    """Kinds that may complete a bin: a sample of those that fit."""
    sets: int = 2000
    """Sets of items looked at to complete a bin."""
    rounds: int = 60
    """Attempts to make some bins fewer."""
    ways: int = 4
    """Ways to pack that are tried before that, this one first."""


class _Work(Struct, frozen=True):
    """What is left to pack: ``load`` and ``demand``, in bins' worth of each dimension, shrink as bins are filled."""

    kinds: Kinds
    load: Load
    demand: list[float]
    effort: Effort
    rng: random.Random

    def fitting(self, left: Sequence[int], room: int) -> list[int]:
        guard, packed, load = self.kinds.fields.guard, self.kinds.packed, self.load
        room += guard
        return [kind for kind in left if load[kind] and (room - packed[kind]) & guard == guard]

    def take(self, taken: Bin) -> int:
        """Take items off; returns their size."""
        for kind in taken:
            self.load[kind] -= 1
            for at, share in enumerate(self.kinds.shares[kind]):
                self.demand[at] -= share
        return sum(self.kinds.packed[kind] for kind in taken)

    def sample(self, fitting: list[int]) -> list[int]:
        most = self.effort.candidates
        return fitting if len(fitting) <= most else self.rng.sample(fitting, most)


def complete(
    kinds: Kinds, load: Load, rooms: Iterator[int], order: Sequence[int], effort: Effort, rng: random.Random
) -> list[Bin]:
    """Bins opened from ``rooms`` for the kinds in ``order``; what fits into none of them stays in ``load``."""
    work = _Work(kinds, load, asked(kinds, load), effort, rng)
    bins: list[Bin] = []
    left = [kind for kind in order if load[kind]]
    while left:
        room = next(rooms, None)
        if room is None:
            break
        bins.append(_filled(work, left, room))
        left = [kind for kind in left if load[kind]]
    return bins


def _filled(work: _Work, left: Sequence[int], room: int) -> Bin:
    """One bin. A sample may miss what still fits beside the best of it: then there is another."""
    box: Bin = []
    chosen = work.fitting(left, room)[:1]
    while chosen:
        room -= work.take(chosen)
        box += chosen
        chosen = _best(work, work.sample(work.fitting(left, room)), room)
    return box


def _best(work: _Work, candidates: Sequence[int], room: int) -> Bin:
    """The heaviest set found. The scarcer a dimension, the more it weighs."""
    kinds, scarcest = work.kinds, max(work.demand)
    factors = [total / scarcest if scarcest > 0 else 0.0 for total in work.demand]
    weighed = sorted((-sum(map(mul, factors, kinds.shares[kind])), kind) for kind in candidates)
    choice = _Choice(
        packed=[kinds.packed[kind] for _, kind in weighed],
        weights=[-weight for weight, _ in weighed],
        counts=[work.load[kind] for _, kind in weighed],
    )
    full = sum(map(mul, factors, share_of(kinds.fields.size(room), kinds.most)))
    return [weighed[at][1] for at in _heaviest(choice, room, kinds.fields.guard, FULL * full, work.effort.sets)]


class _Choice(Struct, frozen=True):
    """What may complete a bin, heaviest first: size, weight and how many there are."""

    packed: Sequence[int]
    weights: Sequence[float]
    counts: Sequence[int]


def _heaviest(choice: _Choice, room: int, guard: int, full: float, sets: int) -> list[int]:
    """The heaviest of the first ``sets`` sets that leave room for no other: positions in ``choice``."""
    packed, weights, counts = choice.packed, choice.weights, list(choice.counts)
    room += guard
    best: list[int] = []
    chosen: list[int] = []
    best_weight, weight, at = -1.0, 0.0, 0
    while sets:
        while at < len(packed) and not (counts[at] and (room - packed[at]) & guard == guard):
            at += 1
        if at < len(packed):
            chosen.append(at)
            counts[at] -= 1
            room -= packed[at]
            weight += weights[at]
            continue
        sets -= 1
        if weight > best_weight:
            best, best_weight = chosen.copy(), weight
        if not chosen or best_weight >= full:
            break
        at = chosen.pop()
        counts[at] += 1
        room += packed[at]
        weight -= weights[at]
        at += 1
    return best
