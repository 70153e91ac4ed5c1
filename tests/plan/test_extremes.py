"""Wild sizes: runtimes of any measure, and workers by the thousand. A plan is made, read again and accepted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.codec import decode_json, encode_value
from airflow_dagsched.model.dataflow import Step
from airflow_dagsched.plan.checking import check
from airflow_dagsched.plan.costing.demand import make_demand
from airflow_dagsched.plan.costing.first_fit import ContainerSize, choose_workers
from airflow_dagsched.plan.plan_types import Plan
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.settings import Settings
from airflow_dagsched.plan.simulate.run import simulate_works
from airflow_dagsched.plan.simulate.values import POLICIES, Conditions, Work
from tests.plan.drawn import clusters, drawn, standalone

WILD_S = (1e-6, 1.0, 1e9, 1e12)
"""The least that is told, the usual, and as long as a runtime may be."""


CLUSTER = standalone(3, 1)


@settings(max_examples=30, deadline=None)
@given(data=st.data(), failures=st.sampled_from([0.0, 0.0, 1.0]), noise=st.sampled_from([0.0, 0.5]))
def test_whatever_the_runtimes_a_plan_is_read_checked_and_simulated(
    data: st.DataObject, failures: float, noise: float
) -> None:
    """a == b -- c ~~ d: 1e12 s in 500 waves are 5e14 s, more than a runtime that is read may be."""

    def wild(**fields: Any) -> dict[str, Any]:
        instances = st.sampled_from([1, 7, 2_000])
        return {"runtime_s": data.draw(st.sampled_from(WILD_S)), "parallelism": data.draw(instances), **fields}

    c = wild(mode="streaming", parallelism=1)
    flow = drawn("a == b; b -- c; c ~~ d; e", tasks="", a=wild(), b=wild(), c=c, d=wild(), e=wild())
    told = Settings(failures_per_hour=failures)
    made = decode_json(Plan, encode_value(plan(flow, CLUSTER, told)), "plan")
    assert check(made, flow, CLUSTER, told) == ()
    outcome = simulate_works([Work(made, flow)], CLUSTER, Conditions(noise=noise), POLICIES["plan"], told)
    assert not outcome.unfinished


def choose_slowly(steps: Sequence[Step], cluster: Cluster, size: ContainerSize | None, count: int) -> list[str]:
    """First fit as it is defined, adding everything up at each worker: quadratic in the workers."""

    def fit(worker: Worker) -> int:
        return 1 if size is None else min(worker.cores // size[0], worker.memory_mb // size[1])

    room, taken = {worker.id: fit(worker) for worker in cluster.workers}, {worker.id: 0 for worker in cluster.workers}
    for step in steps:
        allowed = [worker for worker in taken if worker in step.pinned]
        if allowed and not any(taken[worker] for worker in allowed):
            first = [worker for worker in allowed if room[worker]][:1]
            if not first:
                return []
            taken[first[0]] = 1
    pins = {worker for step in steps for worker in step.pinned}
    for worker, has in taken.items():
        if worker in pins or not all(step.pinned for step in steps):
            taken[worker] += min(room[worker] - has, max(0, count - sum(taken.values())))
    return [worker for worker in taken for _ in range(taken[worker])]


@settings(max_examples=200, deadline=None)
@given(clusters(), st.data())
def test_first_fit_is_what_it_was_when_it_added_up_anew_at_each_worker(cluster: Cluster, data: st.DataObject) -> None:
    pins = st.lists(st.sampled_from([worker.id for worker in cluster.workers]), max_size=2, unique=True)
    names = "abc"[: data.draw(st.integers(1, 3), label="steps")]
    pinned = {name: {"pinned": tuple(data.draw(pins, label=name))} for name in names}
    flow = drawn("; ".join(names), tasks="", **pinned)
    size = data.draw(st.none() | st.tuples(st.integers(1, 5), st.sampled_from([100, 3_000]), st.just(0)), label="size")
    count = data.draw(st.integers(1, 20), label="containers")
    demand = make_demand("group", range(len(names)), Problem.of(flow, cluster))
    found = choose_workers(demand, cluster.workers, size, count)
    assert [worker.id for worker in found] == choose_slowly(flow.steps, cluster, size, count)


def test_ten_thousand_workers_are_no_work() -> None:
    """200 wide steps behind one and before one: no look at a worker may cost a look at all others."""
    names = [f"s{at}" for at in range(200)]
    wide = {name: {"parallelism": 500, "runtime_s": 10.0 + at} for at, name in enumerate(names)}
    cluster = standalone(*[16] * 10_000)
    flow = drawn("; ".join(f"load == {name} == join" for name in names), tasks="", **wide)
    made = plan(flow, cluster)
    assert check(made, flow, cluster) == ()
