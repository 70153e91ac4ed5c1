"""The exact mode: its bound against all plans there are, what it finds, and that it is the same every time."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

pytest.importorskip("ortools", reason="needs the extra [exact]")

from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.plan.checking.optimality import check_strictly
from airflow_dagsched.plan.exact.mode import plan_exactly
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.settings import DEFAULTS
from tests.plan.drawn import drawn, standalone
from tests.plan.test_choose import MIB, streaming
from tests.plan.test_searched import changed, optimum, resident


def batch(rng: random.Random) -> Dataflow:
    """Nine steps in three layers, more than four cores take at once."""
    names = "abcdefghi"
    edges = "; ".join(f"{rng.choice(names[at - 3 - at % 3 : at - at % 3])} == {names[at]}" for at in range(3, 9))
    return drawn(edges, **{name: {"runtime_s": rng.randint(1, 60)} for name in names})


@pytest.mark.parametrize("seed", range(6))
def test_its_bound_holds_for_all_groupings(seed: int) -> None:
    flow, cluster = resident(random.Random(seed)), standalone(4)
    made = plan_exactly(flow, cluster)
    assert check_strictly(made, flow, cluster) == ()
    assert made.lower_bound_s <= optimum(Problem.of(flow, cluster, DEFAULTS)) + 1e-6
    assert plan(flow, cluster).lower_bound_s <= made.lower_bound_s
    assert made.makespan_s <= plan(flow, cluster).makespan_s


@pytest.mark.parametrize("seed", range(3))
def test_a_batch_dataflow_gets_a_better_order_or_a_proof(seed: int) -> None:
    flow, cluster = batch(random.Random(seed)), standalone(4)
    first, made = plan(flow, cluster), plan_exactly(flow, cluster)
    assert check_strictly(made, flow, cluster) == ()
    assert made.gap <= min(first.gap, 0.02)


@pytest.mark.parametrize("kind", ["batch", "streaming"])
def test_searched_for_bad_dataflows_against_the_proof(kind: str) -> None:
    """Nine steps, too many to try all groupings: from bad to worse for the plan against what the solver proves."""
    rng, cluster = random.Random(kind), standalone(2, 4)
    here, energy = batch(rng), 1.0
    for _ in range(5):
        other = changed(here, rng)
        one = streaming(other) if kind == "streaming" else other
        proved = plan_exactly(one, cluster)
        found = plan(one, cluster).makespan_s / proved.makespan_s
        assert found <= 1.1
        if found >= energy:
            here, energy = other, found


def test_equal_facts_give_equal_plans() -> None:
    flow = batch(random.Random(7))
    shuffled = replace(flow, steps=flow.steps[::-1], channels=flow.channels[::-1])
    assert plan_exactly(flow, standalone(4)) == plan_exactly(shuffled, standalone(4))


def test_mixed_dataflows_keep_their_plan() -> None:
    """a streams, b does not: the solver has no model of both."""
    flow = drawn("a == b; a ~~ c", a={"mode": "streaming", "runtime_s": 30}, size={"a": 10 * MIB})
    assert plan_exactly(flow, standalone(2)).groups == plan(flow, standalone(2)).groups


def test_an_empty_dataflow() -> None:
    assert plan_exactly(Dataflow(name="empty"), standalone(1)).groups == ()


def test_streaming_twins_are_put_apart() -> None:
    """Two chains that do not touch: what is one group in the coarsest grouping need not be."""
    flow = streaming(drawn("a == b; c == d", a={"runtime_s": 9}, c={"runtime_s": 90}))
    assert plan_exactly(flow, standalone(4)).gap == 0
