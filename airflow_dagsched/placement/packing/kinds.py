"""Items of equal size drawn together, and a size written as one integer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

Size = tuple[int, ...]
"""An integer per dimension, none negative."""
Bin = list[int]
"""The kind of each item in a bin."""
Load = dict[int, int]
"""How many items of each kind are to be packed. Whoever packs some takes them off."""


class Fields(Struct, frozen=True):
    """Sizes as integers with a field per dimension, so that all dimensions are compared at once.

    ::

        size (3, 5)           0 0101 0 0011
        guard                 1 0000 1 0000      one bit above each field
        room + guard - size   a guard bit is gone exactly where the room is too small
    """

    bits: int
    guard: int

    @classmethod
    def wide_enough(cls, sizes: Iterable[Size], dimensions: int) -> Fields:
        """Fields that hold every value of ``sizes`` and a guard bit."""
        bits = max((value for size in sizes for value in size), default=0).bit_length() + 1
        return cls(bits, sum(1 << (bits * (at + 1) - 1) for at in range(dimensions)))

    def packed(self, size: Size) -> int:
        return sum(value << (self.bits * at) for at, value in enumerate(size))

    def size(self, packed: int) -> Size:
        """The size that was packed."""
        field = (1 << self.bits) - 1
        return tuple(packed >> (self.bits * at) & field for at in range(self.guard.bit_count()))


class Kinds(Struct, frozen=True):
    """The different sizes of some items, in rising order; a kind is a position in these."""

    sizes: tuple[Size, ...]
    packed: tuple[int, ...]
    shares: tuple[tuple[float, ...], ...]
    """Of the largest room in each dimension."""
    most: Size
    """The largest room in each dimension."""
    items: tuple[tuple[int, ...], ...]
    """Positions of the items of each kind, rising."""
    fields: Fields

    def load(self) -> Load:
        """All items."""
        return {kind: len(items) for kind, items in enumerate(self.items)}

    def dealt(self, bins: Iterable[Bin]) -> tuple[tuple[int, ...], ...]:
        """The items in ``bins``: of equal ones the first given is in the first bin."""
        deck = [iter(items) for items in self.items]
        return tuple(tuple(sorted(next(deck[kind]) for kind in box)) for box in bins)


def kinds_of(sizes: Sequence[Size], rooms: Iterable[Size]) -> Kinds:
    """The kinds of items of ``sizes`` that go into bins of ``rooms`` (each distinct room once is enough)."""
    distinct = set(rooms)
    items: dict[Size, list[int]] = {}
    for at, size in enumerate(sizes):
        items.setdefault(size, []).append(at)
    ordered = tuple(sorted(items))
    most = tuple(max(values) for values in zip(*distinct, strict=True))
    fields = Fields.wide_enough([*ordered, *distinct], len(most))
    return Kinds(
        ordered,
        tuple(fields.packed(size) for size in ordered),
        tuple(share_of(size, most) for size in ordered),
        most,
        tuple(tuple(items[size]) for size in ordered),
        fields,
    )


def share_of(size: Size, room: Size) -> tuple[float, ...]:
    """``size`` as a fraction of ``room``, dimension by dimension; nothing of nothing is no share."""
    return tuple(value / (most or 1) for value, most in zip(size, room, strict=True))


def asked(kinds: Kinds, load: Load) -> list[float]:
    """How many bins' worth of each dimension the load asks for."""
    total = [0.0] * len(kinds.most)
    for kind, count in load.items():
        for at, share in enumerate(kinds.shares[kind]):
            total[at] += share * count
    return total
