"""Groups too much for one application are cut where the planner cuts; each part fits, none waits for a later one."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit, InvalidInput
from airflow_dagsched.launch.escalation.fit_to_free_cluster import NoRoomYet, plan_on_free_cluster
from airflow_dagsched.launch.escalation.split_group import (
    Cut,
    cut_after_memory,
    cut_group,
    discount_done,
    find_parts_for_now,
    split_in_halves,
)
from airflow_dagsched.launch.planning.facts import Facts, select_steps
from airflow_dagsched.model.cluster import Cluster, Free
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.validate import build_valid_graph
from airflow_dagsched.plan.checking import check
from airflow_dagsched.plan.costing.evaluator import Evaluator
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.settings import Settings
from tests.plan.drawn import clusters, dataflows, drawn, standalone


def units_of(flow: Dataflow) -> list[tuple[str, ...]]:
    graph = build_valid_graph(flow)
    loops: dict[int, list[str]] = {}
    for node in graph.order:
        if graph.is_step(node):
            loops.setdefault(graph.loop[node], []).append(graph.ids[node])
    return [tuple(loop) for loop in loops.values()]


def disks(*disk_mb: int) -> Dataflow:
    """A chain of steps that need so much disk each, all of it to the end."""
    names = [f"s{at}" for at in range(len(disk_mb))]
    edges = "; ".join(f"{one} == {other}" for one, other in pairwise(names))
    return drawn(edges or names[0], **{name: {"disk_mb": need} for name, need in zip(names, disk_mb, strict=True)})


def with_disk(disk_mb: int) -> Cluster:
    cluster = standalone(4)
    return replace(cluster, workers=tuple(replace(worker, disk_mb=disk_mb) for worker in cluster.workers))


def cut(flow: Dataflow, cluster: Cluster, **rules: Any) -> Cut:
    return cut_group(units_of(flow), Facts(dataflow=flow, cluster=cluster, settings=Settings(**rules)))


def test_ten_gigabytes_stay_inside() -> None:
    """a ═1 MB═> b ═1 MB═> c ═10 GB═> d, any three fit by disk: the first ends soonest where 1 MB is spilled."""
    flow = drawn("a == b; b == c; c == d", size={"a": 10**6, "b": 10**6, "c": 10**10},
                 **{name: {"disk_mb": 3} for name in "abcd"})  # fmt: skip
    found = cut(flow, with_disk(9))
    assert found.spilled_bytes == 10**6
    assert found.parts in [(("a",), ("b", "c", "d")), (("a", "b"), ("c", "d"))]


def test_behind_a_table_nothing_is_spilled() -> None:
    """a ══> b ~~> c ══> d: b writes a table of 10 GB."""
    flow = drawn("a == b; b ~~ c; c == d", size={"a": 10**6, "b": 10**10, "c": 10**6},
                 **{name: {"disk_mb": 3} for name in "abcd"})  # fmt: skip
    found = cut(flow, with_disk(9))
    assert (found.parts, found.spilled_bytes) == ((("a", "b"), ("c", "d")), 0)


def test_the_fewest_parts() -> None:
    """Disk 6 + 3 | 8 | 3 + 2 + 5, on a worker with 10."""
    assert cut(disks(6, 3, 8, 3, 2, 5), with_disk(10)).parts == (("s0", "s1"), ("s2",), ("s3", "s4", "s5"))


def test_a_wide_step_apart_from_those_that_need_memory() -> None:
    """wide takes 4 cores, so four of 1 core could run at once: one of 3 GB beside it fits in 6 GB, two do not."""
    large = {"memory_mb": 3000}
    flow = drawn("wide == a; wide == b; wide == c", wide={"cores": 4, "memory_mb": 100}, a=large, b=large, c=large)
    assert len(cut(flow, standalone(4, memory_mb=6000)).parts) == 2


def test_what_fits_is_not_cut_and_a_busy_cluster_is_waited_for() -> None:
    cluster = with_disk(10)
    busy = replace(cluster, workers=tuple(replace(worker, free=Free(cores=0)) for worker in cluster.workers))
    assert cut(disks(6, 3), busy).parts == (("s0", "s1"),)


def test_a_step_too_large_alone_is_refused_with_its_numbers() -> None:
    with pytest.raises(DoesNotFit) as refused:
        cut(disks(6, 30), with_disk(10))
    assert (refused.value.needed, refused.value.available) == (30, 10)


def test_a_repeat_block_is_never_cut() -> None:
    """a ⇄ b ══> c"""
    flow = drawn("a == b; b == c; b -- a", a={"repeat": True, "disk_mb": 4}, b={"repeat": True, "disk_mb": 5},
                 c={"disk_mb": 4})  # fmt: skip
    assert cut(flow, with_disk(10)).parts == (("a", "b"), ("c",))


def test_the_author_s_word_holds_in_parts_too() -> None:
    """Any two fit, but s1 and s2 stay together; of the others that are named some are in no part."""
    lists = {"together": (("s1", "s2", "gone"),), "apart": (("s2", "s3"), ("s0", "gone"))}
    assert cut(disks(5, 5, 5, 5), with_disk(10), **lists).parts == (("s0",), ("s1", "s2"), ("s3",))


@pytest.mark.parametrize(
    ("units", "expected"),
    [("a", ("a",)), ("a b c", ("a", "bc")), ("a b c d", ("ab", "cd")), ("abcd e f", ("abcd", "ef"))],
)
def test_halves(units: str, expected: tuple[str, ...]) -> None:
    """A letter a step, a word a unit."""
    found = split_in_halves([tuple(unit) for unit in units.split()])
    assert found == tuple(tuple(part) for part in expected)


def after_memory(flow: Dataflow, cluster: Cluster) -> tuple[tuple[str, ...], ...]:
    return cut_after_memory(units_of(flow), Facts(dataflow=flow, cluster=cluster), 4)


def test_after_out_of_memory_as_even_as_can_be() -> None:
    """Of nothing is known how much it is."""
    assert after_memory(disks(0, 0, 0, 0), standalone(4)) == (("s0", "s1"), ("s2", "s3"))
    assert after_memory(disks(0), standalone(4)) == (("s0",),)


def test_after_out_of_memory_where_little_is_spilled() -> None:
    """Six steps in a chain: rather after the fourth, with 1 MB, than after the third, with 10 GB."""
    flow = drawn("a == b; b == c; c == d; d == e; e == f", size=dict.fromkeys("abce", 10**10) | {"d": 10**6})
    assert after_memory(flow, standalone(4)) == (("a", "b", "c", "d"), ("e", "f"))


def test_after_out_of_memory_what_is_stored_is_no_loss() -> None:
    """c has committed its 10 GB: a cut behind it spills nothing more, and is the more even one."""
    flow = drawn("a == b; b == c; c == d; d == e; e == f", size=dict.fromkeys("abce", 10**10) | {"d": 10**6})
    facts = discount_done(Facts(dataflow=flow, cluster=standalone(4)), {"c"})
    assert cut_after_memory(units_of(flow), facts, 4) == (("a", "b", "c"), ("d", "e", "f"))


def test_a_worker_too_small_for_so_many_times_the_memory_is_no_obstacle() -> None:
    flow = drawn("a == b", a={"memory_mb": 3000}, b={"memory_mb": 3000})
    assert after_memory(flow, standalone(4, memory_mb=6000)) == (("a",), ("b",))


@pytest.mark.parametrize(("runtime_s", "parts"), [(300, (("s0",), ("s1",))), (1, None)])
def test_parts_that_fit_now_rather_than_waiting(runtime_s: int, parts: tuple[tuple[str, ...], ...] | None) -> None:
    """Half of the disk is free: a step has room, two have not. Another start is little beside ten minutes of work."""
    flow = disks(6, 6)
    flow = replace(flow, steps=tuple(replace(step, runtime_s=runtime_s) for step in flow.steps))
    cluster = with_disk(14)
    half = replace(cluster, workers=tuple(replace(worker, free=Free(disk_mb=7)) for worker in cluster.workers))
    lacking = plan_on_free_cluster(Facts(dataflow=flow, cluster=half), ("s0", "s1"))
    assert isinstance(lacking, NoRoomYet)
    found = find_parts_for_now(lacking.facts, ("s0", "s1"), lacking.whole_s)
    assert (found and found.cut.parts) == parts
    if found is not None:
        assert "in parts it is to take 616 s, on the idle cluster 608 s" in str(found)


@settings(max_examples=40, deadline=None)
@given(dataflows(most=12, tasks=False, colors=False), clusters(), st.integers(1, 40))
def test_the_cut_is_the_planner_s(flow: Dataflow, cluster: Cluster, disk_mb: int) -> None:
    """The planner is asked here without a launch in between: one application at a time, on any worker."""
    cluster = replace(cluster, workers=tuple(replace(worker, disk_mb=disk_mb) for worker in cluster.workers))
    free = replace(flow, steps=tuple(replace(step, pinned=()) for step in flow.steps))
    try:
        found = cut(flow, cluster)
    except DoesNotFit:
        with pytest.raises(DoesNotFit):
            plan(free, cluster, Settings(applications=1))
        return
    made = plan(free, cluster, Settings(applications=1))
    assert (found.makespan_s, found.spilled_bytes) == (made.makespan_s, sum(spill.bytes for spill in made.spills))
    assert sorted(map(sorted, found.parts)) == sorted(sorted(group.steps) for group in made.groups)
    assert check(made, free, cluster, Settings(applications=1)) == ()
    # None waits for a later one, each fits alone, and they were planned one after another.
    order = {step: at for at, part in enumerate(found.parts) for step in part}
    edges = [(one.src, one.dst) for one in flow.channels] + list(flow.dependencies)
    assert all(order[src] <= order[dst] for src, dst in edges)
    assert all(fits_alone(free, cluster, part) for part in found.parts)
    spans = sorted((group.start_s, group.end_s) for group in made.groups)
    assert all(one[1] <= other[0] for one, other in pairwise(spans))


def fits_alone(flow: Dataflow, cluster: Cluster, part: tuple[str, ...]) -> bool:
    made = plan(select_steps(flow, part), cluster, Settings(together=(part,) if len(part) > 1 else ()))
    return len(made.groups) == 1


@settings(max_examples=30, deadline=None)
@given(dataflows(most=6, tasks=False, colors=False), st.integers(6, 25))
def test_no_other_cut_of_few_steps_ends_sooner(flow: Dataflow, disk_mb: int) -> None:
    """All groupings of up to six steps, each as the planner would run it, one application after another."""
    cluster = standalone(16)
    cluster = replace(cluster, workers=tuple(replace(worker, disk_mb=disk_mb) for worker in cluster.workers))
    flow = replace(flow, steps=tuple(replace(step, pinned=()) for step in flow.steps))
    problem = Problem.of(flow, cluster, Settings(applications=1))
    evaluator, best = Evaluator(problem), float("inf")
    for homes in list_groupings(problem):
        with suppress(DoesNotFit, InvalidInput):
            best = min(best, evaluator.evaluate_grouping(homes).cost.makespan_s)
    if best < float("inf"):
        assert cut(flow, cluster).makespan_s <= best + 1e-6


def list_groupings(problem: Problem) -> list[list[int]]:
    """Every way to put the steps into groups, loops whole; by the first node of each group."""
    graph, found = problem.graph, [list[int]()]
    for node, first in enumerate(graph.loop):
        homes = {*range(node)} if first == node else set[int]()
        found = [
            [*before, home]
            for before in found
            for home in ({before[at] for at in homes} | {node} if first == node else {before[first]})
        ]
    return found


def test_only_these_steps() -> None:
    flow = drawn("a == b; b == c; c -- t; t -- d", tasks="t")
    left = select_steps(flow, ("a", "b"))
    assert ([step.id for step in left.steps], [(c.src, c.dst) for c in left.channels]) == (["a", "b"], [("a", "b")])
    assert (left.tasks, left.dependencies) == ((), ())
