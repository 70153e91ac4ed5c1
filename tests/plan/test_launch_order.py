"""The order of launches: where the longest path first is not the best, and never worse than it."""

from __future__ import annotations

import random
from itertools import permutations

import pytest
from hypothesis import assume, given
from hypothesis import settings as examples
from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.codec import decode_json, encode_value
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.plan.checking.optimality import check_strictly
from airflow_dagsched.plan.costing.evaluator import Evaluator
from airflow_dagsched.plan.costing.launch_order import search_launch_order
from airflow_dagsched.plan.plan_types import Plan
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.settings import DEFAULTS, Settings
from tests.plan.drawn import clusters, dataflows, drawn, standalone


def alone(edges: str, **seconds: float) -> Dataflow:
    """Every step an application of its own."""
    return drawn(edges, **{name: {"runtime_s": value, "isolate": True} for name, value in seconds.items()})


def test_five_launches_on_two_workers() -> None:
    """
    longest first   w1 a(11) c(10) e(10)    w2 b(11) d(10)           31 s
    searched        w1 a(11) b(11)          w2 c(10) d(10) e(10)     30 s
    """
    flow = alone("a; b; c; d; e", a=3, b=3, c=2, d=2, e=2)
    made = plan(flow, standalone(1, 1))
    assert made.makespan_s == 8 + 8 + 8 + 2 + 2 + 2
    assert check_strictly(made, flow, standalone(1, 1)) == ()


def test_the_makespan_without_failures_is_searched_for_too() -> None:
    flow = alone("a; b; c; d; e", a=3, b=3, c=2, d=2, e=2)
    made = plan(flow, standalone(1, 1), DEFAULTS.__class__(failures_per_hour=1.0))
    assert made.makespan_s == 30
    assert made.compared[0].makespan_s > 30


@examples(max_examples=60, deadline=None)
@given(dataflows(most=40), clusters())
def test_it_never_ends_later_than_the_longest_path_first(flow: Dataflow, cluster: Cluster) -> None:
    facts = Problem.of(flow, cluster, DEFAULTS)
    try:
        evaluated = Evaluator(facts).evaluate_grouping(facts.graph.loop)
    except DoesNotFit:
        assume(False)
        raise
    assert search_launch_order(evaluated, Evaluator(facts)).cost <= evaluated.cost


def some_edges(rng: random.Random) -> str:
    """Six steps, some of which wait for one before them."""
    return "; ".join(f"{rng.choice('abcdef'[:at])} == {name}" if at and rng.random() < 0.4 else name
                     for at, name in enumerate("abcdef"))  # fmt: skip


def wide(flow: Dataflow, rng: random.Random) -> Dataflow:
    """Steps of one to three instances of one or two cores."""
    steps = (replace(step, parallelism=rng.randint(1, 3), cores=rng.randint(1, 2)) for step in flow.steps)
    return replace(flow, steps=tuple(steps))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("cores", [(1, 1), (2, 3), (3, 4, 2)])
def test_no_order_of_six_launches_ends_sooner(seed: int, cores: tuple[int, ...]) -> None:
    """All 720 orders are the oracle; on unlike workers steps are wide."""
    rng = random.Random(seed)
    flow = alone(some_edges(rng), **{name: rng.randint(1, 30) for name in "abcdef"})
    cluster = standalone(*cores)
    facts = Problem.of(flow if cores == (1, 1) else wide(flow, rng), cluster, DEFAULTS)
    first = Evaluator(facts).evaluate_grouping(facts.graph.loop)
    orders = (dict(zip(order, range(6), strict=True)) for order in permutations(range(6)))
    best = min(Evaluator(facts).evaluate_grouping(facts.graph.loop, turns=turns).cost.makespan_s for turns in orders)
    assert search_launch_order(first, Evaluator(facts)).cost.makespan_s == best


def test_launches_longer_than_any_clock_are_ordered() -> None:
    """A failure an hour, two launches of 2,000 hours, e^2000 hours each: no more than a float can say."""
    long = {"runtime_s": 7_200_000.0, "cores": 4, "isolate": True}
    flow, cluster = drawn("a; b", a=long, b=long), standalone(4, spill_mb=100)
    told = Settings(failures_per_hour=1.0)
    made = plan(flow, cluster, told)
    assert check_strictly(decode_json(Plan, encode_value(made), "plan"), flow, cluster, told) == ()
