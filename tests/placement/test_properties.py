"""What every policy keeps to, on random dataflows and workers; and what only an exhaustive search can tell."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.model.dataflow import Channel, Dataflow, Step
from airflow_dagsched.model.state import State
from airflow_dagsched.placement.policies.cheapest import compute_price
from airflow_dagsched.placement.policy import load_policy
from airflow_dagsched.placement.request import make_request
from airflow_dagsched.placement.values import Offer, TaskSchedulePlan
from tests.placement.drawn import PLAIN, assert_sound, problems, shuffled

POLICIES = ("round_robin", "first_fit", "data_locality", "cheapest", "high_availability", "auto")
SIZES = ((4, 2), (3, 4))
"""Memory, how many instances."""
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]


def placed(policy: str, dataflow: Dataflow, offers: Sequence[Offer]) -> TaskSchedulePlan | DoesNotFit:
    try:
        return load_policy(policy, PLAIN).schedule(dataflow, offers, State())
    except DoesNotFit as refused:
        return refused


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=12, deadline=None, suppress_health_check=SLOW)
@given(problem=problems())
def test_everything_once_within_capacity(policy: str, problem: tuple[Dataflow, list[Offer]]) -> None:
    made = placed(policy, *problem)
    if isinstance(made, DoesNotFit):
        assert made.needed > made.available
    else:
        assert_sound(made, *problem)


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=10, deadline=None, suppress_health_check=SLOW)
@given(problem=problems(workers=20, instances=60), seed=st.integers(0, 99))
def test_the_order_of_the_input_changes_nothing(policy: str, problem: tuple[Dataflow, list[Offer]], seed: int) -> None:
    assert str(placed(policy, *problem)) == str(placed(policy, *shuffled(*problem, seed)))


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=80, deadline=None)
@given(problem=problems(workers=3, instances=6))
def test_refused_only_if_nothing_fits(policy: str, problem: tuple[Dataflow, list[Offer]]) -> None:
    made = placed(policy, *problem)
    if isinstance(made, DoesNotFit):
        assert not any(fits(*problem, where) for where in everywhere(*problem))


def test_cheapest_where_the_cheapest_first_get_stuck() -> None:
    """s2 has the memory of the cheap w1, and s1 the cores of w0 when s0 is to run: first fit has s2 on w0, too.

    s0 500 MiB, s1 1,100 MiB ══> s2 700 MiB ══> s3 1,100 MiB       w1  2 cores,  1,000 MiB, cost 1
                                                                   w0  2 cores, 40,000 MiB, cost 2.5
    """
    sizes = {"s0": (1, 500), "s1": (2, 1100), "s2": (2, 700), "s3": (1, 1100)}
    flow = Dataflow(
        name="stuck",
        steps=tuple(Step(id=name, cores=cores, memory_mb=mb, runtime_s=10) for name, (cores, mb) in sizes.items()),
        channels=(Channel(src="s1", dst="s2", bytes=2**30), Channel(src="s2", dst="s3")),
    )
    offers = [
        Offer(id="w0", worker="w0", memory_mb=40000, cores=2, cost=2.5),
        Offer(id="w1", worker="w1", memory_mb=1000, cores=2, cost=1.0),
    ]
    made = placed("cheapest", flow, offers)
    assert not isinstance(made, DoesNotFit)
    assert made.assignment["s1/0"] == made.assignment["s3/0"] == "w0"


@settings(max_examples=80, deadline=None)
@given(problem=problems(workers=3, instances=6, mode="streaming"))
def test_cheapest_is_the_least_there_is(problem: tuple[Dataflow, list[Offer]]) -> None:
    made = placed("cheapest", *problem)
    if isinstance(made, DoesNotFit):
        return
    request = make_request(*problem, PLAIN)
    rank = {offer.id: at for at, offer in enumerate(request.offers)}
    chosen = [[rank[made.assignment[f"{w.id}/{i}"]] for i in range(w.parallelism)] for w in request.steps]
    least = min(
        compute_price(request, [[rank[where[f"{w.id}/{i}"].id] for i in range(w.parallelism)] for w in request.steps])
        for where in everywhere(*problem)
        if fits(*problem, where)
    )
    assert compute_price(request, chosen) == pytest.approx(least)


@settings(max_examples=80, deadline=None)
@given(problem=problems(workers=3, instances=6, mode="streaming"))
def test_first_fit_uses_the_fewest_workers_there_are(problem: tuple[Dataflow, list[Offer]]) -> None:
    made = placed("first_fit", *problem)
    if isinstance(made, DoesNotFit):
        return
    ways = (where for where in everywhere(*problem) if fits(*problem, where))
    least = min(len({offer.id for offer in where.values()}) for where in ways)
    assert len(set(made.assignment.values())) == least


def test_what_first_fit_decreasing_misses() -> None:
    """[4 4][3 3 3][3] of 10: with 100 MiB of padding, of 1100."""
    steps = [Step(id=f"s{size}", parallelism=count, memory_mb=size * 100, mode="streaming") for size, count in SIZES]
    offers = [Offer(id=f"w{at}", worker=f"w{at}", memory_mb=1100, cores=9) for at in range(3)]
    made = load_policy("first_fit", PLAIN).schedule(Dataflow(name="x", steps=tuple(steps)), offers, State())
    assert [sorted(one.step for one in box.instances) for box in made.container_plan] == [["s3", "s3", "s4"]] * 2


def everywhere(dataflow: Dataflow, offers: Sequence[Offer]) -> Iterator[dict[str, Offer]]:
    """All ways to give each instance a worker."""
    names = [f"{step.id}/{index}" for step in dataflow.steps for index in range(step.parallelism)]
    return (dict(zip(names, chosen, strict=True)) for chosen in itertools.product(offers, repeat=len(names)))


def fits(dataflow: Dataflow, offers: Sequence[Offer], where: dict[str, Offer]) -> bool:
    """Whether each worker has a container with room: of some cores, in batch, that its memory allows."""
    steps = {step.id: step for step in dataflow.steps}
    streaming = any(step.mode == "streaming" for step in dataflow.steps)
    for offer in offers:
        held = [steps[name.partition("/")[0]] for name, on in where.items() if on is offer]
        if any(step.pinned and offer.id not in step.pinned for step in held):
            return False
        if offer.disk_mb is not None and sum(step.disk_mb for step in held) > offer.disk_mb:
            return False
        memories = sorted((step.memory_mb for step in held), reverse=True)
        cores = sum(step.cores for step in held)
        if held and not streaming:
            cores = max(step.cores for step in held)
            memories = memories[: max(1, cores // min(step.cores for step in held))]
        if held and (cores > offer.cores or sum(memories) + 100 > offer.memory_mb):
            return False
    return True
