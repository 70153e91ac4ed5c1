"""What a grouping would take: groups that wait for each other have no price, whoever asks for it."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_dagsched.errors import DoesNotFit, InvalidInput
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.plan.checking import check
from airflow_dagsched.plan.checking.optimality import check_strictly
from airflow_dagsched.plan.costing.evaluator import Evaluator
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.problem.partition import is_acyclic, name_by_least
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.settings import DEFAULTS, Settings
from tests.plan.drawn import clusters, dataflows, drawn, standalone


def test_groups_that_wait_for_each_other_have_no_price() -> None:
    """a ══> b ══> c with a and c as one group: b waits for it, and it for b"""
    facts = Problem.of(drawn("a == b; b == c; c == d"), standalone(4), DEFAULTS)
    with pytest.raises(InvalidInput, match="launch_a -> launch_b -> launch_a wait for each other"):
        Evaluator(facts).evaluate_grouping([0, 1, 0, 3])


def test_an_ordinary_task_in_between_closes_a_cycle_too() -> None:
    """a ──> (t) ──> b with a and b as one group"""
    facts = Problem.of(drawn("a -- t; t -- b", tasks="t"), standalone(4), DEFAULTS)
    with pytest.raises(InvalidInput, match="launch -> t -> launch wait for each other"):
        Evaluator(facts).evaluate_grouping([0, 0, 2])


@settings(max_examples=100, deadline=None)
@given(dataflows(most=12, colors=False), clusters(), st.integers(0, 2**32))
def test_all_start_or_a_cycle_is_named(flow: Dataflow, cluster: Cluster, seed: int) -> None:
    """Steps in groups at random, loops whole."""
    facts, rng = Problem.of(flow, cluster, DEFAULTS), random.Random(seed)
    of = [rng.randrange(4) if facts.graph.is_step(node) else 4 + node for node in range(len(facts.graph.ids))]
    home = name_by_least([of[first] for first in facts.graph.loop])
    try:
        evaluated = Evaluator(facts).evaluate_grouping(home)
    except DoesNotFit:
        return
    except InvalidInput:
        assert not is_acyclic(facts.graph, home)
    else:
        assert set(evaluated.spans) == set(home)


def test_applications_side_by_side_are_limited() -> None:
    """a and b, 8 s of start and 10 of work each: at once, or one after the other; the checker knows which."""
    long = {"runtime_s": 10, "isolate": True}
    flow, cluster, one_by_one = drawn("", a=long, b=long), standalone(4), Settings(applications=1)
    at_once, apart = plan(flow, cluster), plan(flow, cluster, one_by_one)
    assert (at_once.makespan_s, apart.makespan_s) == (18, 36)
    assert check_strictly(apart, flow, cluster, one_by_one) == ()
    assert [str(each) for each in check(at_once, flow, cluster, one_by_one)] == [
        "capacity: launch_b: runs beside 1 others at 0 s, at most 1 may run"
    ]
    # Without the limit there is room, and nothing to wait for.
    assert any("has room on its workers" in str(each) for each in check_strictly(apart, flow, cluster))
