"""Packing into equal bins: everything once, nothing too full, no bin too many where that is known."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from statistics import fmean

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from airflow_dagsched.errors import DoesNotFit, InvalidInput
from airflow_dagsched.placement.packing import pack as module
from airflow_dagsched.placement.packing.completion import Effort
from airflow_dagsched.placement.packing.kinds import Size
from airflow_dagsched.placement.packing.pack import NORMAL, QUICK, Packing, pack
from tests.placement.packing.drawn import can_pack, fits, instances

Instance = tuple[list[Size], Size]


def assert_packed(made: Packing, sizes: Sequence[Size], room: Size) -> None:
    """Every item once, no bin above its room, none empty, none below the bound."""
    assert sorted(item for box in made.bins for item in box) == list(range(len(sizes)))
    assert all(box and fits([sizes[item] for item in box], room) for box in made.bins)
    assert made.bound <= len(made.bins)


def contents(made: Packing, sizes: Sequence[Size]) -> Counter[tuple[Size, ...]]:
    return Counter(tuple(sorted(sizes[item] for item in box)) for box in made.bins)


def cloud(count: int, seed: int) -> list[Size]:
    """Cores and memory of virtual machines on hosts of 16 cores and 64 GiB."""
    rng = random.Random(seed)
    cores = [rng.choice([1, 2, 4, 8]) for _ in range(count)]
    return [(n, int(n * 4 * rng.choice([0.5, 1, 2]))) for n in cores]


@settings(max_examples=200, deadline=None)
@given(instances(), st.sampled_from([NORMAL, QUICK, Effort(candidates=1, sets=1, rounds=3, ways=6)]))
def test_every_item_is_in_one_bin_that_has_room(instance: Instance, effort: Effort) -> None:
    sizes, room = instance
    assert_packed(pack(sizes, room, effort), sizes, room)


@settings(max_examples=100, deadline=None)
@given(instances(), st.integers(0, 2**32))
def test_the_order_of_the_items_means_nothing(instance: Instance, seed: int) -> None:
    sizes, room = instance
    other = random.Random(seed).sample(sizes, len(sizes))
    assert contents(pack(sizes, room), sizes) == contents(pack(other, room), other)


@settings(max_examples=150, deadline=None)
@given(instances(most=8))
@example(([(4, 6), (6, 4), (5, 5), (5, 5), (1, 9), (9, 1)], (10, 10)))
def test_eight_items_need_as_few_bins_as_can_be(instance: Instance) -> None:
    """Against trying every item in every bin."""
    sizes, room = instance
    count = len(pack(sizes, room).bins)
    assert not count or not can_pack(sizes, [room] * (count - 1))


def test_complementary_items_share_bins() -> None:
    """(2, 8) + (8, 2) fill a bin of (10, 10), so three of each need three."""
    made = pack([(2, 8), (8, 2)] * 3, (10, 10))
    assert made.bins == ((0, 1), (2, 3), (4, 5))
    assert made.bound == 3


def test_the_bound_counts_how_many_items_a_bin_can_hold() -> None:
    """(0.2, 0.5), (0.5, 0.2) and (0.35, 0.35): each dimension sums to 3.15 bins, but only two share one."""
    made = pack([(20, 50), (50, 20), (35, 35)] * 3, (100, 100))
    assert (len(made.bins), made.bound) == (5, 5)


def test_mixes_of_virtual_machines_are_within_2_percent_of_the_sums() -> None:
    """On average: a mix with many of 8 cores and all the memory cannot be."""
    ratios = []
    for seed in range(5):
        sizes = cloud(1000, seed)
        made = pack(sizes, (16, 64))
        assert_packed(made, sizes, (16, 64))
        ratios.append(len(made.bins) / max(sum(cores for cores, _ in sizes) / 16, sum(gib for _, gib in sizes) / 64))
    assert fmean(ratios) <= 1.02


def test_many_sizes_are_packed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part wastes little: its lightest bins are packed anew with the others'."""
    monkeypatch.setattr(module, "PART", 60)
    rng = random.Random(3)
    sizes = [(rng.randint(100, 500), rng.randint(100, 500)) for _ in range(400)]
    made = pack(sizes, (1000, 1000), QUICK)
    assert_packed(made, sizes, (1000, 1000))
    assert len(made.bins) <= 1.1 * made.bound


def test_thousands_of_small_equal_items_fill_a_bin() -> None:
    made = pack([(1, 2)] * 5000, (5000, 10_000))
    assert (len(made.bins), made.bound) == (1, 1)


def test_nothing_needs_no_bin_and_items_of_no_size_need_one() -> None:
    assert pack([], (1, 1)) == Packing((), 0)
    assert pack([(0, 0), (0, 0)], (0, 1)) == Packing(((0, 1),), 1)


def test_an_item_larger_than_a_bin_is_refused_with_its_numbers() -> None:
    with pytest.raises(DoesNotFit) as refused:
        pack([(1, 1), (4, 70)], (16, 64))
    assert refused.value == DoesNotFit("item 1", "dimension 1", 70, 64)


@pytest.mark.parametrize(
    ("sizes", "room", "line"),
    [
        ([(1,)], (1, 1), r"packing: sizes\[0\]: has 1 dimensions, not 2"),
        ([(1, -2)], (1, 1), r"packing: sizes\[0\]: -2 is negative"),
        ([], (), r"packing: rooms\[0\]: has 0 dimensions, not one or more"),
    ],
)
def test_what_is_no_size_is_refused(sizes: list[Size], room: Size, line: str) -> None:
    with pytest.raises(InvalidInput, match=line):
        pack(sizes, room)
