"""Groups: known cases with their drawings, then properties on random dataflows with networkx as the oracle."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given, settings

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.model.dataflow import Dataflow, Step
from airflow_dagsched.plan.grouping.coarsest import Grouping, find_groups
from airflow_dagsched.plan.planner import plan
from tests.plan.drawn import dataflows, drawn, standalone

WITH_B_BETWEEN = "step 'b', with other application settings, stands between"


def steps_of(grouping: Grouping) -> list[str]:
    return [" ".join(group.steps) for group in grouping.groups]


def cuts_of(grouping: Grouping) -> list[str]:
    return [f"{spill.src} -> {' '.join(spill.dst)}: {spill.reason}" for spill in grouping.spills]


def test_a_pipelined_chain_is_one_group() -> None:
    found = find_groups(drawn("A == B; B == C"))
    assert [(group.id, group.steps) for group in found.groups] == [("launch", ("A", "B", "C"))]


def test_a_buffered_channel_splits_a_chain() -> None:
    found = find_groups(drawn("A == B; B ~~ C; C == D"))
    assert steps_of(found) == ["A B", "C D"]
    assert [group.after for group in found.groups] == [(), ("launch_A",)]
    assert found.spills == ()


def test_a_buffered_detour_is_pulled_in() -> None:
    """
    A ══> B ══> D     {A B D} and {C} would wait for each other
    └~~~> C ~~~>┘
    """
    assert steps_of(find_groups(drawn("A == B; B == D; A ~~ C; C ~~ D"))) == ["A B C D"]


def test_both_inputs_of_a_join_are_in_its_group() -> None:
    """
    A ══> C    walking forward from A alone would miss B
    B ══> C
    """
    assert steps_of(find_groups(drawn("A == C; B == C"))) == ["A B C"]


def test_a_buffered_build_side_is_an_earlier_group() -> None:
    found = find_groups(drawn("A == C; B ~~ C"))
    assert {group.id: group.after for group in found.groups} == {"launch_A": ("launch_B",), "launch_B": ()}


def test_an_ordinary_task_keeps_steps_apart() -> None:
    """
    a ══> b            b reads a's rows, but only after t
    └──> (t) ──> b
    """
    found = find_groups(drawn("a == b; a -- t; t -- b", tasks="t"))
    assert [(group.id, group.after) for group in found.groups] == [("launch_a", ()), ("launch_b", ("launch_a", "t"))]
    assert cuts_of(found) == ["a -> b: ordinary task 't' stands between"]


def test_an_ordinary_task_beside_steps_cuts_nothing() -> None:
    """(t) ──> a ══> b ──> (u)"""
    found = find_groups(drawn("t -- a; a == b; b -- u", tasks="t u"))
    assert [(group.id, group.after) for group in found.groups] == [("launch", ("t",))]


def test_a_side_input_joins_the_stage_of_its_reader() -> None:
    """
    a ──> (t) ──> c    d has no tie to a: one spill is enough
    a ══════════> c
    d ══════════> c
    """
    found = find_groups(drawn("a -- t; t -- c; a == c; d == c", tasks="t"))
    assert steps_of(found) == ["a", "d c"]
    assert cuts_of(found) == ["a -> c: ordinary task 't' stands between"]


def test_the_smaller_dataset_is_spilled() -> None:
    """
    a ══> b ══> c      b may go with either: a's rows are many, b's few
    a ──> (t) ──> c
    """
    many = find_groups(drawn("a == b; b == c; a -- t; t -- c", tasks="t", size={"a": 1000, "b": 10}))
    few = find_groups(drawn("a == b; b == c; a -- t; t -- c", tasks="t", size={"a": 10, "b": 1000}))
    assert (steps_of(many), steps_of(few)) == (["a b", "c"], ["a", "b c"])


def test_different_settings_cannot_share_an_application() -> None:
    """a ══> b ══> c, a ══> c; b has settings of its own: it stands between a and c"""
    found = find_groups(drawn("a == b; b == c; a == c", b={"application": {"spark.x": "1", "spark.y": "2"}}))
    assert steps_of(found) == ["a", "b", "c"]
    assert cuts_of(found) == [
        "a -> b c: different application settings: spark.x, spark.y; " + WITH_B_BETWEEN,
        "b -> c: different application settings: spark.x, spark.y",
    ]


def test_who_stands_between_is_named() -> None:
    """p ══> q ══> r in pools x, y and the dataflow's; k ══> l; i is isolated: no two of the four can share."""
    pools = {"p": {"pool": "x"}, "q": {"pool": "y"}, "i": {"isolate": True}}
    flow = drawn("p == q; q == r; k == l", **pools)
    assert {group.steps: group.reason for group in plan(flow, standalone(4, 4)).groups} == {
        ("i",): "isolated by its author",
        ("p",): "it comes before step 'q', in pool 'y'",
        ("q",): "it comes after step 'p', in pool 'x'",
        ("r",): "it comes after step 'q', in pool 'y'",
        ("k", "l"): "apart from others: step 'i' is isolated by its author; "
        "different pools: the dataflow's pool, pool 'x'; different pools: the dataflow's pool, pool 'y'",
    }


