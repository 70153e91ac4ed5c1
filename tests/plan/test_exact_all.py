"""Tiny dataflows solved by trying all there is; all groupings in all orders of all launches are the oracle."""

from __future__ import annotations

import random
from itertools import permutations

import pytest
from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.dataflow import Dataflow, Step
from airflow_dagsched.plan.costing.evaluator import Evaluator
from airflow_dagsched.plan.costing.lower_bound import bound_makespan
from airflow_dagsched.plan.exact.enumeration import Solved, solve_tiny_dataflow
from airflow_dagsched.plan.grouping.proposals.all_groupings import list_groupings
from airflow_dagsched.plan.passes.select_groups import search_problem
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.resident.separation import list_kept_apart
from airflow_dagsched.plan.settings import DEFAULTS, Settings
from tests.plan.drawn import drawn, standalone
from tests.plan.test_searched import batch, resident, with_tasks

UNLIKE = standalone(3, 4, 6)


def wide(rng: random.Random, flow: Dataflow) -> Dataflow:
    """Its first four steps at most, of one to three instances, with up to three cores each."""
    steps = tuple(_wide(rng, step) for step in flow.steps[:4])
    names = {step.id for step in steps} | {task.id for task in flow.tasks}
    return replace(
        flow,
        steps=steps,
        channels=tuple(one for one in flow.channels if {one.src, one.dst} <= names),
        dependencies=tuple(pair for pair in flow.dependencies if set(pair) <= names),
    )


def _wide(rng: random.Random, step: Step) -> Step:
    return replace(step, parallelism=rng.randint(1, 3), cores=rng.randint(1, 3))


def solved(flow: Dataflow, cluster: Cluster, settings: Settings = DEFAULTS) -> tuple[Problem, Solved]:
    facts = Problem.of(flow, cluster, settings)
    best = search_problem(facts).best
    assert best is not None
    found = solve_tiny_dataflow(Evaluator(facts), best)
    assert found is not None
    return facts, found


def least(problem: Problem) -> float:
    """The least makespan of all groupings, each launched in every order."""
    found = float("inf")
    for home in list_groupings(problem):
        firsts = sorted(set(home))
        for order in permutations(range(len(firsts))):
            try:
                evaluated = Evaluator(problem).evaluate_grouping(home, turns=dict(zip(firsts, order, strict=True)))
            except DoesNotFit:
                break
            found = min(found, evaluated.cost.makespan_s)
    return found


@pytest.mark.parametrize("first", [resident, batch, with_tasks])
@pytest.mark.parametrize("seed", range(6))
def test_nothing_ends_sooner(first: type, seed: int) -> None:
    """Wide steps on unlike workers; with the best list of each group it may even end sooner than the oracle."""
    rng = random.Random(seed)
    facts, found = solved(wide(rng, first(rng)), UNLIKE)
    assert found.proved
    bound = bound_makespan(facts, list_kept_apart(facts))
    assert bound.seconds - 1e-6 <= found.evaluated.cost.makespan_s <= least(facts)


def test_lists_inside_groups_are_tried() -> None:
    """
    one application, 2 cores    longest first  ▐aaa▌▐cc▌▐ee▌  7 s      best list  ▐aaa▌▐bbb▌     6 s
                                               ▐bbb▌▐dd▌                          ▐cc▌▐dd▌▐ee▌
    """
    seconds = {"a": 3, "b": 3, "c": 2, "d": 2, "e": 2}
    flow = drawn("a; b; c; d; e", **{name: {"runtime_s": value} for name, value in seconds.items()})
    facts, found = solved(flow, standalone(2), Settings(together=(tuple(seconds),)))
    assert (least(facts), found.evaluated.cost.makespan_s, found.proved) == (8 + 7, 8 + 6, True)


def test_all_groupings_of_independent_steps_are_there() -> None:
    """Bell numbers: 1, 2, 5, 15, 52."""
    for names, count in (("a", 1), ("a; b", 2), ("a; b; c", 5), ("a; b; c; d", 15), ("a; b; c; d; e", 52)):
        assert len(list(list_groupings(Problem.of(drawn(names), standalone(4), DEFAULTS)))) == count


def test_groupings_obey_the_rules_and_have_no_cycle() -> None:
    """Of 5 ways to part the steps of a ══> b ══> c one has a cycle: {a c} {b}."""
    chain = drawn("a == b; b == c")
    told = {DEFAULTS: 4, Settings(apart=(("a", "b"),)): 2, Settings(together=(("a", "b"),)): 2}
    for settings, count in told.items():
        assert len(list(list_groupings(Problem.of(chain, standalone(4), settings)))) == count


def test_large_dataflows_are_left_to_others() -> None:
    facts = Problem.of(drawn("a; b; c; d; e; f; g; h; i"), standalone(4), DEFAULTS)
    best = search_problem(facts).best
    assert best is not None
    assert solve_tiny_dataflow(Evaluator(facts), best) is None
