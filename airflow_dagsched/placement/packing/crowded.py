"""Bins that hold one item more than most do: where most hold one or two, each of these is worth a search.

::

    most   |■■■■ ■■■■  |        a few        |■■■■ ▪▪▪ ▪▪|      as many sets as can be that share no item;
           |■■■ ■■■■■  |                     |■■■ ▪▪▪ ▪▪▪|      the rest is packed as ever

The sets are few there: of two lighter items and the heaviest that fit beside them, some. They are taken one after
another, that first whose items are in the fewest others (the least degree first: Halldorsson and Radhakrishnan, "Greed
is good", 1997, for independent sets), since it is in the way of the fewest.
"""

from __future__ import annotations

import heapq
import random
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import islice, repeat
from operator import and_, sub

from msgspec import Struct

from airflow_dagsched.placement.packing.completion import Effort, complete
from airflow_dagsched.placement.packing.first_fit import decreasing
from airflow_dagsched.placement.packing.kinds import Bin, Kinds, Size

LARGEST = 3
"""Items in a set; sets of more are too many."""
MOST = 2000
"""Items; of each it is known which others are smaller."""
SETS = 60
"""Looked at, for each item; of more, those with fewer partners, and then those of the lightest items only."""
PARTNERS = (16, 4, 1)
"""The heaviest items that complete a set, so many of them, one set each."""
ROUNDING = 1e-9
"""Of weights: what fills a bin exactly is not lost. Whether a set fits is told by its integers."""

Chosen = tuple[int, ...]
"""Items of a set, by position among those in rising order of weight."""


class _Smaller(Struct, frozen=True):
    """In one dimension: which items are no larger than a value, a bit for each item."""

    values: Sequence[int]
    masks: Sequence[int]

    @classmethod
    def of(cls, values: Sequence[int]) -> _Smaller:
        order = sorted(range(len(values)), key=values.__getitem__)
        masks = [0]
        for at in order:
            masks.append(masks[-1] | 1 << at)
        return cls([values[at] for at in order], masks)

    def than(self, most: int) -> int:
        return self.masks[bisect_right(self.values, most)]


class Items(Struct, frozen=True):
    """All items in rising order of weight."""

    sizes: Sequence[Size]
    weights: Sequence[float]
    smaller: Sequence[_Smaller]
    limit: float
    """What all items in a bin weigh at most."""

    @classmethod
    def of(cls, kinds: Kinds, order: Sequence[int]) -> Items:
        """Items of the kinds in ``order``, which is one of rising weight."""
        sizes = [kinds.sizes[kind] for kind in order]
        weights = [sum(kinds.shares[kind]) for kind in order]
        smaller = [_Smaller.of(values) for values in zip(*sizes, strict=True)]
        return cls(sizes, weights, smaller, len(kinds.most) + ROUNDING)

    def fitting(self, room: Size) -> int:
        """A bit for each item that fits."""
        return reduce(and_, (smaller.than(most) for smaller, most in zip(self.smaller, room, strict=True)))


def with_crowded(kinds: Kinds, bins: Sequence[Bin], room: int, effort: Effort) -> list[Bin]:
    """``bins``, or fewer of ``room`` if there are enough that hold one item more than these on average."""
    load = kinds.load()
    total = sum(load.values())
    count = total // len(bins) + 1
    if count > LARGEST or total > MOST:
        return list(bins)
    found = _crowded(kinds, count)
    for kind in (kind for box in found for kind in box):
        load[kind] -= 1
    found += complete(kinds, load, repeat(room), decreasing(kinds, load, sum), effort, random.Random(0))
    return min(list(bins), found, key=len)


def _crowded(kinds: Kinds, count: int) -> list[Bin]:
    """Bins of ``count`` items each."""
    of = [kind for kind in decreasing(kinds, kinds.load(), sum)[::-1] for _ in kinds.items[kind]]
    items = Items.of(kinds, of)
    enough = SETS * len(of)
    for partners in PARTNERS:
        sets = list(islice(sets_of(items, (), kinds.most, count, partners), enough))
        if len(sets) < enough:
            break
    return [[of[at] for at in chosen] for chosen in _apart(sets, len(of))]


def sets_of(items: Items, chosen: Chosen, room: Size, missing: int, partners: int) -> Iterator[Chosen]:
    """``chosen``, which leaves ``room``, with so many heavier items that are ``missing``, ``partners`` for the last."""
    start = chosen[-1] + 1 if chosen else 0
    if missing == 1:
        yield from ((*chosen, at) for at in _last(items.fitting(room) >> start, start, partners))
        return
    spare = items.limit - sum(items.weights[at] for at in chosen)
    for at in range(start, len(items.sizes)):
        if missing * items.weights[at] > spare:
            break
        left = tuple(map(sub, room, items.sizes[at]))
        if min(left) >= 0:
            yield from sets_of(items, (*chosen, at), left, missing - 1, partners)


def _last(mask: int, start: int, count: int) -> Iterator[int]:
    """So many of the last bits of a mask, counted from ``start``."""
    for _ in range(count):
        if not mask:
            break
        at = mask.bit_length() - 1
        mask ^= 1 << at
        yield start + at


def _apart(sets: Sequence[Chosen], count: int) -> list[Chosen]:
    """Sets that share none of ``count`` items, the least in the way of others first."""
    having: list[list[int]] = [[] for _ in range(count)]
    for number, chosen in enumerate(sets):
        for at in chosen:
            having[at].append(number)
    degrees = [len(numbers) for numbers in having]
    heap = [(sum(degrees[at] for at in chosen), number) for number, chosen in enumerate(sets)]
    heapq.heapify(heap)
    gone = bytearray(len(sets))
    found = []
    while heap:
        degree, number = heapq.heappop(heap)
        if gone[number]:
            continue
        now = sum(degrees[at] for at in sets[number])
        if now < degree:
            heapq.heappush(heap, (now, number))
            continue
        found.append(sets[number])
        _drop(sets, having, sets[number], degrees, gone)
    return found


def _drop(
    sets: Sequence[Chosen], having: Sequence[Sequence[int]], chosen: Chosen, degrees: list[int], gone: bytearray
) -> None:
    """All sets with an item that is ``chosen``."""
    for number in (number for at in chosen for number in having[at]):
        if not gone[number]:
            gone[number] = 1
            for at in sets[number]:
                degrees[at] -= 1