def test_an_isolated_step_is_alone() -> None:
    found = find_groups(drawn("a == b; b == c", b={"isolate": True}))
    assert [(group.steps, group.reason) for group in found.groups] == [
        (("a",), "no pipelined channel joins it to a step it could share an application with"),
        (("b",), "isolated by its author"),
        (("c",), "no pipelined channel joins it to a step it could share an application with"),
    ]


def test_a_loop_is_never_split() -> None:
    """
    a ══> b ~~> c ══> d     b and c repeat: joined, though only buffered
          └<───┘
    """
    repeat = {"repeat": True}
    assert steps_of(find_groups(drawn("a == b; b ~~ c; c -- b; c == d", b=repeat, c=repeat))) == ["a b c d"]


def test_the_first_step_is_the_authors_first() -> None:
    found = find_groups(drawn("s10 ~~ s9; s10 == s2", s9={"order": 0}, s10={"order": 1}, s2={"order": 1}))
    assert [group.id for group in found.groups] == ["launch_s2", "launch_s9"]


def test_a_taken_group_id_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"steps\[1\]\.id: the id 'launch_a' is needed for a group"):
        find_groups(drawn("a ~~ launch_a"))


def test_a_long_chain_needs_no_recursion() -> None:
    count = 100_000
    steps = tuple(Step(id=f"s{at}", order=at) for at in range(count))
    flow = Dataflow(name="long", steps=steps, dependencies=tuple((f"s{at}", f"s{at + 1}") for at in range(count - 1)))
    assert len(find_groups(flow).groups) == 1


def edges_of(flow: Dataflow) -> list[tuple[str, str]]:
    return [(channel.src, channel.dst) for channel in flow.channels] + list(flow.dependencies)


def contracted(flow: Dataflow, grouping: Grouping) -> nx.DiGraph:
    """The graph of groups and ordinary tasks, by the dataflow's edges."""
    home = {step: group.id for group in grouping.groups for step in group.steps}
    graph = nx.DiGraph()
    graph.add_nodes_from([*home.values(), *(task.id for task in flow.tasks)])
    graph.add_edges_from((home.get(src, src), home.get(dst, dst)) for src, dst in edges_of(flow))
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    return graph


@settings(max_examples=150, deadline=None)
@given(dataflows())
def test_groups_and_tasks_are_acyclic_and_wait_for_what_they_take(flow: Dataflow) -> None:
    found = find_groups(flow)
    graph = contracted(flow, found)
    assert nx.is_directed_acyclic_graph(graph)
    for group in found.groups:
        assert set(group.after) == set(graph.predecessors(group.id))


