"""A line of units cut into runs, against all the ways to cut it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.units import MIB
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.resident.segmentation import Line, RunLimit, Units
from airflow_dagsched.plan.settings import DEFAULTS
from tests.plan.drawn import drawn, standalone
from tests.plan.test_choose import streaming

NAMES = "abcdefgh"
NOTHING = RunLimit(0, 0)


def flow(rng: random.Random) -> Dataflow:
    """Eight steps, each read by some behind it."""
    edges = "; ".join(f"{rng.choice(NAMES[:at])} == {NAMES[at]}" for _ in range(2) for at in range(1, len(NAMES)))
    steps: dict[str, Any] = {
        name: {"runtime_s": rng.randint(1, 60), "parallelism": rng.randint(1, 2)} for name in NAMES
    }
    return streaming(drawn(edges, size={name: rng.randint(0, 9) * 100 * MIB for name in NAMES}, **steps))


def cuts(nodes: Sequence[int]) -> Iterator[list[Sequence[int]]]:
    """All there are."""
    if not nodes:
        yield []
    for end in range(1, len(nodes) + 1):
        for rest in cuts(nodes[end:]):
            yield [nodes[:end], *rest]


def cost(runs: Sequence[Sequence[int]], problem: Problem, weight: float, cores: float) -> float:
    """Of each run a start, its longest step, and what it reads and writes; times what it holds."""
    total = 0.0
    for run in runs:
        held = sum(problem.graph.steps[node].parallelism for node in run)
        if held > cores and len(run) > 1:
            return float("inf")
        size = 0
        for dataset in problem.graph.datasets:
            inside, readers = dataset.src in run, [reader in run for reader in dataset.readers]
            size += dataset.bytes * (not all(readers) if inside else any(readers))
        rate = problem.cluster.spill_mb_s * MIB
        seconds = (
            problem.cluster.application_start_s + max(problem.arrays.runtime_s[node] for node in run) + size / rate
        )
        total += seconds * (weight + held / cores)
    return total


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("nodes", [range(8), range(2, 8), range(1, 6)])
def test_no_other_runs_are_cheaper(seed: int, nodes: Sequence[int]) -> None:
    """Also of a part of the line, which reads from outside and is read there."""
    rng = random.Random(seed)
    facts, weight, cores = Problem.of(flow(rng), standalone(6), DEFAULTS), rng.choice([2.0, 0.5, 0.1]), 6.0
    found = Line.of(nodes, Units.of(facts), NOTHING).cut_runs(facts, weight, RunLimit(cores, 10**9))
    assert found.cost == pytest.approx(cost(found.runs, facts, weight, cores))
    assert found.cost == pytest.approx(min(cost(runs, facts, weight, cores) for runs in cuts(nodes)))


@pytest.mark.parametrize("seed", range(12))
def test_blocks_stay_whole_and_runs_cost_what_is_told(seed: int) -> None:
    facts, room = Problem.of(flow(random.Random(seed)), standalone(6), DEFAULTS), RunLimit(6.0, 10**9)
    line = Line.of(range(8), Units.of(facts), RunLimit(3.0, 10**9))
    found = line.cut_runs(facts, 1.0, room)
    assert [node for run in found.runs for node in run] == list(range(8))
    assert {run[0] for run in found.runs} <= set(line.begins)
    assert found.cost == pytest.approx(cost(found.runs, facts, 1.0, 6.0))
