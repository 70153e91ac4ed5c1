"""Bin-centric packing: open a bin, take the item that suits what is left of it best, until none has room.

Panigrahy, Talwar, Uyeda and Wieder, "Heuristics for vector bin packing" (2011). Dimensions count by how much of
them is still asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from airflow_dagsched.placement.packing.kinds import Bin, Kinds, Load, asked, share_of

Score = Callable[[Sequence[float], Sequence[float], Sequence[float]], float]
"""How well an item suits: of importance, free share and the item's share of each dimension."""


def dot_product(importance: Sequence[float], free: Sequence[float], share: Sequence[float]) -> float:
    """An item that needs much of what the bin has much of suits well."""
    return sum(a * f * s for a, f, s in zip(importance, free, share, strict=True))


def l2_norm(importance: Sequence[float], free: Sequence[float], share: Sequence[float]) -> float:
    """An item that leaves little, and that evenly, suits well."""
    return -sum(a * (f - s) ** 2 for a, f, s in zip(importance, free, share, strict=True))


SCORES: dict[str, Score] = {"dot product": dot_product, "L2": l2_norm}


def bin_centric(kinds: Kinds, load: Load, rooms: Iterator[int], score: Score) -> list[Bin]:
    """Bins opened from ``rooms`` one after another; what fits into none of them stays in ``load``."""
    bins: list[Bin] = []
    while any(load.values()):
        room = next(rooms, None)
        if room is None:
            break
        bins.append(_filled(kinds, load, room, score))
    return bins


def _filled(kinds: Kinds, load: Load, room: int, score: Score) -> Bin:
    """One bin; its items are taken off the load."""
    guard, packed, shares = kinds.fields.guard, kinds.packed, kinds.shares
    importance = asked(kinds, load)
    left = [kind for kind, count in load.items() if count]
    box: Bin = []
    while left := [kind for kind in left if load[kind] and (room + guard - packed[kind]) & guard == guard]:
        free = share_of(kinds.fields.size(room), kinds.most)
        best = max(left, key=lambda kind: (score(importance, free, shares[kind]), -kind))
        room -= packed[best]
        load[best] -= 1
        box.append(best)
    return box