@settings(max_examples=150, deadline=None)
@given(dataflows())
def test_pipelined_channels_stay_inside_or_are_spilled(flow: Dataflow) -> None:
    found = find_groups(flow)
    home = {step: group.id for group in found.groups for step in group.steps}
    cut = {(c.src, c.output, c.dst) for c in flow.channels if c.kind == "pipelined" and home[c.src] != home[c.dst]}
    assert cut == {(spill.src, spill.output, dst) for spill in found.spills for dst in spill.dst}
    assert sum(len(spill.dst) for spill in found.spills) == len(cut)


@settings(max_examples=150, deadline=None)
@given(dataflows())
def test_every_step_is_in_one_group_it_may_be_in(flow: Dataflow) -> None:
    steps = {step.id: step for step in flow.steps}
    found = find_groups(flow)
    assert sorted(name for group in found.groups for name in group.steps) == sorted(steps)
    for group in found.groups:
        members = [steps[name] for name in group.steps]
        assert len({str(step.application) for step in members}) == 1
        assert len(members) == 1 or all(not step.isolate for step in members)


@settings(max_examples=150, deadline=None)
@given(dataflows())
def test_steps_stand_in_topological_order(flow: Dataflow) -> None:
    found = find_groups(flow)
    place = {step: (at, inner) for at, group in enumerate(found.groups) for inner, step in enumerate(group.steps)}
    graph = nx.DiGraph(edges_of(flow))
    for loop in nx.strongly_connected_components(graph):
        graph.remove_edges_from([(src, dst) for src, dst in graph.edges if src in loop and dst in loop])
    assert all(place[src] < place[dst] for src, dst in graph.edges if src in place and dst in place)


@settings(max_examples=150, deadline=None)
@given(dataflows(tasks=False, colors=False))
def test_without_tasks_and_settings_nothing_is_spilled_and_groups_are_minimal(flow: Dataflow) -> None:
    """The oracle: weak components over pipelined channels, plain edges and loops, merged while they wait for each
    other, then while any two wait for the same.
    """
    joined = nx.Graph()
    joined.add_nodes_from(step.id for step in flow.steps)
    joined.add_edges_from((c.src, c.dst) for c in flow.channels if c.kind == "pipelined")
    joined.add_edges_from(set(flow.dependencies) - {(c.src, c.dst) for c in flow.channels})
    for loop in nx.strongly_connected_components(nx.DiGraph(edges_of(flow))):
        nx.add_path(joined, loop)
    part = {name: at for at, names in enumerate(nx.connected_components(joined)) for name in names}
    quotient = nx.DiGraph((part[src], part[dst]) for src, dst in edges_of(flow))
    quotient.add_nodes_from(part.values())
    groups = nx.condensation(quotient)
    while twins := _twins(groups):
        groups = nx.contracted_nodes(groups, *twins)
    homes = {part: home for home in groups for part in _all_parts(groups, home)}
    expected = {frozenset(n for n in part if homes[part[n]] == home) for home in groups}
    found = find_groups(flow)
    assert {frozenset(group.steps) for group in found.groups} == expected
    assert found.spills == ()


@settings(max_examples=100, deadline=None)
@given(dataflows())
def test_every_group_and_cut_has_a_reason(flow: Dataflow) -> None:
    found = find_groups(flow)
    assert all(group.reason for group in found.groups)
    assert all(spill.reason for spill in found.spills)


def _twins(groups: nx.DiGraph) -> tuple[int, int] | None:
    """Two groups that wait for the same."""
    seen: dict[frozenset[int], int] = {}
    for home in sorted(groups):
        above = frozenset(groups.predecessors(home))
        if above in seen:
            return seen[above], home
        seen[above] = home
    return None


def _all_parts(groups: nx.DiGraph, home: int) -> set[int]:
    """The parts in a group, also those of the groups contracted into it."""
    inside = set(groups.nodes[home]["members"])
    for data in groups.nodes[home].get("contraction", {}).values():
        inside |= set(data["members"]) | _nested(data)
    return inside


def _nested(data: dict) -> set[int]:  # type: ignore[type-arg]
    inner = data.get("contraction", {}).values()
    return {part for each in inner for part in {*each["members"], *_nested(each)}}
