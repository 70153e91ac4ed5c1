"""Order in graphs: known cases, and networkx as the oracle on random graphs with and without cycles."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_dagsched.model.order import (
    find_cycle,
    find_strong_components,
    measure_levels,
    natural_key,
    reverse_edges,
    sort_naturally,
    sort_topologically,
)

LONG = 100_000


@st.composite
def graphs(draw: st.DrawFn, *, cyclic: bool) -> list[list[int]]:
    count = draw(st.integers(1, 12))
    node = st.integers(0, count - 1)
    pairs = draw(st.sets(st.tuples(node, node), max_size=30))
    kept = {(a, b) for a, b in pairs if (a != b if cyclic else a < b)}
    return [sorted(b for a, b in kept if a == at) for at in range(count)]


def to_networkx(graph: list[list[int]]) -> nx.DiGraph:
    found = nx.DiGraph()
    found.add_nodes_from(range(len(graph)))
    found.add_edges_from((node, after) for node, nexts in enumerate(graph) for after in nexts)
    return found


def test_natural_order_puts_w2_before_w10() -> None:
    assert sort_naturally(["w10", "w2", "w01", "w1", "a", "", "2", "10"]) == [
        "",
        "2",
        "10",
        "a",
        "w01",
        "w1",
        "w2",
        "w10",
    ]


@given(st.lists(st.text("ab019", max_size=5)))
def test_natural_order_is_total(texts: list[str]) -> None:
    """Texts that differ have keys that differ: the result never depends on the order they came in."""
    assert sort_naturally(texts) == sort_naturally(sorted(texts, reverse=True))
    assert len({natural_key(text) for text in texts}) == len(set(texts))


def renumbered(graph: list[list[int]], number: Sequence[int]) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in graph]
    for node, nexts in enumerate(graph):
        found[number[node]] = sorted(number[after] for after in nexts)
    return found


@given(graphs(cyclic=False), st.randoms(use_true_random=False))
def test_topological_takes_the_least_free_node_first(graph: list[list[int]], rng: random.Random) -> None:
    """Whether all edges lead to higher numbers or not."""
    number = rng.sample(range(len(graph)), len(graph))
    for one in (graph, renumbered(graph, number)):
        assert sort_topologically(one) == list(nx.lexicographical_topological_sort(to_networkx(one)))


@given(graphs(cyclic=True))
def test_topological_leaves_out_what_a_cycle_holds_up(graph: list[list[int]]) -> None:
    assert (len(sort_topologically(graph)) == len(graph)) == nx.is_directed_acyclic_graph(to_networkx(graph))


@given(graphs(cyclic=True))
def test_strong_components(graph: list[list[int]]) -> None:
    expected = {node: min(part) for part in nx.strongly_connected_components(to_networkx(graph)) for node in part}
    assert find_strong_components(graph) == [expected[node] for node in range(len(graph))]


@given(graphs(cyclic=False))
def test_levels_are_longest_paths(graph: list[list[int]]) -> None:
    expected = {node: at for at, part in enumerate(nx.topological_generations(to_networkx(graph))) for node in part}
    assert measure_levels(graph, sort_topologically(graph)) == [expected[node] for node in range(len(graph))]


@given(graphs(cyclic=True))
def test_a_found_cycle_is_one_and_a_shortest(graph: list[list[int]]) -> None:
    oracle, owner = to_networkx(graph), find_strong_components(graph)
    for start in range(len(graph)):
        found = find_cycle(graph, start, owner)
        back = [nx.shortest_path_length(oracle, after, start) for after in graph[start] if owner[after] == owner[start]]
        assert len(found) == (min(back) + 2 if back else 0)
        assert all(after in graph[node] for node, after in itertools.pairwise(found))


@given(graphs(cyclic=True))
def test_predecessors_are_the_edges_backwards(graph: list[list[int]]) -> None:
    assert to_networkx(reverse_edges(graph)).edges == to_networkx(graph).reverse().edges


@pytest.mark.parametrize("closed", [False, True])
def test_long_chains_and_rings_need_no_recursion(closed: bool) -> None:
    chain = [[at + 1] for at in range(LONG - 1)] + [[0] if closed else []]
    assert len(sort_topologically(chain)) == (0 if closed else LONG)
    assert len(set(find_strong_components(chain))) == (1 if closed else LONG)
