"""Each way to pack alone, and the integer that holds a size."""

from __future__ import annotations

from itertools import repeat

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_dagsched.placement.packing.completion import Effort
from airflow_dagsched.placement.packing.kinds import Fields, Size, kinds_of
from airflow_dagsched.placement.packing.search import search
from airflow_dagsched.placement.packing.ways import ways
from tests.placement.packing.drawn import fits, instances


@pytest.mark.parametrize("name", ways(Effort()))
@settings(max_examples=50, deadline=None)
@given(instance=instances())
def test_a_way_packs_everything_where_there_are_bins_enough(name: str, instance: tuple[list[Size], Size]) -> None:
    sizes, room = instance
    kinds = kinds_of(sizes, [room])
    load = kinds.load()
    bins = ways(Effort())[name](kinds, load, repeat(kinds.fields.packed(room)))
    assert not any(load.values())
    assert sorted(item for box in kinds.dealt(bins) for item in box) == list(range(len(sizes)))
    assert all(box and fits([kinds.sizes[kind] for kind in box], room) for box in bins)


@pytest.mark.parametrize("name", ways(Effort()))
def test_what_has_no_room_stays_in_the_load(name: str) -> None:
    """Two of three items of (2, 2) go into (4, 4)."""
    kinds = kinds_of([(2, 2)] * 3, [(4, 4)])
    load = kinds.load()
    assert ways(Effort())[name](kinds, load, iter([kinds.fields.packed((4, 4))])) == [[0, 0]]
    assert load == {0: 1}


def test_bin_completion_finds_the_set_that_fills() -> None:
    """6 + 4 and 6 + 3 + 1: taking the largest that fits, or one at a time, leaves the 1 for a third bin."""
    kinds = kinds_of([(6,), (6,), (4,), (3,), (1,)], [(10,)])
    bins = ways(Effort())["bin completion"](kinds, kinds.load(), repeat(kinds.fields.packed((10,))))
    assert [sum(kinds.sizes[kind][0] for kind in box) for box in bins] == [10, 10]


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), min_size=2, max_size=2))
def test_one_comparison_is_that_of_all_dimensions(pair: list[Size]) -> None:
    need, room = pair
    fields = Fields.wide_enough(pair, 2)
    assert fields.size(fields.packed(need)) == need
    within = (fields.packed(room) + fields.guard - fields.packed(need)) & fields.guard == fields.guard
    assert within == fits([need], room)


def test_the_search_gives_up_at_its_budget() -> None:
    kinds = kinds_of([(3,), (3,), (2,), (2,), (2,)], [(6,)])
    rooms = [kinds.fields.packed((6,))] * 2
    assert search(kinds, rooms) == [[1, 1], [0, 0, 0]]
    assert search(kinds, rooms, tries=4) is None
