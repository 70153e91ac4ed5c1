"""What a plan made with wrong runtimes takes with the true ones."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.problem.problem import Problem
from benchmarks.regret import CLUSTERS, MODES, draw_layered, measure_regret, price_plan
from tests.plan.drawn import drawn, standalone


def in_mode(flow: Dataflow, mode: str) -> Dataflow:
    return replace(flow, steps=tuple(replace(step, mode=mode) for step in flow.steps))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(3))
def test_with_the_runtimes_it_was_made_with_a_plan_takes_what_it_says(mode: str, seed: int) -> None:
    flow = in_mode(draw_layered(seed), mode)
    for cluster in CLUSTERS:
        made = plan(flow, cluster)
        assert price_plan(made, Problem.of(flow, cluster)) == pytest.approx(made.makespan_s)


def test_true_seconds_count_on_the_groups_of_the_wrong_ones() -> None:
    """
    a b c of one core each on two cores; told: all take 10 s, so any two are together; true: a takes 100 s, c 50 s

    {a b} {c}   8 + 100, then 8 + 50 s
    """
    told = drawn("a == b; b == c", **{name: {"runtime_s": 10, "mode": "streaming"} for name in "abc"})
    seconds = {"a": 100, "b": 10, "c": 50}
    true = replace(told, steps=tuple(replace(step, runtime_s=seconds[step.id]) for step in told.steps))
    made = plan(told, standalone(2))
    apart = {"a": 8 + 100 + 8 + 50, "c": 8 + 100 + 8 + 50}
    alone = next(group.steps[0] for group in made.groups if len(group.steps) == 1)
    assert price_plan(made, Problem.of(true, standalone(2))) == apart[alone]


def test_a_plan_without_cuts_has_no_regret() -> None:
    flow = in_mode(drawn("a == b; b == c", a={"runtime_s": 5}, b={"runtime_s": 50}, c={"runtime_s": 1}), "streaming")
    assert [one.share for one in measure_regret(flow, standalone(4), random.Random(0))] == [0, 0]
