"""How many applications a plan has: of all groupings the fewest groups within 1% of the soonest, and known cases."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.dataflow import Channel, Dataflow, Step, Task
from airflow_dagsched.plan.checking.optimality import check_strictly
from airflow_dagsched.plan.costing.evaluated_grouping import Cost
from airflow_dagsched.plan.costing.evaluator import Evaluator
from airflow_dagsched.plan.grouping.coarsest import find_fewest
from airflow_dagsched.plan.grouping.proposals.dealing import list_deals
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.problem.run import FixedGroup, Run
from airflow_dagsched.plan.settings import Settings
from tests.plan.drawn import clusters, dataflows, drawn, standalone

WITHIN = 1.01


def list_partitions(nodes: Sequence[int]) -> Iterator[list[list[int]]]:
    """All ways to part these."""
    if not nodes:
        yield []
        return
    first, *others = nodes
    for parts in list_partitions(others):
        yield [[first], *parts]
        for at, part in enumerate(parts):
            yield [*parts[:at], [first, *part], *parts[at + 1 :]]


def price_all(problem: Problem) -> Iterator[Cost]:
    """Of every grouping that obeys the rules, without a cycle, and fits."""
    graph = problem.graph
    for parts in list_partitions(sorted(set(graph.loop[: len(graph.steps)]))):
        of = {unit: min(part) for part in parts for unit in part}
        group_of = [of.get(first, first) for first in graph.loop]
        allowed = all(
            problem.rules.may_share([node for node, first in enumerate(graph.loop) if first in part], graph.loop)
            for part in parts
        )
        if allowed and is_acyclic(problem, group_of):
            try:
                yield Evaluator(problem).evaluate_grouping(group_of).cost
            except DoesNotFit:
                continue


def is_acyclic(problem: Problem, group_of: Sequence[int]) -> bool:
    pairs = (
        (group_of[node], group_of[after])
        for node, nexts in enumerate(problem.graph.successors)
        for after in nexts
        if group_of[node] != group_of[after]
    )
    return nx.is_directed_acyclic_graph(nx.DiGraph(pairs))


@settings(max_examples=40, deadline=None)
@given(dataflows(most=6), st.lists(st.integers(2, 8), min_size=1, max_size=3), st.sampled_from([1, 2, 64]))
def test_no_grouping_with_fewer_groups_ends_about_as_soon(flow: Dataflow, cores: list[int], slots: int) -> None:
    """Launches in the order of the longest path; another order may only make the plan sooner than all of these."""
    cluster, told = standalone(*cores), Settings(slots=slots)
    try:
        made = plan(flow, cluster, told)
    except DoesNotFit:
        return
    if not made.groups:
        return
    least_s = min(entry.makespan_s for entry in made.compared)
    prices = list(price_all(Problem.of(flow, cluster, told)))
    fewest = min((cost.groups for cost in prices if cost.makespan_s <= WITHIN * least_s), default=len(made.groups))
    # A search among orders, not a proof: 0.4 % above the least has been seen.
    assert least_s <= min(cost.makespan_s for cost in prices) * 1.005
    assert len(made.groups) <= fewest
    assert made.makespan_s <= WITHIN * least_s + 1e-6
    assert check_strictly(made, flow, cluster, told) == ()


@settings(max_examples=40, deadline=None)
@given(dataflows(most=40), clusters(), st.sampled_from([1, 3, 64]))
def test_deals_obey_the_rules_and_have_no_cycles(flow: Dataflow, cluster: Cluster, slots: int) -> None:
    problem = Problem.of(flow, cluster, Settings(slots=slots, max_steps_per_group=max(4, slots)))
    few = find_fewest(problem.graph, problem.rules)[1]
    for dealt in list_deals(problem, few, gain_s=1e9):
        groups: dict[int, list[int]] = {}
        for node, of in enumerate(dealt):
            groups.setdefault(of, []).append(node)
        assert all(of == min(nodes) for of, nodes in groups.items())
        assert all(problem.rules.may_share(nodes, problem.graph.loop) for nodes in groups.values())
        assert all(dealt[node] == dealt[first] for node, first in enumerate(problem.graph.loop))
        assert is_acyclic(problem, dealt)


def make_fan(count: int, least_s: float, most_s: float) -> Dataflow:
    """load ══> s0 .. s(count - 1) ══> join"""
    rng, names = random.Random(1), [f"s{at}" for at in range(count)]
    siblings = [Step(id=name, runtime_s=round(rng.uniform(least_s, most_s), 1)) for name in names]
    channels = [Channel(src="load", dst=name) for name in names] + [Channel(src=name, dst="join") for name in names]
    return Dataflow(name="fan", steps=(Step(id="load"), *siblings, Step(id="join")), channels=tuple(channels))


@pytest.mark.parametrize(
    ("count", "seconds", "most", "latest_s"), [(100, (100, 150), 5, 176), (1_000, (20, 60), 8, 380)]
)
def test_many_siblings_take_few_applications(
    count: int, seconds: tuple[float, float], most: int, latest_s: float
) -> None:
    """Eight workers of 16 cores: one application a step ends after 175.6 and 402.9 s."""
    flow, cluster = make_fan(count, *seconds), standalone(*[16] * 8)
    made = plan(flow, cluster)
    assert len(made.groups) <= most
    assert made.makespan_s <= latest_s
    assert check_strictly(made, flow, cluster) == ()


@pytest.mark.parametrize(
    ("steps", "instances", "shortest_s", "workers", "most"),
    [(200, 16, 60.0, 400, 4), (130, 4, 30.0, 60, 2), (100, 8, 30.0, 90, 2)],
)
def test_wide_siblings_fill_the_cores_with_few_slots(
    steps: int, instances: int, shortest_s: float, workers: int, most: int
) -> None:
    """{longest} {others}: side by side, alike or up to 60 s long; the slots of each application take wide steps."""
    lengths = (60.0 - (60.0 - shortest_s) * at / steps for at in range(steps))
    made = Dataflow(
        name="wide",
        steps=tuple(Step(id=f"s{at}", parallelism=instances, runtime_s=round(s, 3)) for at, s in enumerate(lengths)),
    )
    found = plan(made, standalone(*[8] * workers))
    assert len(found.groups) <= most
    assert found.makespan_s <= 1.1 * found.lower_bound_s


@pytest.mark.parametrize(
    ("steps", "cores", "latest_s"), [(2_000, [16] * 5, 33.0), (300, [7, 9, 30, 50], 98.0), (1_000, [16] * 3, 29.0)]
)
def test_siblings_share_the_cores_that_the_slots_of_one_leave(steps: int, cores: list[int], latest_s: float) -> None:
    """80 cores, 64 slots: two applications with 40 each, side by side, not one with 64 after the other; 48: one."""
    seconds = itertools.cycle([1.0] if steps > 300 else range(20, 27))
    narrow = tuple(Step(id=f"s{at}", runtime_s=next(seconds)) for at in range(steps))
    flow, cluster = Dataflow(name="alone", steps=narrow), standalone(*cores)
    made = plan(flow, cluster)
    assert len(made.groups) == (2 if sum(cores) > 64 else 1)
    assert {group.start_s for group in made.groups} == {0.0}
    assert made.makespan_s <= latest_s
    assert check_strictly(made, flow, cluster) == ()
    # A launch is planned with the groups as they are wired: it asks for the same containers.
    wired = tuple(FixedGroup(group.id, group.steps, group.reason) for group in made.groups)
    launched = plan(flow, cluster, run=Run(groups=wired))
    assert [group.containers for group in launched.groups] == [group.containers for group in made.groups]


def test_layers_too_many_to_look_at_are_dealt_as_well() -> None:
    """20 layers of 600 steps, each fed by two of the layer above: two applications a layer have all the slots."""
    rng = random.Random(1)
    names = [[f"s{layer}x{at}" for at in range(600)] for layer in range(20)]
    steps = [Step(id=name, runtime_s=rng.uniform(1, 30)) for layer in names for name in layer]
    channels = [
        Channel(src=before, dst=name)
        for above, layer in itertools.pairwise(names)
        for name in layer
        for before in rng.sample(above, 2)
    ]
    flow = Dataflow(name="layers", steps=tuple(steps), channels=tuple(channels))
    made = plan(flow, standalone(*[16] * 8))
    assert len(made.groups) == 2 * 20
    assert made.makespan_s <= 1.3 * made.lower_bound_s


def test_random_changes_go_back_through_groupings_that_were_seen() -> None:
    """Eight wide steps on 16 cores: nearly all that is near the soonest, of three groups, was seen on the way to it."""
    wide = {"s0": 40, "s1": 4, "s2": 40, "s3": 40, "s5": 4, "s6": 16, "s7": 16, "s8": 16}
    seconds = dict(zip(wide, (14.8, 53.7, 89.9, 2.9, 29.2, 11.0, 20.7, 30.4), strict=True))
    flow = drawn(
        "s0 ~~ s2; s0 == s5; s0 ~~ s6; s1 == s3; s2 == s5; s3 ~~ s5; s7; s8; s1 -- t",
        tasks="t",
        size={"s0": 10**9, "s1": 10**8, "s3": 10**9},
        **{step: {"parallelism": wide[step], "runtime_s": seconds[step]} for step in wide},
    )
    made = plan(replace(flow, tasks=(Task(id="t", runtime_s=60),)), standalone(16))
    assert len(made.groups) == 2
    assert made.makespan_s <= WITHIN * min(entry.makespan_s for entry in made.compared) + 1e-6
