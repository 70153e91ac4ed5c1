"""The simulator's parts: ranks, room, and when the first in line will have some."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.settings import DEFAULTS
from airflow_dagsched.plan.simulate import rank
from airflow_dagsched.plan.simulate.backfill import find_room_time
from airflow_dagsched.plan.simulate.jobs import Jobs, make_jobs
from airflow_dagsched.plan.simulate.modelled_capacity import Room
from airflow_dagsched.plan.simulate.rank import count_descendants, measure_b_levels
from airflow_dagsched.plan.simulate.sampled_conditions import NEVER
from airflow_dagsched.plan.simulate.values import Work
from tests.plan.drawn import dataflows, drawn, standalone

ROOMY = standalone(64, 64, 64, memory_mb=10**6)


def jobs(flow: Dataflow, cluster: Cluster = ROOMY) -> Jobs:
    return make_jobs([Work(plan(flow, cluster), flow)], cluster, DEFAULTS)


@settings(max_examples=50, deadline=None)
@given(dataflows(most=60))
def test_descendants_are_those_of_networkx(flow: Dataflow) -> None:
    """Counted in blocks of five, so that there are many."""
    found = jobs(flow)
    graph = nx.DiGraph((node, after) for node, nexts in enumerate(found.successors) for after in nexts)
    graph.add_nodes_from(range(len(found.all)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rank, "BLOCK", 5)
        assert count_descendants(found) == [len(nx.descendants(graph, node)) + 1 for node in range(len(found.all))]


def test_b_levels_are_the_seconds_to_the_end() -> None:
    """a (8 + 60 s) ──> (t, 10 s) ──> b (8 + 20 s)"""
    flow = drawn("a -- t; t -- b", tasks="t", a={"runtime_s": 60}, b={"runtime_s": 20})
    found = jobs(flow)
    assert dict(zip([job.id for job in found.all], measure_b_levels(found), strict=True)) == {
        "launch_a": 106.0,
        "t": 38.0,
        "launch_b": 28.0,
    }


needs = st.tuples(st.integers(1, 4), st.integers(1, 4), st.just(0))
groups = st.lists(needs, min_size=1, max_size=4) | st.builds(
    lambda need, count: [need] * count, needs, st.integers(1, 4)
)


@settings(max_examples=200, deadline=None)
@given(st.lists(groups, max_size=20), st.integers(0, 20), st.integers(0, 4))
def test_room_is_first_fit_and_comes_back(wanted: list[list[tuple[int, int, int]]], back: int, lost: int) -> None:
    """Against free cores and memory kept in a plain list, of which a lost worker is never used."""
    cluster = standalone(4, 6, 2, 8, 3, memory_mb=6)
    room, free = Room(cluster), [[worker.cores, worker.memory_mb] for worker in cluster.workers]
    room.lose_worker(lost)
    free[lost] = [-1, -1]
    held = []
    for at, containers in enumerate(wanted):
        expected: list[int] = []
        for cores, memory, _ in containers:
            fits = [w for w, (c, m) in enumerate(free) if c >= cores and m >= memory]
            if not fits:
                break
            expected.append(fits[0])
            free[fits[0]][0] -= cores
            free[fits[0]][1] -= memory
        taken = room.take_room([(lost, need) for need in containers], moves="any")
        if len(expected) == len(containers):
            assert taken is not None
            assert [worker for worker, _ in taken] == expected
            held.append(taken)
        else:
            assert taken is None
            give_back(free, list(zip(expected, containers, strict=False)))
        if held and at == back:
            places = held.pop(0)
            room.give_back(places)
            give_back(free, list(places))


def give_back(free: list[list[int]], places: list[tuple[int, tuple[int, int, int]]]) -> None:
    for worker, (cores, memory, _) in places:
        free[worker][0] += cores
        free[worker][1] += memory


def test_the_first_in_line_has_room_when_enough_has_ended() -> None:
    """Two more containers of 4 cores: w0 gives 2 + 2 until 20 s, w1 has 3 and gives 1 at 30 s."""
    free = {0: (0, 9, 9), 1: (3, 9, 9)}
    ending = [(10.0, [(0, (2, 0, 0))]), (20.0, [(0, (2, 0, 0))]), (30.0, [(1, (1, 0, 0))])]
    assert find_room_time(1, (4, 1, 0), free.__getitem__, ending) == 20
    assert find_room_time(2, (4, 1, 0), free.__getitem__, ending) == 30
    assert find_room_time(3, (4, 1, 0), free.__getitem__, ending) == NEVER
