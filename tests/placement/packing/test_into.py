"""Packing into given bins: as far to the front as can be, refused only when it does not fit."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.placement.packing.into import pack_into
from airflow_dagsched.placement.packing.kinds import Size
from tests.placement.packing.drawn import can_pack, fits

pairs = st.tuples(st.integers(0, 9), st.integers(0, 9))


def packed(sizes: Sequence[Size], rooms: Sequence[Size]) -> tuple[tuple[int, ...], ...] | None:
    try:
        return pack_into(sizes, rooms)
    except DoesNotFit:
        return None


@settings(max_examples=200, deadline=None)
@given(st.lists(pairs, max_size=7), st.lists(pairs, min_size=1, max_size=3))
def test_few_items_are_refused_exactly_when_they_do_not_fit(sizes: list[Size], rooms: list[Size]) -> None:
    """Against trying every item in every bin."""
    assert (packed(sizes, rooms) is not None) == can_pack(sizes, rooms)


@settings(max_examples=100, deadline=None)
@given(st.lists(pairs, max_size=60), st.lists(pairs, min_size=1, max_size=30))
def test_every_item_is_in_one_bin_that_has_room(sizes: list[Size], rooms: list[Size]) -> None:
    made = packed(sizes, rooms)
    if made is not None:
        assert sorted(item for box in made for item in box) == list(range(len(sizes)))
        assert len(made) == len(rooms)
        assert all(fits([sizes[item] for item in box], room) for box, room in zip(made, rooms, strict=True) if box)


def test_the_first_bins_are_filled_first() -> None:
    """The item of 9 cores fits only the last bin; the others need no third."""
    assert pack_into([(2, 1), (9, 1), (2, 1)], [(4, 4), (4, 4), (9, 9)]) == ((0, 2), (), (1,))


@pytest.mark.parametrize(
    ("sizes", "rooms", "refusal"),
    [
        ([(5, 1), (1, 5)], [(4, 9), (4, 4)], DoesNotFit("item 0", "dimension 0", 5, 4)),
        ([(3, 1)] * 3, [(4, 9), (4, 4)], DoesNotFit("all 3 items", "dimension 0", 9, 8)),
        ([(3, 1)] * 3, [(5, 9), (5, 4)], DoesNotFit("item 2 beside the others", "dimension 0", 3, 2)),
        ([(0, 0)], [], DoesNotFit("item 0", "bins", 1, 0)),
    ],
)
def test_a_refusal_says_what_is_short(sizes: list[Size], rooms: list[Size], refusal: DoesNotFit) -> None:
    with pytest.raises(DoesNotFit) as refused:
        pack_into(sizes, rooms)
    assert refused.value == refusal
