"""Groups too large for the cluster, cut at launch: few parts, each fits, none waits for a later one."""

from __future__ import annotations

from itertools import chain, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.launch.escalation.group_fit import find_refusal
from airflow_dagsched.launch.escalation.split_group import cut_to_fit, split_in_halves
from airflow_dagsched.launch.planning.facts import Facts, select_steps
from airflow_dagsched.model.cluster import Cluster, Free
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.validate import build_valid_graph
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


def test_the_fewest_parts() -> None:
    """Disk 6 + 3 | 8 | 3 + 2 + 5, on a worker with 10."""
    flow = disks(6, 3, 8, 3, 2, 5)
    found = cut_to_fit(units_of(flow), Facts(dataflow=flow, cluster=with_disk(10)))
    assert found == (("s0", "s1"), ("s2",), ("s3", "s4", "s5"))


def test_a_wide_step_apart_from_those_that_need_memory() -> None:
    """wide takes 4 cores, so four of 1 core could run at once: one of 3 GB beside it fits in 6 GB, two do not."""
    large = {"memory_mb": 3000}
    flow = drawn("wide == a; wide == b; wide == c", wide={"cores": 4, "memory_mb": 100}, a=large, b=large, c=large)
    cluster = standalone(4, memory_mb=6000)
    assert cut_to_fit(units_of(flow), Facts(dataflow=flow, cluster=cluster)) == (("wide", "a"), ("b", "c"))


def test_what_fits_is_not_cut_and_a_busy_cluster_is_waited_for() -> None:
    flow, cluster = disks(6, 3), with_disk(10)
    busy = replace(cluster, workers=tuple(replace(worker, free=Free(cores=0)) for worker in cluster.workers))
    assert cut_to_fit(units_of(flow), Facts(dataflow=flow, cluster=busy)) == (("s0", "s1"),)


def test_a_step_too_large_alone_is_refused_with_its_numbers() -> None:
    flow = disks(6, 30)
    with pytest.raises(DoesNotFit) as refused:
        cut_to_fit(units_of(flow), Facts(dataflow=flow, cluster=with_disk(10)))
    assert (refused.value.needed, refused.value.available) == (30, 10)


def test_a_repeat_block_is_never_cut() -> None:
    """a ⇄ b ══> c"""
    flow = drawn("a == b; b == c; b -- a", a={"repeat": True, "disk_mb": 4}, b={"repeat": True, "disk_mb": 5},
                 c={"disk_mb": 4})  # fmt: skip
    assert cut_to_fit(units_of(flow), Facts(dataflow=flow, cluster=with_disk(10))) == (("a", "b"), ("c",))


@pytest.mark.parametrize(
    ("units", "expected"),
    [("a", ("a",)), ("a b c", ("a", "bc")), ("a b c d", ("ab", "cd")), ("abcd e f", ("abcd", "ef"))],
)
def test_halves(units: str, expected: tuple[str, ...]) -> None:
    """A letter a step, a word a unit."""
    found = split_in_halves([tuple(unit) for unit in units.split()])
    assert found == tuple(tuple(part) for part in expected)


@settings(max_examples=50, deadline=None)
@given(dataflows(most=20, tasks=False, colors=False), clusters(), st.integers(1, 40))
def test_parts_fit_and_run_in_order(flow: Dataflow, cluster: Cluster, disk_mb: int) -> None:
    cluster = replace(cluster, workers=tuple(replace(worker, disk_mb=disk_mb) for worker in cluster.workers))
    facts, units = Facts(dataflow=flow, cluster=cluster), units_of(flow)
    try:
        parts = cut_to_fit(units, facts)
    except DoesNotFit:
        assert any(find_refusal(facts, unit) for unit in units)
        return
    assert tuple(chain.from_iterable(parts)) == tuple(chain.from_iterable(units))
    assert all(find_refusal(facts, part) is None for part in parts)
    unit = {name: unit for unit in units for name in unit}
    assert all(find_refusal(facts, (*part, *unit[after[0]])) for part, after in pairwise(parts))


def test_only_these_steps() -> None:
    flow = drawn("a == b; b == c; c -- t; t -- d", tasks="t")
    left = select_steps(flow, ("a", "b"))
    assert ([step.id for step in left.steps], [(c.src, c.dst) for c in left.channels]) == (["a", "b"], [("a", "b")])
    assert (left.tasks, left.dependencies) == ((), ())
