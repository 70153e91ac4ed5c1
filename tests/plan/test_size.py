"""Containers: the arithmetic of each case stands beside its number."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.model.cluster import Cluster, Free, Worker
from airflow_dagsched.model.dataflow import Dataflow, Step
from airflow_dagsched.plan.costing.demand import deal_instances, make_demand
from airflow_dagsched.plan.costing.executor_shape import size_group
from airflow_dagsched.plan.plan_types import Group
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.settings import DEFAULTS, Settings, write_settings_table
from tests.plan.drawn import drawn, standalone

PAGE = Path(__file__).parents[2] / "docs" / "planning.md"
HEAD = "<!-- settings: generated from airflow_dagsched/plan/settings.py -->\n"


def sized(edges: str, cluster: Cluster, settings: Settings = DEFAULTS, **steps: dict[str, Any]) -> Group:
    return plan(drawn(edges, tasks="", **steps), cluster, settings).groups[0]


def shapes(group: Group) -> list[tuple[str, int, int]]:
    return [(box.worker, box.cores, box.memory_mb) for box in group.containers]


def test_waves_need_the_memory_of_the_largest_so_many() -> None:
    """3 instances of 1000 MiB and 5 of 100 on 4 cores: 3 x 1000 + 100, and a padding of 384."""
    group = sized(
        "a == b",
        standalone(4),
        Settings(slots=1),
        a={"parallelism": 3, "memory_mb": 1000},
        b={"parallelism": 5, "memory_mb": 100},
    )
    assert shapes(group)[0] == ("w1", 4, 3 * 1000 + 100 + 384)


def test_resident_instances_need_the_sum() -> None:
    """1 + 2 x 1 cores, 500 + 2 x 700 MiB and a padding of 384."""
    group = sized(
        "a == b", standalone(8), a={"mode": "streaming", "memory_mb": 500}, b={"parallelism": 2, "memory_mb": 700}
    )
    assert group.residency == "all"
    assert shapes(group) == [("w1", 3, 500 + 2 * 700 + 384)]


def test_resident_instances_spread_over_the_fewest_workers() -> None:
    """Six cores on workers of four: two containers of three cores."""
    step = {"mode": "streaming", "parallelism": 6, "memory_mb": 100}
    assert shapes(sized("a", standalone(4, 4, 4), a=step)) == [("w1", 3, 300 + 384), ("w2", 3, 300 + 384)]


def test_unlike_workers_hold_several_equal_containers() -> None:
    """All fourteen cores of workers of 2, 4 and 8: seven containers of two."""
    step = {"mode": "streaming", "parallelism": 14, "memory_mb": 100}
    group = sized("a", standalone(2, 4, 8), a=step)
    assert [box.worker for box in group.containers] == ["w1", "w2", "w2", "w3", "w3", "w3", "w3"]
    assert {shape[1:] for shape in shapes(group)} == {(2, 200 + 384)}


def test_first_fit_in_natural_order() -> None:
    """Ten cores wanted in containers of four: w1 has room for one, w2 for two."""
    group = sized("a", standalone(4, 8, 8), a={"parallelism": 10, "memory_mb": 10})
    assert [box.worker for box in group.containers] == ["w1", "w2", "w2"]
    assert sorted(len(box.instances) for box in group.containers) == [3, 3, 4]


def test_fewer_cores_where_memory_is_short() -> None:
    """Two at once need 2 x 3000 + 600 MiB, one needs 3000 + 384: only that fits 4096."""
    group = sized("a", standalone(4, memory_mb=4096), a={"parallelism": 4, "memory_mb": 3000})
    assert shapes(group) == [("w1", 1, 3384)]


def test_a_pinned_step_is_on_its_worker_only() -> None:
    group = sized("a == b", standalone(4, 4, 4), a={"pinned": ("w3",), "parallelism": 2}, b={"parallelism": 2})
    where = {one: box.worker for box in group.containers for one in box.instances}
    assert {where["a", 0], where["a", 1]} == {"w3"}


def test_a_local_group_is_one_container_that_is_the_driver() -> None:
    worker = Worker(id="here", host="localhost", cores=8, memory_mb=8000, free=Free(cores=2))
    group = sized("a", Cluster(manager="local", workers=(worker,)), a={"memory_mb": 1000})
    assert shapes(group) == [("here", 2, 1000 + 384)]
    assert (group.driver.worker, group.driver.cores, group.driver.memory_mb) == ("here", 0, 0)


@pytest.mark.parametrize(
    ("step", "dimension", "needed", "available"),
    [
        ({"cores": 9}, "cores of an instance", 9, 4),
        ({"memory_mb": 10_000}, "memory of a container with 1 cores", 11_000, 8000),
        ({"pinned": ("w7",)}, "workers it is pinned to", 1, 0),
        ({"mode": "streaming", "parallelism": 5}, "cores of all its resident instances", 5, 4),
        ({"disk_mb": 600}, "disk of its containers", 600, 500),
    ],
)
def test_what_does_not_fit_is_refused_with_its_numbers(
    step: dict[str, Any], dimension: str, needed: int, available: int
) -> None:
    cluster = Cluster(manager="standalone", workers=(Worker(id="w1", host="h", cores=4, memory_mb=8000, disk_mb=500),))
    with pytest.raises(DoesNotFit) as refused:
        sized("a", cluster, a=step)
    assert (refused.value.dimension, refused.value.needed, refused.value.available) == (dimension, needed, available)


def test_a_cluster_without_workers_fits_nothing() -> None:
    with pytest.raises(DoesNotFit, match="needed 1 cores, available 0"):
        sized("a", Cluster(manager="standalone"))


def test_the_page_on_planning_has_the_table() -> None:
    """``DAGSCHED_REFRESH=1`` writes it."""
    if os.environ.get("DAGSCHED_REFRESH"):
        PAGE.write_text(PAGE.read_text().partition(HEAD)[0] + HEAD + write_settings_table())
    assert PAGE.read_text().endswith(HEAD + write_settings_table())


def test_the_settings_table_has_a_row_for_each() -> None:
    rows = write_settings_table().splitlines()[2:]
    assert [row.split("`")[1] for row in rows] == [name for name in Settings.__struct_fields__ if name != "version"]
    assert "| `slots` | 64 | steps | 1 to 64 | Steps side by side in a batch group, at most. |" in rows


STEPS = st.builds(
    Step,
    id=st.just("a"),
    parallelism=st.integers(1, 9),
    cores=st.integers(1, 3),
    memory_mb=st.sampled_from([0, 500, 9_000]),
    runtime_s=st.sampled_from([0, 1.5, 20]),
    mode=st.sampled_from(["batch", "streaming"]),
    pinned=st.sampled_from([(), ("w1", "w3")]),
)


@settings(deadline=None)
@given(STEPS)
def test_containers_of_one_step_hold_what_dealing_gives_them(step: Step) -> None:
    """The general way of dealing instances out is the oracle of the short one."""
    flow, cluster = Dataflow(name="one", steps=(step,)), standalone(4, 3, 8)
    try:
        group = plan(flow, cluster).groups[0]
    except DoesNotFit:
        return
    facts = Problem.of(flow, cluster, DEFAULTS)
    demand = make_demand("launch", (0,), facts)
    shares = size_group("launch", (0,), facts).dealt or deal_instances(demand, [box.worker for box in group.containers])
    for box, share in zip(group.containers, shares, strict=True):
        assert box.instances == tuple(share.instances)
        assert box.required == share.sum_required(demand, box.cores)


@settings(deadline=None)
@given(st.lists(STEPS, min_size=2, max_size=6))
def test_steps_that_are_alike_are_sized_as_each_on_its_own(steps: list[Step]) -> None:
    """What is known of one step alone holds for others of its kind, but for what a wave of them takes."""
    cluster = standalone(4, 3, 8)
    apart = [replace(step, id=f"s{at}", isolate=True) for at, step in enumerate(steps)]
    try:
        together = plan(Dataflow(name="all", steps=tuple(apart)), cluster).groups
    except DoesNotFit:
        return
    alone = {step.id: plan(Dataflow(name="one", steps=(step,)), cluster).groups[0] for step in apart}
    for group in together:
        own = alone[group.steps[0]]
        sizes = [[(box.required, box.cores, box.memory_mb) for box in one.containers] for one in (group, own)]
        assert sizes[0] == sizes[1]
        assert group.time == own.time


@pytest.mark.parametrize("beside", [{}, {"narrow": {"runtime_s": 1}}])
def test_instances_of_3_cores_leave_none_idle(beside: dict[str, Any]) -> None:
    """4 of them on 12 cores: in 3 containers of 4 cores they would run in two waves."""
    made = plan(drawn("", wide={"parallelism": 4, "cores": 3, "runtime_s": 60}, **beside), standalone(12, 1))
    wide = next(group for group in made.groups if "wide" in group.steps)
    assert [box.cores for box in wide.containers] == [3, 3, 3, 3]
    assert wide.time.compute == pytest.approx(60, abs=2)
