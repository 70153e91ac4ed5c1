"""Refusals with their numbers: what is needed, and what there is of it."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_dagsched.errors import DoesNotFit, InvalidInput
from airflow_dagsched.placement.packing.kinds import Size


def refuse_invalid(sizes: Sequence[Size], rooms: Sequence[Size]) -> None:
    """Raise ``InvalidInput`` unless all have equally many dimensions, at least one, and none is negative."""
    dimensions = max(map(len, (*rooms, *sizes)), default=0)
    for name, values in (("rooms", rooms), ("sizes", sizes)):
        for at, value in enumerate(values):
            if len(value) != dimensions or not value:
                rule = f"has {len(value)} dimensions, not {dimensions or 'one or more'}"
                raise InvalidInput("packing", f"{name}[{at}]", rule)
            if min(value) < 0:
                raise InvalidInput("packing", f"{name}[{at}]", f"{min(value)} is negative")


def refuse_alone(sizes: Sequence[Size], rooms: Sequence[Size]) -> None:
    """Raise ``DoesNotFit`` for the first item that fits into no room even alone."""
    distinct = sorted(set(rooms))
    fitting = {size for size in set(sizes) if any(_fits(size, room) for room in distinct)}
    for at, size in enumerate(sizes):
        if size not in fitting:
            raise shortage(f"item {at}", size, distinct)


def refuse_total(sizes: Sequence[Size], rooms: Sequence[Size]) -> None:
    """Raise ``DoesNotFit`` if all items together are larger than all rooms together."""
    needed, available = _sums(sizes), _sums(rooms)
    if needed and not _fits(needed, available):
        raise shortage(f"all {len(sizes)} items", needed, [available])


def shortage(what: str, size: Size, rooms: Sequence[Size]) -> DoesNotFit:
    """In the room that comes nearest to holding ``size``, the dimension that is shortest."""
    if not rooms:
        return DoesNotFit(what, "bins", 1, 0)
    room = min(rooms, key=lambda room: (_excess(size, room), room))
    _, at = _excess(size, room)
    return DoesNotFit(what, f"dimension {at}", size[at], room[at])


def _excess(size: Size, room: Size) -> tuple[float, int]:
    """The largest of what is needed above what there is, as a part of what is needed, and in which dimension."""
    return max(((need - has) / (need or 1), at) for at, (need, has) in enumerate(zip(size, room, strict=True)))


def _fits(size: Size, room: Size) -> bool:
    return all(need <= has for need, has in zip(size, room, strict=True))


def _sums(sizes: Sequence[Size]) -> Size:
    return tuple(sum(values) for values in zip(*sizes, strict=True))
