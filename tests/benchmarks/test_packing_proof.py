"""The least number of bins where no bin holds four, against trying everything; and how near to it packing comes."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_dagsched.placement.packing.kinds import Size
from airflow_dagsched.placement.packing.pack import pack
from benchmarks.packing import opposed
from benchmarks.packing_proof import least_bins
from tests.placement.packing.drawn import can_pack

ROOM = (20, 20)
WHOLE = 1_000_000
large = st.tuples(st.integers(3, 20), st.integers(3, 20)).filter(lambda size: sum(size) > 10)


@settings(max_examples=150, deadline=None)
@given(st.lists(large, max_size=7))
def test_no_packing_is_below_it(sizes: list[Size]) -> None:
    """Four items of more than 10 do not fit into a bin of 40 together."""
    least = least_bins(sizes, ROOM)
    assert least is not None
    assert not least or not can_pack(sizes, [ROOM] * (least - 1))


def test_it_says_nothing_where_four_may_fit() -> None:
    assert least_bins([(5, 5)] * 4, ROOM) is None


def test_an_item_is_in_one_bin_of_three_only() -> None:
    """Two light ones and a heavy one fit in a bin, so of four light ones come two bins of three; two are left."""
    assert least_bins([(6, 6)] * 4 + [(8, 8)] * 4, ROOM) == 3


@pytest.mark.parametrize(
    ("low", "high", "noise"),
    [(0.05, 0.7, 0.1), (0.1, 0.6, 0.05), (0.01, 0.7, 0.05), (0.05, 0.95, 0.02), (0.2, 0.8, 0.02)],
)
def test_opposed_items_are_packed_within_a_percent_of_the_least(low: float, high: float, noise: float) -> None:
    """Where two or three share a bin, and where one or two do."""
    rng = random.Random(1)
    draw = opposed(low, high, noise)
    sizes = [(round(one * WHOLE), round(other * WHOLE)) for one, other in (draw(rng) for _ in range(1000))]
    least = least_bins(sizes, (WHOLE, WHOLE))
    assert least is not None
    assert least <= len(pack(sizes, (WHOLE, WHOLE)).bins) <= least * 1.01
