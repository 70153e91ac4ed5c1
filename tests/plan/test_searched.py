"""Searched-for bad dataflows: from a random one to worse and worse ones, as PISA does, against all groupings there are.

Coleman, Krishnamachari: "PISA: an adversarial approach to comparing task graph scheduling algorithms" (2024):
simulated annealing over instances, the energy being the ratio of two makespans.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.dataflow import Channel, Dataflow, Step, Task
from airflow_dagsched.model.order import sort_topologically
from airflow_dagsched.plan.checking.optimality import check_strictly
from airflow_dagsched.plan.costing.evaluator import Evaluator
from airflow_dagsched.plan.costing.lower_bound import bound_makespan
from airflow_dagsched.plan.grouping.coarsest import find_groups
from airflow_dagsched.plan.passes.select_groups import search_problem
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.problem.partition import find_edges_between, name_by_least
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.resident.separation import list_kept_apart
from airflow_dagsched.plan.settings import DEFAULTS
from tests.plan.drawn import drawn, standalone

MIB = 2**20
CHANGES = 12
"""Dataflows looked at from each first one."""
WORST = 1.1
"""Of all of them, makespan over optimum."""
COOLING = 0.8
Pairs = list[tuple[str, str]]


def partitions(nodes: int) -> Iterator[list[int]]:
    """All partitions of ``0 .. nodes-1``, each node with the least of its part."""
    if not nodes:
        yield []
        return
    for home in partitions(nodes - 1):
        yield from ([*home, part] for part in sorted({*home, nodes - 1}))


def optimum(problem: Problem) -> float:
    """The least makespan of all groupings there are; ordinary tasks are in none."""
    graph, best = problem.graph, float("inf")
    tasks = list(range(len(graph.steps), len(graph.ids)))
    for steps in partitions(len(graph.steps)):
        home = [*steps, *tasks]
        if len(sort_topologically(find_edges_between(graph, home))) == len(home) and home == name_by_least(home):
            try:
                best = min(best, Evaluator(problem).evaluate_grouping(home).cost.makespan_s)
            except DoesNotFit:
                continue
    return best


def ratio(flow: Dataflow, cluster: Cluster) -> float:
    """What is found over the optimum, the bound below both."""
    facts = Problem.of(flow, cluster, DEFAULTS)
    best = search_problem(facts).best
    assert best is not None
    least = optimum(facts)
    assert bound_makespan(facts, list_kept_apart(facts)).seconds <= least + 1e-6
    return best.cost.makespan_s / least


def resident(rng: random.Random) -> Dataflow:
    """Five streaming steps at most, each of a core or two."""
    flow = batch(rng)
    return replace(flow, steps=tuple(replace(step, mode="streaming") for step in flow.steps))


def batch(rng: random.Random) -> Dataflow:
    """Five steps at most."""
    names = "abcde"[: rng.randint(2, 5)]
    pairs = [(one, other) for at, other in enumerate(names) for one in names[:at]]
    return Dataflow(
        name="searched",
        steps=tuple(Step(id=name, cores=rng.randint(1, 2), runtime_s=rng.choice([1, 10, 30, 60])) for name in names),
        channels=tuple(_channel(rng, pair) for pair in pairs if rng.random() < 0.4),
    )


def with_tasks(rng: random.Random) -> Dataflow:
    """The same with one or two ordinary tasks, each behind a step and before a later one, or before a step only."""
    flow = batch(rng)
    names = [step.id for step in flow.steps]
    tasks, dependencies = [], []
    for name in "tu"[: rng.randint(1, 2)]:
        tasks.append(Task(id=name, runtime_s=rng.choice([5, 60, 300])))
        at = rng.randrange(len(names))
        dependencies.append((name, names[at]))
        dependencies += [(names[rng.randrange(at)], name)] if at and rng.random() < 0.6 else []
    return replace(flow, tasks=tuple(tasks), dependencies=tuple(dependencies))


def _channel(rng: random.Random, pair: tuple[str, str]) -> Channel:
    return Channel(src=pair[0], dst=pair[1], kind=rng.choice(["pipelined", "buffered"]), bytes=_size(rng))


def _size(rng: random.Random) -> int:
    return rng.choice([0, 200, 2000]) * MIB


def changed(flow: Dataflow, rng: random.Random) -> Dataflow:
    """One step, one edge, all sizes, or one ordinary task changed."""
    change = rng.choice([_step, _step, _edge, _sizes, _task])
    return change(flow, rng)


def _step(flow: Dataflow, rng: random.Random) -> Dataflow:
    at = rng.randrange(len(flow.steps))
    steps = list(flow.steps)
    cores, width = rng.randint(1, 2), rng.choice([1, 1, 2])
    seconds = steps[at].runtime_s * rng.choice([0.3, 1, 3])
    steps[at] = replace(steps[at], runtime_s=seconds, cores=cores, parallelism=width)
    return replace(flow, steps=tuple(steps))


def _edge(flow: Dataflow, rng: random.Random) -> Dataflow:
    """One more, or one less."""
    one, other = sorted(rng.sample([step.id for step in flow.steps], 2))
    left = [channel for channel in flow.channels if (channel.src, channel.dst) != (one, other)]
    added = [_channel(rng, (one, other))] if len(left) == len(flow.channels) else []
    return replace(flow, channels=(*left, *added))


def _sizes(flow: Dataflow, rng: random.Random) -> Dataflow:
    return replace(flow, channels=tuple(replace(one, bytes=_size(rng)) for one in flow.channels))


def _task(flow: Dataflow, rng: random.Random) -> Dataflow:
    return replace(flow, tasks=tuple(replace(one, runtime_s=rng.choice([1, 20, 100, 400])) for one in flow.tasks))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("first", [resident, batch, with_tasks])
def test_searched_for_bad_dataflows_are_near_the_optimum(first: Callable[[random.Random], Dataflow], seed: int) -> None:
    """None that is found is farther off than ``WORST``; its plan is accepted."""
    rng = random.Random(seed)
    cluster = standalone(4) if seed % 2 else standalone(2, 4)
    here = worst = first(rng)
    energy = most = ratio(here, cluster)
    heat = 0.05
    for _ in range(CHANGES):
        other = changed(here, rng)
        try:
            found = ratio(other, cluster)
        except DoesNotFit:
            continue
        if found >= energy - heat * rng.random():
            here, energy = other, found
        if found > most:
            worst, most = other, found
        heat *= COOLING
    assert most <= WORST
    assert check_strictly(plan(worst, cluster), worst, cluster) == ()


DIAMONDS = {
    "a == b; b == d; a ~~ c; c == d": "abcd",
    "a == b; b == d; a ~~ c; c ~~ d": "abcd",
    "a == b; b == d; a -- c; c -- d": "abcd",
    "a == b; b == e; a ~~ c; c ~~ d; d == e": "abcde",
    "a == b; a ~~ c; c == d; b == e; d ~~ e": "abcde",
    "a == d; a ~~ b; b == c; c ~~ d; e == d; b ~~ f": "abcde f",
}
"""The diamond, a ══> b ══> d beside a ~~> c ══> d, and its relatives: what is then one group at a parse."""


@pytest.mark.parametrize("edges", DIAMONDS)
def test_a_detour_never_makes_groups_wait_for_each_other(edges: str) -> None:
    """Neither at a parse nor where the cluster has them cut."""
    flow = drawn(edges)
    found = {"".join(sorted(group.steps)) for group in find_groups(flow).groups}
    assert found == set(DIAMONDS[edges].split())
    for one in (flow, replace(flow, steps=tuple(replace(step, mode="streaming") for step in flow.steps))):
        for cores in (1, 2, 4):
            try:
                made = plan(one, standalone(cores))
            except DoesNotFit:
                continue
            assert check_strictly(made, one, standalone(cores)) == ()
