"""Exhaustive search for a packing into given bins, for the few items where a heuristic may miss it."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_dagsched.placement.packing.first_fit import MEASURES, decreasing
from airflow_dagsched.placement.packing.kinds import Bin, Kinds

TRIES = 20_000
"""Places tried before the search gives up: eight items in three bins are always decided."""
SEARCHED = 30
"""Among more items than so many it would find nothing in time: whoever has more should not ask."""


def search(kinds: Kinds, rooms: Sequence[int], tries: int = TRIES) -> list[Bin] | None:
    """Bins aligned with ``rooms`` that hold all items; None if there are none, or none was found in time.

    Depth first, largest items first. Of bins with equal room left only the first is tried, and of equal items
    none goes before the one placed ahead of it: the rest would be the same packing again.
    """
    order = [k for k in decreasing(kinds, kinds.load(), MEASURES["sum"]) for _ in kinds.items[k]]
    guard = kinds.fields.guard
    free = [room + guard for room in rooms]
    placed: list[int] = []
    at = 0
    while len(placed) < len(order):
        if not tries:
            return None
        tries -= 1
        need = kinds.packed[order[len(placed)]]
        at = _next(free, need, guard, at)
        if at < len(free):
            free[at] -= need
            placed.append(at)
            at = at if _same(order, len(placed)) else 0
        elif placed:
            at = placed.pop()
            free[at] += kinds.packed[order[len(placed)]]
            at += 1
        else:
            return None
    return [[kind for kind, box in zip(order, placed, strict=True) if box == at] for at in range(len(rooms))]


def _next(free: Sequence[int], need: int, guard: int, start: int) -> int:
    """The first bin from ``start`` with room for ``need`` and with another room than all before it."""
    return next(
        (at for at in range(start, len(free)) if (free[at] - need) & guard == guard and free[at] not in free[:at]),
        len(free),
    )


def _same(order: Sequence[int], at: int) -> bool:
    return at < len(order) and order[at] == order[at - 1]
