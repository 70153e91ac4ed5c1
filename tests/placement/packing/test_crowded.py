"""Sets of one item more than most bins hold: all that fit, and many of them that share no item."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_dagsched.placement.packing.completion import Effort
from airflow_dagsched.placement.packing.crowded import Items, _apart, sets_of, with_crowded
from airflow_dagsched.placement.packing.first_fit import decreasing
from airflow_dagsched.placement.packing.kinds import Size, kinds_of
from tests.placement.packing.drawn import fits, instances

Instance = tuple[list[Size], Size]


@pytest.mark.parametrize("count", [2, 3])
@settings(max_examples=50, deadline=None)
@given(instance=instances(most=9))
def test_the_sets_are_all_that_fit(count: int, instance: Instance) -> None:
    """Against trying every set."""
    sizes, room = instance
    kinds = kinds_of(sizes, [room])
    of = [kind for kind in decreasing(kinds, kinds.load(), sum)[::-1] for _ in kinds.items[kind]]
    items = [kinds.sizes[kind] for kind in of]
    every = [chosen for chosen in combinations(range(len(of)), count) if fits([items[at] for at in chosen], room)]
    found = sets_of(Items.of(kinds, of), (), room, count, len(of)) if of else ()
    assert sorted(found) == every


@given(st.lists(st.sets(st.integers(0, 9), min_size=2, max_size=2).map(lambda one: tuple(sorted(one)))))
def test_the_sets_taken_share_nothing_and_none_can_be_added(sets: list[tuple[int, ...]]) -> None:
    taken = _apart(sets, 10)
    items = [at for chosen in taken for at in chosen]
    assert len(items) == len(set(items))
    assert all(not set(items).isdisjoint(chosen) for chosen in sets)


def test_the_set_in_the_way_of_the_fewest_is_taken_first() -> None:
    """a ── b ── c ── d: taking b ── c first leaves nothing else."""
    assert sorted(_apart([(1, 2), (0, 1), (2, 3)], 4)) == [(0, 1), (2, 3)]


def test_threes_are_found_where_most_go_in_twos() -> None:
    """Twice 6 + 6 + 8 by 6 + 7 + 7 fill bins of 20, and a pair the third; eight items in twos need four."""
    kinds = kinds_of([(8, 12), (12, 8), *[(6, 6), (6, 7), (8, 7)] * 2], [(20, 20)])
    assert kinds.sizes == ((6, 6), (6, 7), (8, 7), (8, 12), (12, 8))
    twos = [[4, 3], [0, 0], [1, 1], [2, 2]]
    bins = with_crowded(kinds, twos, kinds.fields.packed((20, 20)), Effort())
    assert sorted(map(sorted, bins)) == [[0, 1, 2], [0, 1, 2], [3, 4]]


@settings(max_examples=100, deadline=None)
@given(instances())
def test_there_are_never_more_bins_and_all_hold(instance: Instance) -> None:
    sizes, room = instance
    kinds = kinds_of(sizes, [room])
    alone = [[kind] for kind, of in enumerate(kinds.items) for _ in of]
    if alone:
        bins = with_crowded(kinds, alone, kinds.fields.packed(room), Effort())
        assert len(bins) <= len(alone)
        assert sorted(item for box in kinds.dealt(bins) for item in box) == list(range(len(sizes)))
        assert all(fits([kinds.sizes[kind] for kind in box], room) for box in bins)
