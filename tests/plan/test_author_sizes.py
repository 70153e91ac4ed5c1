"""Executors that their author sizes are planned, placed and refused by that size."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.model.cluster import Cluster, Free
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.state import State
from airflow_dagsched.placement.settings import PlacementSettings
from airflow_dagsched.plan.checking import check
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.problem.run import ExecutorSize, Policy, Run
from tests.plan.drawn import clusters, dataflows, drawn, standalone

WIDE = drawn("a", a={"parallelism": 4, "runtime_s": 60, "memory_mb": 100})


def run_of(flow: Dataflow, size: ExecutorSize, policy: str = "") -> Run:
    chosen = Policy(policy, PlacementSettings(), State()) if policy else None
    return Run(sizes={step.id: size for step in flow.steps}, policy=chosen)


@pytest.mark.parametrize("policy", ["", "first_fit", "round_robin", "cheapest", "data_locality"])
@pytest.mark.parametrize(
    ("size", "shapes"),
    [
        (ExecutorSize(), [(4, 784)]),
        (ExecutorSize(cores=2), [(2, 584), (2, 584)]),
        (ExecutorSize(cores=8), [(8, 784)]),
        (ExecutorSize(memory_mb=6000), [(4, 6000)]),
        (ExecutorSize(cores=1, memory_mb=6000), [(1, 6000)] * 4),
    ],
    ids=str,
)
def test_containers_are_as_the_author_sizes_executors(
    size: ExecutorSize, shapes: list[tuple[int, int]], policy: str
) -> None:
    """4 instances of 100 MiB, and 384 beside them, on two workers with room for two of 6,000 MiB each."""
    cluster = standalone(8, 8, memory_mb=16_000)
    made = plan(WIDE, cluster, run=run_of(WIDE, size, policy))
    found = made.groups[0].containers
    if policy in ("", "first_fit"):
        assert [(box.cores, box.memory_mb) for box in found] == shapes
    elif size != ExecutorSize():
        assert {(box.cores, box.memory_mb) for box in found} == set(shapes)
    assert check(made, WIDE, cluster) == ()


def test_what_no_worker_has_free_of_the_author_s_size_is_refused_by_it() -> None:
    busy = standalone(8, 8)
    busy = replace(busy, workers=tuple(replace(worker, free=Free(cores=3)) for worker in busy.workers))
    with pytest.raises(DoesNotFit, match=r"an executor, as its author sizes it,.* needed 4 cores, available 3"):
        plan(WIDE, busy, run=run_of(WIDE, ExecutorSize(cores=4)))
    with pytest.raises(DoesNotFit, match=r"memory.* needed 8000 MiB, available 4000"):
        cluster = standalone(8, memory_mb=8000)
        part = tuple(replace(worker, free=Free(memory_mb=4000)) for worker in cluster.workers)
        plan(WIDE, replace(cluster, workers=part), run=run_of(WIDE, ExecutorSize(memory_mb=8000)))


@pytest.mark.parametrize("size", [ExecutorSize(cores=9), ExecutorSize(memory_mb=10**6)], ids=str)
def test_what_no_worker_could_ever_have_is_planned_as_needed(size: ExecutorSize) -> None:
    """Managers may count otherwise than they tell: YARN may leave cores uncounted."""
    cluster = standalone(8, memory_mb=8000)
    assert plan(WIDE, cluster, run=run_of(WIDE, size)) == plan(WIDE, cluster)


@settings(max_examples=60, deadline=None)
@given(dataflows(10), clusters(), st.integers(0, 8), st.sampled_from([0, 1500, 4000]), st.sampled_from(["", "auto"]))
def test_plans_of_any_size_are_right(flow: Dataflow, cluster: Cluster, cores: int, memory: int, policy: str) -> None:
    try:
        made = plan(flow, cluster, run=run_of(flow, ExecutorSize(cores, memory), policy))
    except DoesNotFit:
        return
    assert check(made, flow, cluster) == ()
