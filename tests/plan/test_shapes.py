"""What a policy chooses among shapes of container, against an exhaustive search over shapes and placements.

dear   16 cores, cost 10     [    ]          four instances of 60 s: 2400 on one container of 4 cores,
spot1   2 cores, cost 1      [aa]            240 on two of 2
spot2   2 cores, cost 1      [aa]
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.dataflow import Channel, Dataflow, Step
from airflow_dagsched.model.state import State
from airflow_dagsched.placement.settings import SPARK
from airflow_dagsched.plan.checking.optimality import check_strictly
from airflow_dagsched.plan.plan_types import Group, Plan
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.problem.run import Policy, Run
from airflow_dagsched.plan.settings import Settings

MIB, CONTAINER_CORES, MOVED = 2**20, 4, 0.01
Where = tuple[int, ...]
"""The worker of each instance."""


def make_worker(name: str, cores: int, cost: float = 1.0, memory_mb: int = 64_000, **fields: Any) -> Worker:
    return Worker(id=name, host=f"host-{name}", cores=cores, memory_mb=memory_mb, cost=cost, **fields)


def make_cluster(*workers: Worker) -> Cluster:
    return Cluster(manager="standalone", workers=workers)


def place(flow: Dataflow, cluster: Cluster, name: str, state: State | None = None) -> Plan:
    # No group beside another: what one leaves over is no matter of shapes.
    together = Settings(together=(tuple(step.id for step in flow.steps),))
    made = plan(flow, cluster, together, run=Run(policy=Policy(name, SPARK, state or State())))
    assert check_strictly(made, flow, cluster, together, state=state or State()) == ()
    return made


def list_containers(group: Group) -> list[tuple[str, int, int]]:
    return [(box.worker, box.cores, len(box.instances)) for box in group.containers]


@pytest.mark.parametrize("name", ["cheapest", "auto"])
def test_cheap_workers_that_are_smaller_than_the_planned_container(name: str) -> None:
    cluster = make_cluster(make_worker("dear", 16, 10.0), make_worker("spot1", 2), make_worker("spot2", 2))
    made = place(Dataflow(name="f", steps=(Step(id="s", parallelism=4, runtime_s=60),)), cluster, name)
    assert list_containers(made.groups[0]) == [("spot1", 2, 2), ("spot2", 2, 2)]
    assert made.groups[0].placement.endswith("; costs 240; first_fit costs 2,400") == (name == "auto")


@st.composite
def small_problems(draw: st.DrawFn) -> tuple[Dataflow, Cluster]:
    """At most three workers and six instances, of one or two steps, batch or streaming."""
    mode = draw(st.sampled_from(["batch", "streaming"]))
    widths = draw(st.lists(st.integers(1, 3), min_size=1, max_size=2))
    steps = tuple(
        Step(
            id=f"s{at}",
            parallelism=count,
            cores=draw(st.integers(1, 2)),
            memory_mb=draw(st.sampled_from([500, 900, 1500])),
            runtime_s=draw(st.sampled_from([10, 60])),
            mode=mode,  # type: ignore[arg-type]
        )
        for at, count in enumerate(widths)
    )
    bytes_moved = draw(st.sampled_from([0, 2**30, 2**36]))
    channels = (Channel(src="s0", dst="s1", bytes=bytes_moved),) if len(steps) == 2 else ()
    workers = [
        make_worker(
            f"w{at}",
            draw(st.sampled_from([1, 2, 3, 5, 8])),
            draw(st.sampled_from([1.0, 2.5, 10.0])),
            draw(st.sampled_from([1500, 3000, 6000])),
        )
        for at in range(draw(st.integers(1, 3)))
    ]
    return Dataflow(name="f", steps=steps, channels=channels), make_cluster(*workers)


def list_units(flow: Dataflow) -> list[tuple[int, Step]]:
    """Every instance: the number of its step, and the step."""
    return [(at, step) for at, step in enumerate(flow.steps) for _ in range(step.parallelism)]


def pad(memory_mb: float) -> int:
    return math.ceil(memory_mb + max(384.0, memory_mb * 0.1))


def compute_price(flow: Dataflow, workers: Sequence[Worker], where: Where) -> float:
    """Cost x cores x seconds of each instance, and a hundredth of each MiB that goes to another worker."""
    units = list_units(flow)
    total = sum(workers[at].cost * step.cores * step.runtime_s for (_, step), at in zip(units, where, strict=True))
    for channel in flow.channels:
        sent, read = ([at for (number, _), at in zip(units, where, strict=True) if number == end] for end in (0, 1))
        apart = sum(one != other for one in sent for other in read)
        total += channel.bytes / MIB * MOVED * apart / len(sent) / len(read)
    return total


def can_pack(items: Sequence[tuple[int, int]], count: int, cores: int, memory_mb: float) -> bool:
    """Whether (cores, memory) go into so many bins: each in turn tried in each."""
    bins = [(cores, memory_mb)] * count

    def go(at: int) -> bool:
        if at == len(items):
            return True
        for box in dict.fromkeys(bins):
            left = box[0] - items[at][0], box[1] - items[at][1]
            if min(left) >= -1e-6:
                where = bins.index(box)
                bins[where] = left
                if go(at + 1):
                    return True
                bins[where] = box
        return False

    return go(0)


def list_shapes(flow: Dataflow, workers: Sequence[Worker]) -> Iterator[tuple[int, int]]:
    """Cores and memory of a container: all cores, and of memory what matters."""
    widest = max(step.cores for step in flow.steps)
    memories = sorted((step.memory_mb for _, step in list_units(flow)), reverse=True)
    if flow.steps[0].mode == "streaming":
        amounts = {worker.memory_mb // count for worker in workers for count in range(1, 7)}
        yield from itertools.product(range(widest, 9), sorted(amounts))
        return
    # Spark may hand any task to any executor: memory for the largest of what its cores run at once.
    for cores in range(widest, max(widest, CONTAINER_CORES) + 1):
        yield cores, pad(sum(memories[: max(1, cores // min(step.cores for step in flow.steps))]))


def fits(flow: Dataflow, workers: Sequence[Worker], where: Where, shape: tuple[int, int]) -> bool:
    """Whether on each worker the instances, of batch those of each step in turn, go into containers of the shape."""
    streaming = flow.steps[0].mode == "streaming"
    rounds = [set(range(len(flow.steps)))] if streaming or not flow.channels else [{0}, {1}]
    usable = max(0.0, min(shape[1] - 384, shape[1] / 1.1))
    for now, (at, worker) in itertools.product(rounds, enumerate(workers)):
        count = min(worker.cores // shape[0], worker.memory_mb // shape[1])
        items = [
            (step.cores, step.memory_mb if streaming else 0)
            for (number, step), on in zip(list_units(flow), where, strict=True)
            if on == at and number in now
        ]
        if not can_pack(sorted(items, reverse=True), count, shape[0], usable):
            return False
    return True


def find_least_price(flow: Dataflow, workers: Sequence[Worker]) -> float | None:
    """Over all shapes and all placements in which nothing waits; None: there is none."""
    shapes = list(list_shapes(flow, workers))
    placements = itertools.product(range(len(workers)), repeat=len(list_units(flow)))
    for price, where in sorted((compute_price(flow, workers, where), where) for where in placements):
        if any(fits(flow, workers, where, shape) for shape in shapes):
            return price
    return None


@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(small_problems())
def test_no_shape_and_no_placement_is_cheaper(problem: tuple[Dataflow, Cluster]) -> None:
    flow, cluster = problem
    least = find_least_price(flow, cluster.workers)
    if least is None:
        return
    group = place(flow, cluster, "cheapest").groups[0]
    position = {worker.id: at for at, worker in enumerate(cluster.workers)}
    on = {one: position[box.worker] for box in group.containers for one in box.instances}
    where = tuple(on[step.id, index] for step in flow.steps for index in range(step.parallelism))
    assert compute_price(flow, cluster.workers, where) == pytest.approx(least, rel=1e-9)
