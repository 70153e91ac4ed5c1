"""From the file formats and back: rows of Kafka's answers as dataflow, cluster and state; units, racks, pins."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_dagsched.errors import DoesNotFit, InvalidInput
from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.codec import check_value, decode_json, encode_value
from airflow_dagsched.model.dataflow import Dataflow, Step
from airflow_dagsched.model.ranges import LARGEST
from airflow_dagsched.model.state import Assignment, Lag, State
from airflow_dagsched.placement.high_availability.assign import assign_instances, convert_outcome
from airflow_dagsched.placement.high_availability.settings import DEFAULTS, Settings
from airflow_dagsched.placement.high_availability.values import Instance, Movement, Outcome
from airflow_dagsched.placement.high_availability.values import Worker as Host
from airflow_dagsched.placement.values import AssignmentPlan, name_instance
from airflow_dagsched.plan.plan_types import Plan
from tests.placement.high_availability import rows
from tests.placement.high_availability.rows import Row


def hosts(*ids: str, **fields: Any) -> Cluster:
    workers = (Worker(id=at, host=at, **{"cores": 1, "memory_mb": 1000, **fields}) for at in ids)
    return Cluster(manager="standalone", workers=tuple(workers))


def flow(**steps: dict[str, Any]) -> Dataflow:
    return Dataflow(name="flow", steps=tuple(Step(id=at, **fields) for at, fields in steps.items()))


def assign(dataflow: Dataflow, cluster: Cluster, state: State, settings: Settings = DEFAULTS) -> AssignmentPlan:
    """With room for everything on every worker; its capacity is its cores."""
    instances = [
        Instance(name_instance(step.id, at), step.id, step.stateful, step.weight, frozenset(step.pinned))
        for step in dataflow.steps
        for at in range(step.parallelism)
    ]
    workers = [
        Host(one.id, one.cores, {**one.tags, **({"rack": one.rack} if one.rack else {})}) for one in cluster.workers
    ]
    live = [worker for worker in workers if worker.capacity]
    return convert_outcome(assign_instances(instances, live, state, settings))


def as_files(row: Row) -> tuple[Dataflow, Cluster, State]:
    """Every task a step of one instance; a lag above what a file can hold is the most it can."""
    kinds = row["tasks"]
    steps = {at: {"stateful": kind == "stateful"} for kind in ("stateful", "stateless") for at in kinds[kind]}
    workers = tuple(
        Worker(id=at["id"], host=at["id"], cores=at["capacity"], memory_mb=1, tags=at.get("tags", {}))
        for at in row["instances"]
    )
    lags = tuple(
        Lag(instance=f"{at}/0", worker=worker, rows=None if lag < 0 else min(lag, LARGEST), running=lag == -2)
        for worker, reported in row["lags"].items()
        for at, lag in reported.items()
    )
    prior = rows.previous(row) or Assignment()
    previous = Assignment(
        active={f"{at}/0": worker for at, worker in prior.active.items()},
        standby={f"{at}/0": workers for at, workers in prior.standby.items()},
    )
    cluster = Cluster(manager="standalone", workers=workers)
    return flow(**steps), cluster, State(lags=lags, previous=previous if prior.active else None)


def back(assigned: AssignmentPlan) -> Outcome:
    """In the names of the row."""
    made = assigned.assignment
    return Outcome(
        Assignment(
            active={at.removesuffix("/0"): worker for at, worker in made.active.items()},
            standby={at.removesuffix("/0"): workers for at, workers in made.standby.items()},
            warmup={at.removesuffix("/0"): workers for at, workers in made.warmup.items()},
        ),
        tuple(_moved(moved) for moved in assigned.movements),
        assigned.follow_up,
    )


def _moved(moved: Any) -> Movement:
    what, how = moved.reason.split(":")[0], {"hand-over": "hand over", "warm-up": "warm up", "waits": "wait"}
    return Movement(
        instance=moved.instance.removesuffix("/0"),
        source=moved.from_worker,
        target=moved.to_worker,
        lag=moved.lag,
        copy="standby" if what.endswith("of the standby") else "active",
        how=how[what.removesuffix(" of the standby")],  # type: ignore[arg-type]
        limit=0,
    )


@pytest.mark.parametrize("row", rows.rows("ha_current", "fallback_prior"), ids=rows.name)
def test_trunk(row: Row) -> None:
    files = [check_value(type(value), value, row["name"]) for value in as_files(row)]
    made = assign(*files, rows.settings(row, "kafka"))  # type: ignore[arg-type]
    assert rows.broken(row, back(made)) == []


@pytest.mark.parametrize("row", rows.rows("kip_original_assign"), ids=rows.name)
def test_first_code(row: Row) -> None:
    assert rows.broken(row, back(assign(*as_files(row), rows.settings(row, "kafka_2020")))) == []


def test_what_comes_out_is_what_a_plan_holds() -> None:
    """x is on w1 beside y; w2 is empty, so one of them is copied there."""
    state = State(
        lags=(Lag(instance="x/0", worker="w1", running=True), Lag(instance="x/1", worker="w1", running=True)),
        previous=Assignment(active={"x/0": "w1", "x/1": "w1"}),
    )
    made = assign(flow(x={"parallelism": 2, "stateful": True}), hosts("w1", "w2"), state)
    plan = Plan(
        dataflow="flow",
        digest="",
        assignment=made.assignment,
        movements=made.movements,
        follow_up=made.follow_up,
    )
    assert decode_json(Plan, encode_value(plan), "plan") == plan
    assert made.assignment == Assignment(active={"x/0": "w1", "x/1": "w1"}, warmup={"x/0": ("w2",)})
    assert [moved.reason for moved in made.movements] == ["warm-up: w2 has lag unknown, takes over at 10000"]
    assert made.follow_up


@pytest.mark.parametrize("unit", ["rows", "bytes", "seconds"])
def test_the_unit_of_the_limit_is_that_of_most_lags(unit: str) -> None:
    """w2 is 5 behind, w3 50: at a limit of 10 the instance of the dead w1 goes to w2. One stray lag says otherwise."""
    stray = "seconds" if unit == "rows" else "rows"
    state = State(
        lags=(
            Lag(instance="x/0", worker="w3", **{unit: 50}),
            Lag(instance="x/0", worker="w2", **{unit: 5}),
            Lag(instance="y/0", worker="w3", **{stray: 0}),
        ),
        previous=Assignment(active={"x/0": "w1"}),
    )
    made = assign(flow(x={"stateful": True}), hosts("w2", "w3"), state, Settings(acceptable_recovery_lag=10))
    assert made.assignment.active == {"x/0": "w2"}
    assert [moved.lag for moved in made.movements] == [5]


def test_unknown_is_worse_than_far_behind() -> None:
    state = State(
        lags=(Lag(instance="x/0", worker="w2"), Lag(instance="x/0", worker="w3", rows=10**9)),
        previous=Assignment(active={"x/0": "w1"}),
    )
    assert assign(flow(x={"stateful": True}), hosts("w2", "w3"), state).assignment.active == {"x/0": "w3"}


def test_standbys_are_on_other_racks() -> None:
    """Two racks of two workers: every standby is on the rack its active is not on."""
    workers = tuple(Worker(id=f"w{at}", host=f"w{at}", rack=f"r{at // 2}", cores=1, memory_mb=1) for at in range(4))
    cluster = Cluster(manager="standalone", workers=workers)
    rack = {worker.id: worker.rack for worker in workers}
    settings = Settings(num_standbys=1, spread_tags=("rack",))
    made = assign(flow(x={"parallelism": 8, "stateful": True}), cluster, State(), settings).assignment
    assert all(rack[made.standby[at][0]] != rack[worker] for at, worker in made.active.items())


def test_heavier_steps_count_for_more() -> None:
    """Weights 4, 1, 1, 1, 1 on two workers: the heavy one is alone."""
    heavy, light = {"stateful": True, "weight": 4.0}, {"stateful": True, "parallelism": 4}
    made = assign(flow(heavy=heavy, light=light), hosts("w1", "w2"), State()).assignment.active
    assert {at for at, worker in made.items() if worker == made["heavy/0"]} == {"heavy/0"}


def test_pinned_steps_stay_on_their_workers() -> None:
    pinned = {"stateful": True, "parallelism": 4, "pinned": ("w2", "w3")}
    settings = Settings(num_standbys=2)
    made = assign(flow(x=pinned), hosts("w1", "w2", "w3"), State(), settings).assignment
    assert set(made.active.values()) == {"w2", "w3"}
    assert all({worker, *made.standby[at]} == {"w2", "w3"} for at, worker in made.active.items())
    with pytest.raises(DoesNotFit, match="workers it is pinned to needed 1, available 0"):
        assign(flow(x=pinned), hosts("w1"), State())
    with pytest.raises(InvalidInput, match="no pinned steps"):
        assign(flow(x=pinned), hosts("w2"), State(), Settings(strategy="kafka"))


def test_nowhere_to_go() -> None:
    with pytest.raises(DoesNotFit, match="workers needed 1, available 0"):
        assign(flow(x={"stateful": True}), hosts("w1", cores=0), State())


def test_silence_is_no_reason_to_move() -> None:
    """Nothing is reported: all stay, the new worker is given a copy first."""
    state = State(previous=Assignment(active={f"x/{at}": "w1" for at in range(4)}))
    made = assign(flow(x={"parallelism": 4, "stateful": True}), hosts("w1", "w2"), state)
    assert set(made.assignment.active.values()) == {"w1"}
    assert sum(map(len, made.assignment.warmup.values())) == 2


def test_a_lag_given_twice_is_refused() -> None:
    twice = (Lag(instance="x/0", worker="w1", rows=1), Lag(instance="x/0", worker="w1", rows=2))
    with pytest.raises(InvalidInput, match=r"lags\[1\]: the lag of 'x/0' on 'w1' is given twice"):
        assign(flow(x={"stateful": True}), hosts("w1"), State(lags=twice))
