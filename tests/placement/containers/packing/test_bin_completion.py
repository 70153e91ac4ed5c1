"""Packing into given bins: whatever is packed is packed soundly, as far to the front as can be."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_dagsched.placement.containers.packing.bin_completion import pack_into
from airflow_dagsched.placement.containers.packing.item_kinds import Size

pairs = st.tuples(st.integers(0, 9), st.integers(0, 9))


@settings(max_examples=200, deadline=None)
@given(st.lists(pairs, max_size=60), st.lists(pairs, min_size=1, max_size=30))
def test_every_item_is_in_one_bin_that_has_room(sizes: list[Size], bins: list[Size]) -> None:
    packing = pack_into(sizes, bins)
    if packing is not None:
        assert sorted(item for items in packing for item in items) == list(range(len(sizes)))
        assert len(packing) == len(bins)
        for items, free in zip(packing, bins, strict=True):
            assert all(sum(sizes[item][at] for item in items) <= free[at] for at in (0, 1))


@settings(max_examples=100, deadline=None)
@given(st.lists(pairs, max_size=30), st.lists(pairs, min_size=1, max_size=10), st.randoms())
def test_the_order_of_items_does_not_matter(sizes: list[Size], bins: list[Size], rng: random.Random) -> None:
    shuffled = rng.sample(sizes, len(sizes))
    assert _sizes_by_bin(sizes, bins) == _sizes_by_bin(shuffled, bins)


def _sizes_by_bin(sizes: list[Size], bins: list[Size]) -> list[list[Size]] | None:
    packing = pack_into(sizes, bins)
    return None if packing is None else [sorted(sizes[item] for item in items) for items in packing]


def test_the_first_bins_are_filled_first() -> None:
    """The item of 9 cores fits only the last bin; the others need no third."""
    assert pack_into([(2, 1), (9, 1), (2, 1)], [(4, 4), (4, 4), (9, 9)]) == ((0, 2), (), (1,))


def test_items_that_leave_no_hole_are_packed_without_one() -> None:
    """Fifty bins of 100 x 100 cut into four pieces each: nothing is free once all are packed, but 3 in a hundred."""
    rng, sizes = random.Random(1), list[Size]()
    for _ in range(50):
        cuts = [sorted(rng.sample(range(5, 95), 3)) for _ in range(2)]
        edges = [[0, *cut, 97] for cut in cuts]
        sizes += [tuple(abs(edge[at + 1] - edge[at]) for edge in edges) for at in range(4)]
    assert pack_into(sizes, [(100, 100)] * 54) is not None


def test_what_is_larger_in_sum_than_all_bins_is_not_packed() -> None:
    assert pack_into([(3, 1)] * 3, [(4, 9), (4, 4)]) is None
