"""What a grouping would take: groups that wait for each other have no price, whoever asks for it."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_dagsched.errors import DoesNotFit, InvalidInput
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.plan.costing.evaluator import Evaluator
from airflow_dagsched.plan.problem.partition import is_acyclic, name_by_least
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.settings import DEFAULTS
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
