"""First fit decreasing: the largest item first, each into the first bin with room for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from airflow_dagsched.placement.packing.kinds import Bin, Kinds, Load

Measure = Callable[[Sequence[float]], float]
"""How large an item of these shares counts as."""
MEASURES: dict[str, Measure] = {"sum": sum, "product": math.prod, "max": max}


def first_fit(kinds: Kinds, load: Load, rooms: Iterator[int], measure: Measure) -> list[Bin]:
    """Bins opened from ``rooms`` as needed; what fits into none of them stays in ``load``."""
    bins: list[Bin] = []
    free: list[int] = []
    for kind in decreasing(kinds, load, measure):
        start = 0
        while load[kind]:
            at = _first(kinds, kind, free, start)
            if at is None:
                room = next(rooms, None)
                if room is None:
                    break
                start = len(free)  # equal items: none of the bins before has room for the next one either
                bins.append([])
                free.append(room)
            else:
                start = at
                free[at] -= kinds.packed[kind]
                bins[at].append(kind)
                load[kind] -= 1
    return bins


def _first(kinds: Kinds, kind: int, free: Sequence[int], start: int) -> int | None:
    guard = kinds.fields.guard
    need = kinds.packed[kind] - guard
    return next((at for at in range(start, len(free)) if (free[at] - need) & guard == guard), None)


def decreasing(kinds: Kinds, load: Load, measure: Measure) -> list[int]:
    """The kinds of the load, largest first; ties by size."""
    return sorted(load, key=lambda kind: (-measure(kinds.shares[kind]), kind))
