"""Containers of a resident group hold the least that equal ones on the same workers can, and say so.

agg x 9, of which six were on w1, and src x 3     w1 [aa][aa][aa]  w2 [as]  w3 [as]  w4 [as]     6 of 2: 12 for 12
"""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from airflow_dagsched.launch.managers.executors import size_executors
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.dataflow import Block, Channel, Dataflow, Partition, Source, Step
from airflow_dagsched.model.state import Assignment, State
from airflow_dagsched.placement.request import make_request
from airflow_dagsched.placement.settings import SPARK, PlacementSettings
from airflow_dagsched.placement.values import Amounts, ContainerPlan, InstancePlan, Offer
from airflow_dagsched.plan.checking import check
from airflow_dagsched.plan.checking.optimality import check_strictly
from airflow_dagsched.plan.passes.containers.repack_equally import repack_equally
from airflow_dagsched.plan.passes.pin_hosts import count_containers
from airflow_dagsched.plan.plan_types import Plan
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.problem.run import Policy, Run
from tests.plan.drawn import standalone

GROWN = Dataflow(
    name="f",
    steps=(
        Step(id="src", parallelism=3, mode="streaming"),
        Step(id="agg", parallelism=9, mode="streaming", stateful=True),
    ),
    channels=(Channel(src="src", dst="agg"),),
)
BEFORE = State(previous=Assignment(active={f"agg/{at}": "w1" for at in range(6)}))


def place(flow: Dataflow, cluster: Cluster, state: State, placement: PlacementSettings = SPARK) -> Plan:
    made = plan(flow, cluster, run=Run(policy=Policy("high_availability", placement, state)))
    assert check_strictly(made, flow, cluster, state=state) == ()
    return made


def test_six_on_one_worker_are_three_containers_there() -> None:
    made = place(GROWN, standalone(8, 8, 8, 8), BEFORE)
    group = made.groups[0]
    assert sorted((box.worker, box.cores, len(box.instances)) for box in group.containers) == [
        *[("w1", 2, 2)] * 3,
        ("w2", 2, 2),
        ("w3", 2, 2),
        ("w4", 2, 2),
    ]
    assert size_executors(group, standalone(8, 8, 8, 8)).on == {"w1": 3, "w2": 1, "w3": 1, "w4": 1}
    assert made.compared[0].core_seconds == pytest.approx(12 * group.time.total_s)


def test_the_checker_finds_containers_that_hold_too_much() -> None:
    """Each as large as the fullest worker's whole: 4 of 6 cores for 12 instances."""
    cluster = standalone(8, 8, 8, 8)
    made = place(GROWN, cluster, BEFORE)
    group = made.groups[0]
    first, *rest = [box for box in group.containers if box.worker == "w1"]
    whole = replace(first, instances=tuple(one for box in (first, *rest) for one in box.instances))
    boxes = [whole, *(box for box in group.containers if box.worker != "w1")]
    memory = math.ceil(6 * 512 + 384)
    large = tuple(
        replace(
            box,
            cores=6,
            memory_mb=memory,
            required=replace(
                box.required, cores=len(box.instances), memory_mb=min(memory, 512 * len(box.instances) + 384)
            ),
        )
        for box in boxes
    )
    wrong = replace(made, groups=(replace(group, containers=large),))
    told = {violation.rule for violation in check_strictly(wrong, GROWN, cluster, state=BEFORE)}
    assert {"sizes", "compared"} <= told


def test_copies_alone_ask_for_no_executor() -> None:
    """One stateful instance, and its standby on the other worker: an application of one executor."""
    flow = Dataflow(name="f", steps=(Step(id="a", mode="streaming", stateful=True, state_mb=50),))
    cluster = standalone(4, 4)
    made = place(flow, cluster, State(), replace(SPARK, num_standbys=1))
    group = made.groups[0]
    alone = [box for box in group.containers if not box.instances]
    assert [(box.cores, box.required.cores, len(box.standbys)) for box in alone] == [(0, 0, 1)]
    assert sum(count_containers(group).values()) == size_executors(group, cluster).count == 1
    asked = replace(made, groups=(replace(group, containers=(*group.executors, replace(alone[0], cores=1))),))
    assert {violation.rule for violation in check(asked, flow, cluster)} == {"shape"}


def test_what_loses_its_last_instance_is_no_executor() -> None:
    """
    w1   scan/0 ──> agg/0                       the partition is one task: no rows come to w2
    w2   agg/1 (left out), a copy of agg/0      what stays there is no executor
    """
    day = Partition(bytes=2**21, blocks=tuple(Block(bytes=2**20, hosts=(host,)) for host in ("h1", "h2")))
    steps = (
        Step(
            id="scan",
            parallelism=2,
            pinned=("w1",),
            works_without_input=False,
            sources=(Source(path="t", partitions=(day,)),),
        ),
        Step(id="agg", parallelism=2, works_without_input=False, stateful=True, state_mb=50),
    )
    flow = Dataflow(name="f", steps=steps, channels=(Channel(src="scan", dst="agg", routing="forward"),))
    before = State(previous=Assignment(active={"agg/0": "w1", "agg/1": "w2"}))
    group = place(flow, standalone(2, 2), before, replace(SPARK, num_standbys=1)).groups[0]
    assert [(box.worker, box.cores, len(box.instances), len(box.standbys)) for box in group.containers] == [
        ("w1", 1, 2, 0),
        ("w2", 0, 0, 1),
    ]
    assert [entry.id for entry in group.pruned if entry.what == "instance"] == ["scan/1", "agg/1"]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=4).filter(any), st.sampled_from([100.0, 400.0, 4000.0]))
def test_no_equal_containers_hold_less(counts: list[int], rate: float) -> None:
    """Of one step, so many on each worker: every size of container tried, ceil(n / c) on each."""
    needs = Amounts(500, 0, 1)
    flow = Dataflow(name="f", steps=(Step(id="a", parallelism=sum(counts), memory_mb=500, mode="streaming"),))
    offers = [Offer(id=f"w{at}", worker=f"w{at}", cores=9, memory_mb=6000) for at in range(len(counts))]
    numbers = iter(range(sum(counts)))
    boxes = [
        ContainerPlan(
            f"c{at}", f"w{at}", tuple(InstancePlan("a", 0, next(numbers), needs) for _ in range(count)), needs, needs
        )
        for at, count in enumerate(counts)
        if count
    ]
    found = repack_equally(make_request(flow, offers, SPARK), boxes, rate)

    def measure(cores: int) -> float:
        """Cores held, and memory at the rate; what a worker has no room for is no way."""
        many = [math.ceil(count / cores) for count in counts]
        # Dealt evenly: the fullest has as many as the share of the worst worker.
        fullest = max(math.ceil(count / boxes) for count, boxes in zip(counts, many, strict=True) if boxes)
        memory = math.ceil(fullest * 500 + max(384.0, fullest * 50))
        if any(boxes * memory > 6000 or boxes * fullest > 9 for boxes in many):
            return math.inf
        return sum(many) * (fullest + memory / rate)

    fullest = max(len(box.instances) for box in found)
    memory = math.ceil(fullest * 500 + max(384.0, fullest * 50))
    assert sum(len(box.instances) for box in found) == sum(counts)
    kept = max(counts)
    as_it_was = len(boxes) * (kept + math.ceil(kept * 500 + max(384.0, kept * 50)) / rate)
    least = min(as_it_was, *(measure(cores) for cores in range(1, 10)))
    assert len(found) * (fullest + memory / rate) == pytest.approx(least)
    assert [box.worker for box in found] == sorted(box.worker for box in found)
