"""Lists inside groups: known cases with their arithmetic, then random wide steps."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.plan.checking.optimality import check_strictly
from airflow_dagsched.plan.costing.evaluator import Evaluator
from airflow_dagsched.plan.costing.lower_bound import bound_makespan
from airflow_dagsched.plan.grouping.coarsest import find_coarsest
from airflow_dagsched.plan.grouping.reorder_steps import PLACED, reorder_steps
from airflow_dagsched.plan.grouping.selection import Selection
from airflow_dagsched.plan.passes.select_groups import search_problem
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.settings import DEFAULTS
from tests.plan.drawn import clusters, dataflows, drawn, standalone


def test_a_long_step_need_not_wait_for_the_first_wave_of_a_wide_one() -> None:
    """
    4 cores   a a a a|a b . .|. b . .     a (5 x 30 s) takes two waves, as long as b: it comes first, and b behind it
              b a a a|b a a .             b first: both end after 60 s
    """
    flow = drawn("a; b", a={"parallelism": 5, "runtime_s": 30}, b={"runtime_s": 60})
    (group,) = plan(flow, standalone(4)).groups
    assert (group.steps, group.end_s) == (("b", "a"), 8 + 60)


def test_what_a_step_waits_for_stays_before_it() -> None:
    """
    a (5 x 30 s)               a first would leave c no core for 30 s; b is no sooner for being early
    c (30 s) ══> b (30 s)
    """
    half = {"runtime_s": 30}
    flow = drawn("a; c == b", a={**half, "parallelism": 5}, c=half, b=half)
    made = plan(flow, standalone(4))
    assert check_strictly(made, flow, standalone(4)) == ()
    assert made.groups[0].steps.index("c") < made.groups[0].steps.index("b")
    assert made.makespan_s == 8 + 60


def test_what_a_long_path_waits_for_comes_before_longer_steps() -> None:
    """
    3 cores   a a a a|e e e e          a, d (40 s) and f (20 s) lead to g (60 s), b (40 s) leads to e (40 s)
              d d d d|c|               longest path first: b is before f, as 80 s are left from either
              b b b b|f f|g g g g g g  120 s

              a a a a|g g g g g g      f first: b and e have time, and c (10 s) finds a gap
              d d d d|c|e e e e        100 s
              f f|b b b b|
    """
    seconds = {"a": 40, "b": 40, "c": 10, "d": 40, "e": 40, "f": 20, "g": 60}
    flow = drawn("b == e; a == g; d == g; f == g", **{step: {"runtime_s": some} for step, some in seconds.items()})
    (group,) = plan(flow, standalone(3, application_start_s=60)).groups
    assert group.end_s == 60 + 100
    assert group.begins["f"] == 0


def wide(flow: Dataflow, rng: random.Random) -> Dataflow:
    """With more instances than there are cores of several steps, and fewer channels."""
    steps = (replace(step, parallelism=rng.randint(1, 20), runtime_s=rng.randint(1, 60)) for step in flow.steps)
    return replace(flow, steps=tuple(steps), channels=flow.channels[::3])


@settings(max_examples=60, deadline=None)
@given(dataflows(most=12), clusters(), st.integers(0, 2**32))
def test_no_later_than_with_the_longest_path_first_and_sound(flow: Dataflow, cluster: Cluster, seed: int) -> None:
    one = wide(flow, random.Random(seed))
    facts = Problem.of(one, cluster, DEFAULTS)
    selection = search_problem(facts)
    assert selection.best is not None
    assert selection.best.cost <= Evaluator(facts).evaluate_grouping(selection.best.group_of).cost
    assert sorted(selection.evaluator.start_order) == sorted(facts.graph.order)
    place = {node: at for at, node in enumerate(selection.evaluator.start_order)}
    graph = facts.graph
    edges = ((node, after) for node, nexts in enumerate(graph.successors) for after in nexts)
    assert all(place[one] < place[other] for one, other in edges if graph.loop[one] != graph.loop[other])
    assert check_strictly(plan(one, cluster), one, cluster) == ()


@settings(max_examples=60, deadline=None)
@given(dataflows(most=30), clusters(), st.integers(0, 2**32))
def test_no_later_than_with_moves_of_single_steps_alone(flow: Dataflow, cluster: Cluster, seed: int) -> None:
    facts = Problem.of(wide(flow, random.Random(seed)), cluster, DEFAULTS)
    moved, searched = settle_lists(facts, placed=0), settle_lists(facts, placed=PLACED)
    if moved.best is not None:
        assert searched.best is not None
        assert searched.best.cost <= moved.best.cost
        assert {frozenset(steps) for steps in searched.best.members.values()} == {
            frozenset(steps) for steps in moved.best.members.values()
        }


def settle_lists(facts: Problem, placed: int) -> Selection:
    """Of the coarsest groups the lists that are found with so much effort; nothing if these do not fit."""
    stages, group_of = find_coarsest(facts.graph, facts.rules)
    selection = Selection(Evaluator(facts), bound_makespan(facts, ()), 0, stages)
    selection.evaluate_grouping("coarsest", group_of)
    reorder_steps(selection, placed=placed)
    return selection
