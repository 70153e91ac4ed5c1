"""Items into bins that are given, the first ones first."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.placement.packing.completion import Effort
from airflow_dagsched.placement.packing.first_fit import decreasing
from airflow_dagsched.placement.packing.kinds import Bin, Kinds, Load, Size, kinds_of
from airflow_dagsched.placement.packing.pack import NORMAL
from airflow_dagsched.placement.packing.refusal import refuse_alone, refuse_invalid, refuse_total, shortage
from airflow_dagsched.placement.packing.search import SEARCHED, search
from airflow_dagsched.placement.packing.ways import ways


def pack_into(sizes: Sequence[Size], rooms: Sequence[Size], effort: Effort = NORMAL) -> tuple[tuple[int, ...], ...]:
    """The items in each of ``rooms``, by position among ``sizes``; later rooms are used where the first are full.

    Raises ``InvalidInput`` for sizes that are no sizes, and ``DoesNotFit`` with what is short: an item that fits
    nowhere alone, all items together, or, where no way to pack them was found, the largest one left over. So few
    items as the search takes are refused only when it found none, or ended at its budget.
    """
    refuse_invalid(sizes, rooms)
    refuse_alone(sizes, rooms)
    refuse_total(sizes, rooms)
    if not sizes:
        return ((),) * len(rooms)
    kinds = kinds_of(sizes, rooms)
    dealt = kinds.dealt(_bins(kinds, [kinds.fields.packed(room) for room in rooms], effort))
    return dealt + ((),) * (len(rooms) - len(dealt))


def _bins(kinds: Kinds, rooms: Sequence[int], effort: Effort) -> list[Bin]:
    refusal = None
    for way in ways(effort).values():
        load = kinds.load()
        bins = way(kinds, load, iter(rooms))
        if not any(load.values()):
            return bins
        refusal = refusal or _left_over(kinds, load, bins, rooms)
    found = search(kinds, rooms) if sum(map(len, kinds.items)) <= SEARCHED else None
    if found is None and refusal:
        raise refusal
    return found or []


def _left_over(kinds: Kinds, load: Load, bins: Sequence[Bin], rooms: Sequence[int]) -> DoesNotFit:
    """The largest item left, and the room that the others leave."""
    kind = next(kind for kind in decreasing(kinds, load, sum) if load[kind])
    free = [room - sum(kinds.packed[one] for one in box) for room, box in zip(rooms, bins, strict=True)]
    item = kinds.items[kind][-load[kind]]
    return shortage(f"item {item} beside the others", kinds.sizes[kind], [kinds.fields.size(room) for room in free])
