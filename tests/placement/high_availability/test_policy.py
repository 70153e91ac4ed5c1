"""The policy in its place among the others: with capacities, any prior assignment, any lags, every strategy."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from operator import attrgetter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.model.dataflow import Dataflow, Step
from airflow_dagsched.model.state import Assignment, Lag, State
from airflow_dagsched.placement.high_availability.policy import STRATEGIES
from airflow_dagsched.placement.policy import load_policy
from airflow_dagsched.placement.settings import PlacementSettings
from airflow_dagsched.placement.values import AssignmentPlan, Offer, TaskSchedulePlan
from tests.placement.drawn import PLAIN, assert_sound, problems, shuffled
from tests.placement.test_properties import everywhere, fits

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
Problem = tuple[Dataflow, list[Offer]]


def told(**fields: object) -> PlacementSettings:
    return replace(PLAIN, **fields)


def placed(problem: Problem, state: State, said: PlacementSettings) -> TaskSchedulePlan | DoesNotFit:
    try:
        return load_policy("high_availability", said).schedule(*problem, state)
    except DoesNotFit as refused:
        return refused


def assigned(made: TaskSchedulePlan) -> AssignmentPlan:
    assert made.assigned is not None
    return made.assigned


def unpinned(problem: Problem) -> Problem:
    """For strategies that know no pinned steps."""
    dataflow, offers = problem
    return replace(dataflow, steps=tuple(replace(step, pinned=()) for step in dataflow.steps)), offers


def some_state(problem: Problem, seed: int) -> State:
    """Lags and a prior assignment with workers and instances long gone."""
    rng, (dataflow, offers) = random.Random(seed), problem
    names = [f"{step.id}/{at}" for step in dataflow.steps for at in range(step.parallelism + 1)]
    hosts = [*(offer.worker for offer in offers), "gone"]
    some = [name for name in names if rng.random() < 0.7]
    lags = [
        Lag(instance=name, worker=worker, rows=rng.choice([None, 0, 5_000, 50_000]), running=rng.random() < 0.2)
        for name in some
        for worker in rng.sample(hosts, min(2, len(hosts)))
    ]
    before = Assignment(
        active={name: rng.choice(hosts) for name in some},
        standby={name: (rng.choice(hosts),) for name in some if rng.random() < 0.5},
    )
    return State(lags=tuple(lags), previous=before if rng.random() < 0.8 else None)


@pytest.mark.parametrize("strategy", STRATEGIES)
@settings(max_examples=20, deadline=None, suppress_health_check=SLOW)
@given(problem=problems(workers=40, instances=150), seed=st.integers(0, 999), standbys=st.integers(0, 2))
def test_everything_once_within_capacity_in_any_order(
    strategy: str, problem: Problem, seed: int, standbys: int
) -> None:
    problem = problem if strategy == "sticky" else unpinned(problem)
    said, state = told(strategy=strategy, num_standbys=standbys), some_state(problem, seed)
    made = placed(problem, state, said)
    if isinstance(made, DoesNotFit):
        assert made.needed > made.available
        return
    assert_sound(made, *problem)
    assert_told(made, said)
    assert made == placed(shuffled(*problem, seed), state, said)


def assert_told(made: TaskSchedulePlan, said: PlacementSettings) -> None:
    """The assignment is that of the containers."""
    whole = assigned(made).assignment
    assert whole.active == made.assignment
    for role, held in (("standbys", whole.standby), ("warmups", whole.warmup)):
        pairs = [(f"{one.step}/{one.index}", box.worker) for box in made.container_plan for one in getattr(box, role)]
        assert sorted(pairs) == sorted((name, worker) for name, workers in held.items() for worker in workers)
    if said.strategy != "seed":
        assert sum(map(len, whole.warmup.values())) <= said.max_warmups


@pytest.mark.parametrize("strategy", STRATEGIES)
@settings(max_examples=60, deadline=None)
@given(problem=problems(workers=3, instances=6), seed=st.integers(0, 999))
def test_refused_only_if_nothing_fits(strategy: str, problem: Problem, seed: int) -> None:
    problem = problem if strategy == "sticky" else unpinned(problem)
    made = placed(problem, some_state(problem, seed), told(strategy=strategy, num_standbys=1))
    if isinstance(made, DoesNotFit):
        assert not any(fits(*problem, where) for where in everywhere(*problem))


def after(problem: Problem, made: TaskSchedulePlan) -> State:
    """Every copy there is has caught up; all else has nothing."""
    whole = assigned(made).assignment
    lags = [Lag(instance=at, worker=worker, rows=0, running=True) for at, worker in whole.active.items()]
    for held in (whole.standby, whole.warmup):
        lags += [Lag(instance=at, worker=worker, rows=0) for at, workers in held.items() for worker in workers]
    stateful = {f"{step.id}/{at}" for step in problem[0].steps if step.stateful for at in range(step.parallelism)}
    return State(previous=whole, lags=tuple(lag for lag in lags if lag.instance in stateful))


def settle(problem: Problem, state: State, said: PlacementSettings) -> list[TaskSchedulePlan]:
    """The rounds until no follow-up is asked for."""
    rounds: list[TaskSchedulePlan] = []
    while not rounds or assigned(rounds[-1]).follow_up:
        made = placed(problem, state, said)
        assert not isinstance(made, DoesNotFit)
        assert_sound(made, *problem)
        rounds.append(made)
        state = after(problem, made)
        assert len(rounds) < 500, "does not converge"
    return rounds


@settings(max_examples=40, deadline=None, suppress_health_check=SLOW)
@given(
    problem=problems(workers=12, instances=60, mode="streaming"),
    standbys=st.integers(0, 2),
    warmups=st.integers(1, 4),
    data=st.data(),
)
def test_sticky_comes_to_rest_on_unlike_workers(
    problem: Problem, standbys: int, warmups: int, data: st.DataObject
) -> None:
    """With a worker less, then with it again: no stateful instance is handed over twice on the way."""
    said = told(num_standbys=standbys, max_warmups=warmups)
    dataflow, offers = problem
    offers = [replace(one, memory_mb=64_000, disk_mb=None, cores=(one.cores or 1) + 24) for one in offers]
    problem = dataflow, offers
    gone = data.draw(st.sampled_from(offers))
    fewer = (dataflow, [offer for offer in offers if offer is not gone])
    if isinstance(placed(problem, State(), said), DoesNotFit) or isinstance(placed(fewer, State(), said), DoesNotFit):
        return
    last = settle(problem, State(), said)[-1]
    for stage in (fewer, problem):
        rounds = settle(stage, after(stage, last), said)
        assert max(list_hand_overs(dataflow.steps, [last, *rounds]).values(), default=1) == 1
        last = rounds[-1]
        again = placed(stage, after(stage, last), said)
        assert not isinstance(again, DoesNotFit)
        assert assigned(again).assignment == assigned(last).assignment


@settings(max_examples=40, deadline=None, suppress_health_check=SLOW)
@given(
    problem=problems(workers=12, instances=60, mode="streaming"),
    standbys=st.integers(0, 2),
    warmups=st.integers(1, 4),
    tight=st.sampled_from([None, 1.05, 1.2, 1.5, 2.0]),
    data=st.data(),
)
def test_sticky_comes_to_rest_in_any_room(
    problem: Problem, standbys: int, warmups: int, tight: float | None, data: st.DataObject
) -> None:
    """With a worker less, then with it again, in memory, disk and cores as drawn or so many times what all need."""
    said = told(num_standbys=standbys, max_warmups=warmups)
    problem = problem if tight is None else with_room(problem, tight)
    dataflow, offers = problem
    gone = data.draw(st.sampled_from(offers))
    fewer = (dataflow, [offer for offer in offers if offer is not gone])
    if isinstance(placed(problem, State(), said), DoesNotFit) or isinstance(placed(fewer, State(), said), DoesNotFit):
        return
    last = settle(problem, State(), said)[-1]
    for stage in (fewer, problem):
        last = settle(stage, after(stage, last), said)[-1]
        again = placed(stage, after(stage, last), said)
        assert not isinstance(again, DoesNotFit)
        assert assigned(again).assignment == assigned(last).assignment


def with_room(problem: Problem, times: float) -> Problem:
    """Each worker, or each of all but one, with its share of so many times what all instances need, and padding."""
    dataflow, offers = problem
    steps = dataflow.steps
    memory, disk, cores = (
        times * sum(step.parallelism * need(step) for step in steps) / max(1, len(offers) - 1)
        for need in (attrgetter("memory_mb"), attrgetter("disk_mb"), attrgetter("cores"))
    )
    sized = [
        replace(
            one,
            memory_mb=100 + int(memory) * (1 + at % 3 // 2),
            disk_mb=one.disk_mb and 12 + int(2 * disk),
            cores=1 + int(cores) * (1 + at % 2),
        )
        for at, one in enumerate(offers)
    ]
    return dataflow, sized


def list_hand_overs(steps: Sequence[Step], rounds: Sequence[TaskSchedulePlan]) -> dict[str, int]:
    stateful = {step.id for step in steps if step.stateful}
    counts: dict[str, int] = {}
    for before, made in pairwise(rounds):
        for instance, worker in made.assignment.items():
            if instance.rpartition("/")[0] in stateful and before.assignment[instance] != worker:
                counts[instance] = counts.get(instance, 0) + 1
    return counts


def test_a_standby_of_what_has_been_pinned_since_does_not_stay_elsewhere() -> None:
    """a and b on one worker leave 2 cores for wide on the other: found where all are placed anew."""
    steps = Step(id="a", pinned=("w1",)), Step(id="b"), Step(id="wide", cores=2)
    flow = Dataflow(name="f", steps=tuple(replace(step, mode="streaming", stateful=True) for step in steps))
    before = Assignment(active={"b/0": "w2"}, standby={"a/0": ("w2",)})
    offers = [Offer(id=name, worker=name, host=name, memory_mb=9000, cores=2) for name in ("w1", "w2")]
    made = placed((flow, offers), State(previous=before), told(num_standbys=1))
    assert isinstance(made, TaskSchedulePlan)
    assert made.assignment == {"a/0": "w1", "b/0": "w1", "wide/0": "w2"}
    assert "a/0" not in assigned(made).assignment.standby
