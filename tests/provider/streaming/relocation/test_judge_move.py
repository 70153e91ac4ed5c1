"""When a stream moves: a table, and that whatever looks find its moves end."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.dataflow import Step
from airflow_dagsched.placement.high_availability.settings import DEFAULTS
from airflow_dagsched.provider.streaming.relocation.judge_move import Move, Placed, Stay, judge_move
from airflow_dagsched.provider.streaming.relocation.settle_move import Looks, add_look

STEPS = [Step(id="s", parallelism=4, mode="streaming", stateful=True)]
NAMES = [f"s/{at}" for at in range(4)]


def make_cluster(**cores: int) -> Cluster:
    workers = (Worker(id=name, host=name, cores=count, memory_mb=4096) for name, count in cores.items())
    return Cluster(manager="standalone", workers=tuple(workers))


def put(where: str) -> dict[str, str]:
    """A letter an instance."""
    return dict(zip(NAMES, where, strict=True))


def judge(active: str, possible: str, moving: int | None = 1, **cores: int) -> Move | Stay:
    wished, found = Placed({}, moving), Placed(put(possible), 0) if possible else None
    return judge_move(7, put(active), wished, found, STEPS, make_cluster(**cores), DEFAULTS)


ROWS: list[tuple[str, str, int | None, Mapping[str, int], str]] = [
    ("aaaa", "bbbb", 2, {"a": 4, "b": 8}, "move"),
    ("aaaa", "aabb", 2, {"a": 4, "b": 4}, "move"),
    ("aaaa", "bbbb", 2, {"a": 4, "b": 4}, "no better"),
    ("bbbb", "aabb", 2, {"a": 4, "b": 8}, "no better"),
    ("aaaa", "bbbb", 2, {"a": 8, "b": 4}, "no better"),
    ("aaaa", "bbbb", 0, {"a": 4, "b": 8}, "level"),
    ("aaaa", "bbbb", None, {"a": 4, "b": 8}, "by no state"),
    ("aaaa", "", 2, {"a": 4, "b": 8}, "no room"),
    ("aaab", "aabb", 2, {"a": 4, "b": 4}, "same workers"),
    ("aaaa", "bbbb", 0, {"b": 4}, "move"),
    ("aabb", "bbbb", 2, {"b": 4}, "move"),
    ("aaaa", "bbbb", 2, {"a": 0, "b": 1}, "move"),
    ("aaaa", "", 4, {"b": 4}, "no room"),
]


@pytest.mark.parametrize(("active", "possible", "moving", "cores", "said"), ROWS)
def test_one_look(active: str, possible: str, moving: int | None, cores: Mapping[str, int], said: str):
    found = judge(active, possible, moving, **cores)
    assert (found.code if isinstance(found, Stay) else "move") == said
    assert found.reason


def test_a_move_says_from_where_to_where_and_why():
    assert judge("aaaa", "bbbb", 2, a=4, b=8).reason == (
        "epoch 7 moves from a to b: 2 of its instances are better off there"
    )
    assert judge("aaaa", "bbbb", 2, b=8).reason == "epoch 7 moves from a to b: a gone"


def test_a_policy_that_finds_no_room_says_nothing_of_what_is_not_gone():
    found = judge_move(1, put("aaaa"), None, Placed(put("bbbb"), 0), STEPS, make_cluster(a=4, b=8), DEFAULTS)
    assert found == Stay("level", ("a",))


def measure(where: str, cores: Mapping[str, int]) -> tuple[int, list[float]]:
    """Instances on workers that are gone; loads, the highest first: what a look has to lead to less of."""
    lost = sum(name not in cores for name in where)
    return lost, sorted((round(where.count(name) / count, 9) for name, count in cores.items()), reverse=True)


places = st.text("abc", min_size=4, max_size=4)
clusters = st.fixed_dictionaries({}, optional={name: st.integers(1, 9) for name in "abc"}).filter(bool)


@given(places, clusters, st.lists(st.tuples(places, st.integers(0, 4)), max_size=40))
@example("abbb", {"a": 3, "b": 6, "c": 4}, [("bbcc", 1), ("abbb", 1)])
def test_whatever_room_there_is_at_each_look_moves_end_and_none_makes_loads_worse(
    active: str, cores: dict[str, int], looks: list[tuple[str, int]]
):
    """Others come and go, so what has room differs from look to look; the workers are the same."""
    been = [active]
    for possible, moving in looks:
        found = judge(been[-1], possible, moving, **cores)
        if isinstance(found, Move):
            before, after = measure(been[-1], cores), measure(possible, cores)
            # Where loads are equal it is what a failure would leave that decides.
            assert after[0] < before[0] or (after[0] == before[0] == 0 and after[1] <= before[1])
            assert possible not in been, "it was there, and had left it for something better"
            been.append(possible)


@given(st.lists(st.sampled_from("mns."), max_size=30))
def test_a_move_is_made_after_two_equal_looks_in_a_row_and_no_sooner(seen: str):
    move, other = judge("aaaa", "bbbb", 2, a=4, b=8), judge("aaaa", "bbbb", 2, a=4, b=8, c=1)
    kinds = {"m": move, "n": other, "s": Stay("no room"), ".": None}
    looks = Looks()
    for at, each in enumerate(seen):
        looks = add_look(kinds[each], looks)
        is_second = each in "mn" and at > 0 and seen[at - 1] == each
        assert looks.settled == (kinds[each] if is_second else None)


def test_a_worker_that_comes_between_two_looks_makes_them_unequal():
    move, other = judge("aaaa", "bbbb", 2, a=4, b=8), judge("aaaa", "bbbb", 2, a=4, b=8, c=1)
    assert add_look(other, add_look(move, Looks())).settled is None


def test_the_epoch_that_has_moved_needs_two_looks_again():
    looks = add_look(judge("aaaa", "bbbb", 2, a=4, b=8), Looks())
    looks = add_look(judge("aaaa", "bbbb", 2, a=4, b=8), looks)
    assert looks.settled is not None
    found = judge_move(8, put("bbbb"), Placed({}, 2), Placed(put("cccc"), 0), STEPS, make_cluster(b=4, c=8), DEFAULTS)
    assert isinstance(found, Move)
    assert add_look(found, looks).settled is None
