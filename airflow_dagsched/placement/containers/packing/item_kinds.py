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


class SizeFields(Struct, frozen=True):
    """Sizes as integers with a field per dimension, so that all dimensions are compared at once.

    ::

        size (3, 5)           0 0101 0 0011
        guard                 1 0000 1 0000      one bit above each field
        free + guard - size   a guard bit is gone exactly where too little is free
    """

    bits: int
    guard: int

    @classmethod
    def wide_enough(cls, sizes: Iterable[Size], dimensions: int) -> SizeFields:
        """Fields that hold every value of ``sizes`` and a guard bit."""
        bits = max((value for size in sizes for value in size), default=0).bit_length() + 1
        return cls(bits, sum(1 << (bits * (at + 1) - 1) for at in range(dimensions)))

    def pack_size(self, size: Size) -> int:
        """``size`` as one integer."""
        return sum(value << (self.bits * at) for at, value in enumerate(size))

    def unpack_size(self, packed: int) -> Size:
        """The size that was packed."""
        field = (1 << self.bits) - 1
        return tuple(packed >> (self.bits * at) & field for at in range(self.guard.bit_count()))


class ItemKinds(Struct, frozen=True):
    """The different sizes of some items, in rising order; a kind is a position in these."""

    packed: tuple[int, ...]
    """The size of each kind as one integer."""
    shares: tuple[tuple[float, ...], ...]
    """The size of each kind as fractions of ``largest``."""
    largest: Size
    """The largest bin in each dimension."""
    items: tuple[tuple[int, ...], ...]
    """Positions of the items of each kind, rising."""
    fields: SizeFields

    def count_load(self) -> Load:
        """The load of all items."""
        return {kind: len(items) for kind, items in enumerate(self.items)}

    def deal_items(self, bins: Iterable[Bin]) -> tuple[tuple[int, ...], ...]:
        """The items in ``bins``: of equal ones the first is in the first bin."""
        deck = [iter(items) for items in self.items]
        return tuple(tuple(sorted(next(deck[kind]) for kind in kinds)) for kinds in bins)

    def order_by_share(self) -> list[int]:
        """All kinds, the one with the largest sum of shares first; ties by size."""
        return sorted(range(len(self.items)), key=lambda kind: (-sum(self.shares[kind]), kind))


def group_by_size(sizes: Sequence[Size], bins: Iterable[Size]) -> ItemKinds:
    """The kinds of items of ``sizes`` that go into ``bins`` (each distinct bin once is enough)."""
    distinct = set(bins)
    items: dict[Size, list[int]] = {}
    for at, size in enumerate(sizes):
        items.setdefault(size, []).append(at)
    ordered = tuple(sorted(items))
    largest = tuple(max(values) for values in zip(*distinct, strict=True))
    fields = SizeFields.wide_enough([*ordered, *distinct], len(largest))
    return ItemKinds(
        tuple(fields.pack_size(size) for size in ordered),
        tuple(divide_size(size, largest) for size in ordered),
        largest,
        tuple(tuple(items[size]) for size in ordered),
        fields,
    )


def divide_size(size: Size, whole: Size) -> tuple[float, ...]:
    """``size`` as a fraction of ``whole``, dimension by dimension; nothing of nothing is no share."""
    # What no bin has, no item asks for: ``pack_into`` has refused that by now.
    return tuple(value / (most or 1) for value, most in zip(size, whole, strict=True))
