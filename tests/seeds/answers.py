"""What the documents this project comes from work out by hand: the answers their DAG files are compared with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.state import Assignment, Lag, State
from airflow_dagsched.placement.settings import parse_settings
from airflow_dagsched.plan.checking import check
from airflow_dagsched.plan.plan_types import Group, Plan
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.problem.run import Policy, Run
from tests.plan.drawn import drawn

ONE, TWO, THREE, FOUR = (f"127.0.0.{at}" for at in (2, 3, 4, 5))

TWISTER2 = {
    "round_robin": {ONE: "t1/0 t2/0", TWO: "t1/1 t2/1"},
    "first_fit": {ONE: "t1/0 t1/1 t2/0 t2/1"},
}
"""Policy -> worker -> instances: two tasks of two on two containers are dealt, or fill the first."""
COMPLETABLE = {"detour": ["a b c d"], "cut": ["a b", "c d"], "split": ["a b", "c d"]}
"""A detour is merged back; a chain is cut where the least is spilled; a channel that takes everything splits one."""
SPILLED = {"detour": [], "cut": [("b", ("c",))], "split": []}

FAR = 2**53


class Scenario(NamedTuple):
    """Tasks 0_0, 0_1, ... of the KIP are the instances a/0, a/1, ..."""

    had: Mapping[str, str]
    standbys: Mapping[str, tuple[str, ...]]
    behind: Mapping[str, Sequence[int]]
    """Worker -> rows that its copy of each instance lacks."""
    active: Mapping[str, set[str]]
    """The worked answer."""
    warming: Mapping[str, tuple[str, ...]]


KIP = {
    # Kafka's shouldAssignWarmupReplicasEvenIfNoStandbyReplicasConfigured: the second client is new.
    "a new client": Scenario(
        {"a/0": ONE, "a/1": ONE},
        {},
        {ONE: (0, 0), TWO: (FAR, FAR)},
        {ONE: {"a/0", "a/1"}},
        {"a/1": (TWO,)},
    ),
    # shouldEvenlyAssignActiveStatefulTasksIfClientsAreWarmedUp...: two clients have caught up with one task each.
    "warmed up": Scenario(
        dict.fromkeys(("a/0", "a/1", "b/0", "b/1"), ONE),
        {"a/1": (TWO,), "b/0": (THREE,)},
        {ONE: (0, 0, 0, 0), TWO: (FAR, 0, FAR, FAR), THREE: (FAR, FAR, 0, FAR)},
        {ONE: {"a/0", "b/1"}, TWO: {"a/1"}, THREE: {"b/0"}},
        {},
    ),
}


def placed(group: Group) -> dict[str, str]:
    """Worker -> the instances of its container."""
    return {box.worker: " ".join(f"{step}/{at}" for step, at in box.instances) for box in group.containers}


def named(planned: Plan) -> list[str]:
    """The steps of each group."""
    return sorted(" ".join(sorted(group.steps)) for group in planned.groups)


def close(worker: Worker) -> Worker:
    """There, and not ours to use."""
    return replace(worker, cores=0, memory_mb=0)


def make_flow(case: Scenario) -> Dataflow:
    """A step of each name, with its instances, in one line."""
    counts = Counter(instance.partition("/")[0] for instance in case.had)
    sizes = {
        name: {"parallelism": count, "stateful": True, "mode": "streaming", "memory_mb": 200}
        for name, count in counts.items()
    }
    return drawn(" == ".join(counts), **sizes)


def make_state(case: Scenario) -> State:
    lags = (
        Lag(instance=instance, worker=worker, rows=rows)
        for worker, behind in case.behind.items()
        for instance, rows in zip(case.had, behind, strict=True)
    )
    return State(lags=tuple(lags), previous=Assignment(active=dict(case.had), standby=dict(case.standbys)))


def list_by_worker(active: Mapping[str, str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for instance, worker in active.items():
        found.setdefault(worker, set()).add(instance)
    return found


def place_clients(case: Scenario, live: Cluster) -> tuple[Plan, Cluster]:
    """The plan of a scenario on its workers of ``live``, which the checker accepts."""
    ours = replace(live, workers=tuple(one if one.id in case.behind else close(one) for one in live.workers))
    flow, settings = make_flow(case), parse_settings({"strategy": "kafka", "acceptable_recovery_lag": 100})
    planned = plan(flow, ours, run=Run(policy=Policy("high_availability", settings, make_state(case))))
    assert check(planned, flow, ours) == ()
    return planned, ours
