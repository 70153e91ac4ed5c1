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
