"""What a resident group may hold: whatever fits in equal containers, fragments, disks and pins included."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.dataflow import Channel, Dataflow, Step
from airflow_dagsched.plan.checking.optimality import check_strictly
from airflow_dagsched.plan.costing.executor_shape import size_group
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.settings import Settings
from tests.plan.drawn import drawn, standalone

UNPADDED = Settings(padding_min_mb=0, padding_fraction=0.0)


def chain(*needs: tuple[int, int, int]) -> Dataflow:
    """Streaming steps of (cores, MiB, instances), each handing on to the next."""
    steps = (
        Step(id=f"s{at}", cores=cores, memory_mb=memory, parallelism=count, mode="streaming", runtime_s=10)
        for at, (cores, memory, count) in enumerate(needs)
    )
    channels = (Channel(src=f"s{at}", dst=f"s{at + 1}") for at in range(len(needs) - 1))
    return Dataflow(name="unlike", steps=tuple(steps), channels=tuple(channels))


def test_many_unlike_instances_are_packed() -> None:
    """On four workers, 58 of 64 cores, 84% of the memory: dealt evenly by cores, some worker has too little of it."""
    flow = chain((1, 1818, 5), (3, 9272, 3), (2, 3636, 8), (1, 909, 4), (2, 1818, 8), (1, 909, 5), (3, 9272, 1))
    cluster = standalone(16, 16, 16, 16, memory_mb=32_000)
    made = plan(flow, cluster)
    assert [len(group.steps) for group in made.groups] == [7]
    assert made.makespan_s == 8 + 10
    assert check_strictly(made, flow, cluster) == ()


def test_disk_that_one_worker_lacks_is_taken_of_another() -> None:
    """a (2 x 100 MiB of disk) and b: one worker has the disk, the other the cores"""
    full = {"mode": "streaming", "memory_mb": 100}
    flow = drawn("a == b", a={**full, "parallelism": 2, "disk_mb": 100}, b={**full, "parallelism": 4})
    cluster = with_disks(standalone(4, 4), 10, 500)
    made = plan(flow, cluster)
    assert [len(group.steps) for group in made.groups] == [2]
    assert check_strictly(made, flow, cluster) == ()


def test_pinned_instances_leave_the_rest_where_there_is_room() -> None:
    """w1 has 2 cores, w2 has 6; a (2) is pinned to w1, b (6 x 1) fills w2 in containers of two cores"""
    flow = drawn("a == b", a={"mode": "streaming", "parallelism": 2, "pinned": ("w1",)}, b={"parallelism": 6})
    made = plan(flow, standalone(2, 6))
    assert sorted(box.worker for box in made.groups[0].containers) == ["w1", "w2", "w2", "w2"]
    assert check_strictly(made, flow, standalone(2, 6)) == ()


def with_disks(cluster: Cluster, *disks: int) -> Cluster:
    workers = zip(cluster.workers, disks, strict=True)
    return replace(cluster, workers=tuple(replace(worker, disk_mb=disk) for worker, disk in workers))


amounts = st.tuples(
    st.integers(1, 3), st.sampled_from([100, 300, 700]), st.sampled_from([10, 50]), st.sampled_from(["", "w1", "w2"])
)
rooms = st.tuples(st.integers(1, 6), st.sampled_from([500, 900, 2000]), st.sampled_from([20, 60, 100]))


@settings(max_examples=150, deadline=None)
@given(st.lists(amounts, min_size=1, max_size=4), st.lists(rooms, min_size=2, max_size=2))
def test_refused_only_where_no_equal_containers_hold_it(
    needs: list[tuple[int, int, int, str]], workers: list[tuple[int, int, int]]
) -> None:
    """Every way to put the instances in containers on two workers is tried."""
    steps = (
        Step(id=f"s{at}", cores=cores, memory_mb=memory, disk_mb=disk, pinned=(pin,) if pin else (), mode="streaming")
        for at, (cores, memory, disk, pin) in enumerate(needs)
    )
    there = (
        Worker(id=f"w{at}", host=f"h{at}", cores=cores, memory_mb=memory, disk_mb=disk)
        for at, (cores, memory, disk) in enumerate(workers, 1)
    )
    facts = Problem.of(
        Dataflow(name="d", steps=tuple(steps)), Cluster(manager="standalone", workers=tuple(there)), UNPADDED
    )
    boxes = itertools.product(range(2 * len(needs)), repeat=len(needs))
    expected = any(holds(needs, workers, one) for one in boxes)
    try:
        size_group("all", range(len(needs)), facts)
    except DoesNotFit:
        assert not expected
    else:
        assert expected


def holds(needs: list[tuple[int, int, int, str]], workers: list[tuple[int, int, int]], boxes: tuple[int, ...]) -> bool:
    """Whether containers, of which every other one is on the second worker, are all as large as the largest."""
    held = [[need for need, box in zip(needs, boxes, strict=True) if box == at] for at in sorted(set(boxes))]
    cores = max(sum(need[0] for need in box) for box in held)
    memory = max(sum(need[1] for need in box) for box in held)
    for at, (has_cores, has_memory, has_disk) in enumerate(workers):
        here = [need for need, box in zip(needs, boxes, strict=True) if box % 2 == at]
        count = len({box for box in boxes if box % 2 == at})
        if count * cores > has_cores or count * memory > has_memory or sum(need[2] for need in here) > has_disk:
            return False
        if any(need[3] not in {"", f"w{at + 1}"} for need in here):
            return False
    return True
