"""What one application per step takes: so many groups and spilled bytes, and seconds within limits.

    {a} ──> {b} ──> {d}      at least   the longest path, each start, read and write on it included; or all core-seconds
     └────> {c} ─────^       at most    one after another, a, b, c, d, each on one lane

What it takes within these limits follows from sizes and orders that a planner chooses.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from airflow_dagsched.plan.checking.facts.edges import Dataset
from airflow_dagsched.plan.checking.facts.plan_facts import Facts, measure_datasets
from airflow_dagsched.plan.checking.optimality.paths import Paths, RunningSteps


class SeparateApplications(Struct, frozen=True):
    """Of a plan in which each step, or loop, is a group."""

    groups: int
    spilled_bytes: int
    least_s: float
    most_s: float
    core_seconds: float
    """At least."""

    @classmethod
    def of(cls, facts: Facts) -> SeparateApplications:
        """Of all steps and instances that are declared."""
        running = RunningSteps.of(facts, narrowed=False)
        paths = Paths.of(facts, running)
        moved, spilled = _sum_transfers(facts, paths.node)
        # Steps of a loop share a node: they are one application in any grouping.
        nodes = sorted(set(paths.node[: len(running.steps)]))
        around = [0.0] * len(paths.own)
        for node in nodes:
            # ``spilling_s`` is for writing and reading; here each counts by itself.
            around[node] = running.start_s + running.spilling_s / 2 * moved[node]
        rows = list(zip(running.steps, running.counts, running.seconds, strict=True))
        held = sum([step.cores * count * seconds for step, count, seconds in rows])
        # While an application starts, reads and writes it holds a container, which has the cores of one instance at
        # least.
        narrowest = min([step.cores for step in running.steps], default=0)
        core_seconds = held + narrowest * sum(around)
        path = _measure_longest(paths, [own + more for own, more in zip(paths.own, around, strict=True)])
        return cls(
            len(nodes),
            spilled,
            max(path, core_seconds / running.cores if running.cores else 0.0),
            # One after another, each instance by itself: no order and no shape is slower than that.
            sum(around) + sum([count * seconds for _, count, seconds in rows]) + sum(paths.own[len(rows) :]),
            core_seconds,
        )


def _sum_transfers(facts: Facts, node: Sequence[int]) -> tuple[list[int], int]:
    """Bytes that each node reads and writes, and those of datasets with a pipelined channel between nodes."""
    place = facts.edges.place
    readers: dict[Dataset, set[int]] = {}
    size = facts.dataset_bytes or measure_datasets(facts.dataflow)
    spilled: set[Dataset] = set()
    for channel in facts.dataflow.channels:
        dataset, reader = (channel.src, channel.output), node[place[channel.dst]]
        if reader != node[place[channel.src]]:
            readers.setdefault(dataset, set()).add(reader)
            # A buffered channel is written in any case, so it is moved but not spilled.
            if channel.kind == "pipelined":
                spilled.add(dataset)
    moved = [0] * len(node)
    for dataset, others in readers.items():
        for at in (node[place[dataset[0]]], *others):
            moved[at] += size[dataset]
    return moved, sum([size[dataset] for dataset in spilled])


def _measure_longest(paths: Paths, seconds: Sequence[float]) -> float:
    """Of all paths, the nodes taking so many seconds each."""
    head = [0.0] * len(seconds)
    for at in paths.order:
        for after in paths.nexts[at]:
            head[after] = max(head[after], head[at] + seconds[at])
    return max([ahead + own for ahead, own in zip(head, seconds, strict=True)], default=0.0)
