"""Batch groups where disks have limits: a group is refused only if no number of equal containers has room."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.dataflow import Dataflow, Step
from airflow_dagsched.model.state import State
from airflow_dagsched.placement.policy import POLICIES
from airflow_dagsched.placement.settings import PlacementSettings
from airflow_dagsched.plan.checking import check
from airflow_dagsched.plan.costing.executor_shape import size_group
from airflow_dagsched.plan.plan_types import Group
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.problem.run import Policy, Run
from airflow_dagsched.plan.settings import DEFAULTS

Room = tuple[int, int, int | None]
"""Cores, memory and disk (None: no limit) of a worker."""

rooms = st.tuples(
    st.integers(1, 6), st.sampled_from([900, 1500, 9000]), st.one_of(st.none(), st.sampled_from([0, 90, 200, 400]))
)


def cluster_of(workers: list[Room]) -> Cluster:
    there = (
        Worker(id=f"w{at}", host=f"h{at}", cores=cores, memory_mb=memory, disk_mb=disk)
        for at, (cores, memory, disk) in enumerate(workers)
    )
    return Cluster(manager="standalone", workers=tuple(there))


def has_room(step: Step, workers: list[Room]) -> bool:
    """Whether so many containers of one instance at a time, each with an even share of the disk, fit somewhere."""
    memory = 512 + 384
    allowed = [room for at, room in enumerate(workers) if not step.pinned or f"w{at}" in step.pinned]
    for count in range(1, step.parallelism + 1):
        share = -(-step.parallelism // count) * (step.disk_mb or 1)
        copies = (
            min(cores // step.cores, has // memory, count if disk is None else disk // share)
            for cores, has, disk in allowed
        )
        if sum(copies) >= count:
            return True
    return False


@settings(max_examples=100, deadline=None)
@given(
    st.lists(rooms, min_size=1, max_size=4),
    st.integers(1, 6),
    st.sampled_from([0, 30, 100]),
    st.integers(1, 2),
    st.sets(st.sampled_from(["w0", "w1", "w2"]), max_size=2),
)
@example([(8, 16000, 10), (4, 16000, None)], 1, 100, 1, set())
@example([(16, 64000, 10), (1, 8000, None), (8, 64000, None)], 20, 0, 2, set())
@example([(8, 16000, 10), (4, 16000, None)], 4, 100, 1, {"w0", "w1"})
def test_a_batch_group_is_refused_only_where_nothing_has_room(
    workers: list[Room], parallelism: int, disk: int, cores: int, pinned: set[str]
) -> None:
    step = Step(id="a", parallelism=parallelism, disk_mb=disk, cores=cores, memory_mb=512, pinned=tuple(sorted(pinned)))
    flow, cluster = Dataflow(name="d", steps=(step,)), cluster_of(workers)
    try:
        made = plan(flow, cluster)
    except DoesNotFit:
        assert not has_room(step, workers)
        return
    assert has_room(step, workers)
    assert not check(made, flow, cluster)
    used = {box.worker for box in made.groups[0].containers}
    assert all(sum_disk(made.groups[0], at) <= (workers[int(at[1:])][2] or 10**9) for at in used)


def sum_disk(group: Group, worker: str) -> int:
    return sum(box.disk_mb for box in group.containers if box.worker == worker)


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_no_policy_is_refused_what_another_worker_has_room_for(name: str) -> None:
    """100 MiB of disk: the first worker has more cores, and 10."""
    flow = Dataflow(name="d", steps=(Step(id="a", disk_mb=100, runtime_s=10),))
    cluster = cluster_of([(8, 16000, 10), (4, 16000, None)])
    made = plan(flow, cluster, DEFAULTS, run=Run(policy=Policy(name, PlacementSettings(), State())))
    assert [box.worker for box in made.groups[0].containers] == ["w1"]


def test_disk_suffices_in_whichever_order_the_steps_start() -> None:
    """Disk 9 x 10 + 2 x 1 on three workers with 31 each: three containers of 3 x 10, two of them with one more."""
    steps = [
        Step(id="a", disk_mb=10),
        Step(id="b", disk_mb=10, parallelism=7, cores=2),
        Step(id="c", disk_mb=10),
        Step(id="d", parallelism=2),
    ]
    cluster = cluster_of([(2, 8000, 31), (4, 8000, 31), (2, 8000, 31)])
    for order in permutations(range(4)):
        ordered = [replace(step, order=at) for step, at in zip(steps, order, strict=True)]
        problem = Problem.of(Dataflow(name="f", steps=tuple(ordered)), cluster, DEFAULTS)
        held = size_group("g", order, problem).disk_mb
        assert sorted(held) == [30, 31, 31]
