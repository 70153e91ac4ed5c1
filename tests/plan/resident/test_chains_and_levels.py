"""Resident groupings by the shape of the graph: acyclic, and within the room that a chain may have."""

from __future__ import annotations

import networkx as nx
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.plan.grouping.coarsest import find_fewest
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.resident.chains_and_levels import cut_by_tails, join_chains
from airflow_dagsched.plan.resident.segmentation import RunLimit
from tests.plan.drawn import clusters, dataflows, drawn, standalone
from tests.plan.test_choose import streaming


def test_a_chain_is_joined_as_far_as_it_fits() -> None:
    """a ══> b ══> c ══> d, and e ══> d: a chain of three on two cores: {a b} {c}"""
    problem = Problem.of(streaming(drawn("a == b; b == c; c == d; e == d")), standalone(2))
    few = find_fewest(problem.graph, problem.rules)[1]
    home = dict(zip(problem.graph.ids, join_chains(problem, few, RunLimit(2, 10**6)), strict=True))
    assert home["a"] == home["b"]
    assert len({home[name] for name in "bcde"}) == 4


def test_what_has_most_behind_it_comes_first() -> None:
    """a (50 s) ══> b (20 s) ══> c (10 s) ══> d      tails 81, 31, 11 and 1 s; in two: {a b} {c d}"""
    flow = drawn("a == b; b == c; c == d", a={"runtime_s": 50}, b={"runtime_s": 20}, c={"runtime_s": 10})
    problem = Problem.of(streaming(flow), standalone(4))
    assert next(cut_by_tails(problem, [0] * 4)) == [0, 0, 2, 2]


@settings(max_examples=60, deadline=None)
@given(dataflows(most=25), clusters(), st.integers(1, 8))
def test_no_groups_wait_for_each_other(flow: Dataflow, cluster: Cluster, cores: int) -> None:
    problem = Problem.of(streaming(flow), cluster)
    assume(problem.has_streaming)
    graph, few = problem.graph, find_fewest(problem.graph, problem.rules)[1]
    for group_of in (join_chains(problem, few, RunLimit(cores, 10**6)), *cut_by_tails(problem, few)):
        between = nx.DiGraph()
        pairs = ((group_of[node], group_of[after]) for node, nexts in enumerate(graph.successors) for after in nexts)
        between.add_edges_from((one, other) for one, other in pairs if one != other)
        assert nx.is_directed_acyclic_graph(between)
        assert all(few[node] == few[of] for node, of in enumerate(group_of))
