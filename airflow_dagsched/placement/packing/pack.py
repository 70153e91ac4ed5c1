"""Items into as few equal bins as can be found: the best of several ways, then improved."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, repeat

from msgspec import Struct

from airflow_dagsched.placement.packing.bound import bins_bound
from airflow_dagsched.placement.packing.completion import Effort
from airflow_dagsched.placement.packing.crowded import with_crowded
from airflow_dagsched.placement.packing.improve import improved
from airflow_dagsched.placement.packing.kinds import Bin, Kinds, Size, kinds_of, share_of
from airflow_dagsched.placement.packing.refusal import refuse_alone, refuse_invalid
from airflow_dagsched.placement.packing.search import SEARCHED, search
from airflow_dagsched.placement.packing.ways import ways

NORMAL = Effort()
QUICK = Effort(candidates=16, sets=100, rounds=0, ways=1)
"""For many thousand items of different sizes."""
PART = 1000
"""Items of more kinds than so many are packed in parts of about so many items."""
LOOSE = 2
"""So many bins of each part are packed anew."""


class Packing(Struct, frozen=True):
    """The items of each bin, by position among the sizes given, rising; and what no packing can be below."""

    bins: tuple[tuple[int, ...], ...]
    bound: int


def pack(sizes: Sequence[Size], room: Size, effort: Effort = NORMAL) -> Packing:
    """All items into bins of ``room`` (integers per dimension, any units), as few as can be found.

    Items of equal sizes given in another order are packed alike: the bins hold the same sizes.
    Raises ``DoesNotFit`` for an item larger than a bin, ``InvalidInput`` for sizes that are no sizes.
    """
    refuse_invalid(sizes, [room])
    refuse_alone(sizes, [room])
    kinds = kinds_of(sizes, [room])
    bound = bins_bound(kinds)
    if len(kinds.sizes) > PART:
        return Packing(_in_parts(sizes, room, effort), bound)
    return Packing(kinds.dealt(_few_bins(kinds, bound, effort)), bound)


def _few_bins(kinds: Kinds, bound: int, effort: Effort) -> list[Bin]:
    room = kinds.fields.packed(kinds.most)
    best: list[Bin] = []
    for way in islice(ways(effort).values(), effort.ways):
        found = way(kinds, kinds.load(), repeat(room))
        if not best or len(found) < len(best):
            best = found
        if len(best) <= bound:
            return best
    if effort.rounds:
        best = improved(kinds, with_crowded(kinds, best, room, effort), room, bound, effort)
    return _searched(kinds, best, room, bound)


def _searched(kinds: Kinds, bins: list[Bin], room: int, bound: int) -> list[Bin]:
    """Few items are searched through for a packing with one bin less, again and again."""
    if sum(map(len, bins)) > SEARCHED:
        return bins
    while len(bins) > bound:
        fewer = search(kinds, [room] * (len(bins) - 1))
        if fewer is None:
            break
        bins = fewer
    return bins


def _in_parts(sizes: Sequence[Size], room: Size, effort: Effort) -> tuple[tuple[int, ...], ...]:
    """Every part has its share of small and large items; the lightest bins of all parts are packed anew together."""
    order = sorted(range(len(sizes)), key=lambda item: (sizes[item], item))
    parts = -(-len(order) // PART)
    full: list[tuple[int, ...]] = []
    loose: list[int] = []
    for first in range(parts):
        found = _packed(order[first::parts], sizes, room, effort)
        found.sort(key=lambda box: (sum(sum(share_of(sizes[item], room)) for item in box), box))
        full += found[LOOSE:]
        loose += [item for box in found[:LOOSE] for item in box]
    return (*full, *_packed(sorted(loose), sizes, room, effort))


def _packed(items: Sequence[int], sizes: Sequence[Size], room: Size, effort: Effort) -> list[tuple[int, ...]]:
    made = pack([sizes[item] for item in items], room, effort)
    return [tuple(items[at] for at in box) for box in made.bins]
