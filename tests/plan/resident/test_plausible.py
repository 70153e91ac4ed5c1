"""Groupings chosen for runtimes that may be the true ones, where nobody has told them."""

from __future__ import annotations

import random
from itertools import pairwise
from statistics import fmean

import pytest
from msgspec.structs import replace

from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.dataflow import Channel, Dataflow, Step
from airflow_dagsched.plan.checking.optimality import check_strictly
from airflow_dagsched.plan.costing.evaluator import Evaluator
from airflow_dagsched.plan.passes.select_groups import search_problem
from airflow_dagsched.plan.plan_types import Compared, Plan
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.resident.plausible import DRAWS, draw_problems, measure_regrets
from benchmarks.regret import draw_layered
from tests.plan.drawn import drawn, standalone
from tests.plan.test_choose import streaming

CLUSTER = standalone(16)


def layered(seed: int) -> Dataflow:
    """Four layers of three steps, each fed by two of the layer above; runtimes over two orders of magnitude."""
    rng = random.Random(seed)
    layers = [range(at, at + 3) for at in range(0, 12, 3)]
    return Dataflow(
        name=f"layered-{seed}",
        steps=tuple(
            Step(id=f"s{at}", mode="streaming", runtime_s=rng.lognormvariate(3.5, 1.2), order=at) for at in range(12)
        ),
        channels=tuple(
            Channel(src=f"s{src}", dst=f"s{at}", bytes=rng.choice((10**6, 10**8)))
            for before, layer in pairwise(layers)
            for at in layer
            for src in rng.sample(before, 2)
        ),
    )


def untold(flow: Dataflow) -> Dataflow:
    return replace(flow, steps=tuple(replace(step, runtime_s=0.0) for step in flow.steps))


def price(made: Plan, true: Dataflow) -> float:
    """Seconds that the groups of a plan take with the true runtimes."""
    problem = Problem.of(true, CLUSTER)
    index = problem.graph.index
    home = {name: min(index[one] for one in group.steps) for group in made.groups for name in group.steps}
    return Evaluator(problem).evaluate_grouping([home[name] for name in problem.graph.ids]).cost.makespan_s


def price_soonest(flow: Dataflow, true: Dataflow) -> float:
    """The same of the groups that end soonest with the runtimes as told, whatever they may be."""
    best = search_problem(Problem.of(flow, CLUSTER)).best
    assert best is not None
    return Evaluator(Problem.of(true, CLUSTER)).evaluate_grouping(best.group_of).cost.makespan_s


def test_without_runtimes_plans_end_sooner_than_those_that_take_all_as_equal() -> None:
    """More of them, and of other shapes, are planned by ``benchmarks.regret``."""
    flows = [streaming(draw_layered(seed)) for seed in (100, 101, 103, 205)]
    chosen = [price(plan(untold(flow), CLUSTER), flow) for flow in flows]
    soonest = [price_soonest(untold(flow), flow) for flow in flows]
    assert fmean(one / other for one, other in zip(chosen, soonest, strict=True)) < 0.98


def test_where_runtimes_are_told_the_plan_ends_in_time_by_them() -> None:
    for seed in range(2):
        flow, cluster = layered(seed), standalone(5)
        made = plan(flow, cluster)
        assert made.makespan_s <= 1.01 * min(entry.makespan_s for entry in made.compared) + 1e-6
        assert check_strictly(made, flow, cluster) == ()


def test_the_plan_says_regrets_and_a_checker_accepts_them() -> None:
    flow, cluster = untold(layered(0)), standalone(5)
    made = plan(flow, cluster)
    assert check_strictly(made, flow, cluster) == ()
    told = [entry.regret for entry in made.compared if isinstance(entry.regret, float)]
    assert len(told) > 1
    # 1% of what the soonest takes is given for fewer groups.
    assert told[0] <= 1.01 * (1 + min(told)) - 1 + 1e-6
    assert plan(flow, cluster) == made


def test_a_checker_finds_another_with_less_regret() -> None:
    flow, cluster = untold(layered(0)), standalone(5)
    made = plan(flow, cluster)
    chosen, *others = made.compared
    worse = replace(made, compared=(replace(chosen, regret=5.0), *others))
    rules = {(one.rule, one.subject) for one in check_strictly(worse, flow, cluster)}
    assert ("compared", chosen.what) in rules


def test_a_step_more_changes_nothing_that_is_drawn_for_the_others() -> None:
    few, more = (Problem.of(streaming(drawn(edges)), CLUSTER) for edges in ("a == b", "a == b; b == c"))
    for one, other in zip(draw_problems(few), draw_problems(more), strict=True):
        assert one.arrays.runtime_s == other.arrays.runtime_s[:2]


def test_regret_is_the_mean_share_by_which_a_grouping_ends_later() -> None:
    """a ══> b on two cores, 8 s a start: together 8 + the longer of both; apart 8 + a + 8 + b"""
    problem = Problem.of(streaming(drawn("a == b")), standalone(2))
    draws = list(draw_problems(problem))
    assert len(draws) == DRAWS
    shares = []
    for draw in draws:
        a, b = draw.arrays.runtime_s
        shares.append((16 + a + b) / (8 + max(a, b)) - 1)
    found = measure_regrets([(0, 0), (0, 1)], [Evaluator(draw) for draw in draws])
    assert found[0, 0] == 0
    assert found[0, 1] == pytest.approx(fmean(shares), abs=1e-5)


def test_batch_plans_are_not_chosen_by_regret() -> None:
    flow = drawn("a == b; a == c; t -- d", tasks="t")
    cluster: Cluster = standalone(1)
    entries: tuple[Compared, ...] = plan(flow, cluster).compared
    assert not any(isinstance(entry.regret, float) for entry in entries)


def test_of_many_steps_without_runtimes_the_fewest_groups_are_taken() -> None:
    """300 single steps on 40 cores: of so many no regrets are worked out; some groups are one, and end as soon."""
    flow, cluster = streaming(drawn("; ".join(f"s{at}" for at in range(300)))), standalone(40)
    made, soonest = plan(flow, cluster), search_problem(Problem.of(flow, cluster)).best
    assert not any(isinstance(entry.regret, float) for entry in made.compared)
    assert soonest is not None
    assert len(made.groups) < len(soonest.members)
