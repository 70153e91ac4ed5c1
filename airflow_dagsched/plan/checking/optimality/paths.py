"""How long it takes to each step and ordinary task at least, and from its end to the end of the last behind it.

    head           own             tail
    ├──────────────▐███████████████▌─────────────────┤

Along a path one ends before the next begins, waves of instances included. An application starts before the first step,
and again behind each ordinary task; and between two steps that may not share one, with the rows between them written
and read. Steps that stream run side by side with others: if any does, steps count for nothing along a path but in
front of such a start, or of a task. Steps that repeat together count as one, the longest of them. Where steps are left
out, applications may be, too: neither starts nor rows count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, chain, pairwise, permutations, repeat

from msgspec import Struct

from airflow_dagsched.model.dataflow import Step
from airflow_dagsched.model.units import MIB
from airflow_dagsched.plan.checking.facts.edges import order_units
from airflow_dagsched.plan.checking.facts.loops import find_loops
from airflow_dagsched.plan.checking.facts.plan_facts import Facts
from airflow_dagsched.plan.checking.facts.running_instances import count_instances, estimate_task_s
from airflow_dagsched.plan.checking.optimality.separation import NOTHING as NO_STEP
from airflow_dagsched.plan.checking.optimality.separation import StreamHolding, find_separated

ALIKE = repeat(None)
NOTHING: Mapping[int, int] = {}
TASK = -1
"""The color of an ordinary task: none."""


class RunningSteps(Struct, frozen=True):
    """Of the steps, by their places in the plan."""

    steps: Sequence[Step]
    counts: Sequence[int]
    """Instances that run."""
    seconds: Sequence[float]
    """Of one of them."""
    start_s: float
    spilling_s: float
    """For each byte, to write and read it."""
    streams: bool
    cores: int
    """Of all workers."""

    @classmethod
    def of(cls, facts: Facts, *, narrowed: bool) -> RunningSteps:
        """``narrowed``: without the instances that are left out; those of steps that are left out never count."""
        steps = [step for _, members in facts.members for step in members]
        left = [count for group, members in facts.members for count in count_instances(group, members)]
        counts = (
            left if narrowed else [step.parallelism if count else 0 for step, count in zip(steps, left, strict=True)]
        )
        default = facts.settings.step_runtime_s
        idle = any(worker.what == "step" for group in facts.plan.groups for worker in group.pruned)
        return cls(
            steps,
            counts,
            [(step.runtime_s or default) if count else 0.0 for step, count in zip(steps, counts, strict=True)],
            0.0 if idle else facts.cluster.application_start_s,
            0.0 if idle else 2 / (facts.cluster.spill_mb_s * MIB),
            "streaming" in {step.mode for step in steps},
            sum(worker.free_cores for worker in facts.cluster.workers),
        )


class Paths(Struct, frozen=True):
    """Seconds by place: of the steps, then of the ordinary tasks. Of a loop, those of its one ``node``."""

    node: Sequence[int]
    own: list[float]
    head: list[float]
    nexts: Sequence[Sequence[int]]
    order: Sequence[int]
    """The nodes, each behind all it takes from."""
    gaps: Sequence[Sequence[float | None]]
    """For each of ``nexts`` what must lie in between; None where the two may share a group. Empty where all may."""
    streams: bool
    apart: Sequence[Sequence[int]]
    """For each node those before it, next to it or not, whose groups end before its own starts; see ``between``."""
    start_s: float

    @classmethod
    def of(cls, facts: Facts, running: RunningSteps, *, parted: bool = False) -> Paths:
        """From the first to the last; ``parted``: with what streams kept apart where it does not fit at once."""
        node, nexts, order = _condense_loops(facts)
        waves = chain(
            _estimate_waves(facts, running), (estimate_task_s(facts, task.id) for task in facts.dataflow.tasks)
        )
        own = [0.0] * len(node)
        for at, seconds in zip(node, waves, strict=True):
            own[at] = max(own[at], seconds)
        head = [running.start_s] * len(running.steps) + [0.0] * len(facts.tasks)
        gaps = _find_gaps(facts, running, node, nexts)
        apart = find_separated(facts, _sum_held(facts, running, node), nexts, order) if parted else [()] * len(node)
        for at in order:
            if apart[at]:
                head[at] = max(head[at], running.start_s + max([head[before] + own[before] for before in apart[at]]))
            end = head[at] + own[at]
            together = head[at] if running.streams else end
            for after, gap in zip(nexts[at], gaps[at] if gaps else ALIKE, strict=False):
                ready = together if gap is None else end + gap
                if ready > head[after]:  # noqa: PLR1730  a call of max here costs a third of this walk
                    head[after] = ready
        return cls(node, own, head, nexts, order, gaps, running.streams, apart, running.start_s)

    @property
    def longest_s(self) -> float:
        """To the end of the last."""
        return max([ahead + taken for ahead, taken in zip(self.head, self.own, strict=True)], default=0.0)

    def find_tails(self) -> list[float]:
        """By node."""
        tail = [0.0] * len(self.own)
        for at in reversed(self.order):
            for after, gap in zip(self.nexts[at], self.gaps[at] if self.gaps else ALIKE, strict=False):
                own = 0.0 if gap is None and self.streams else self.own[after]
                behind = (gap or 0.0) + own + tail[after]
                if behind > tail[at]:  # noqa: PLR1730  likewise
                    tail[at] = behind
            for before in self.apart[at]:
                tail[before] = max(tail[before], self.start_s + self.own[at] + tail[at])
        return tail


def _sum_held(facts: Facts, running: RunningSteps, node: Sequence[int]) -> list[StreamHolding]:
    """By node, what it holds while it streams."""
    by_node, default = [NO_STEP] * len(node), facts.settings.step_memory_mb
    for at, step, count in zip(node, running.steps, running.counts, strict=False):
        cores, memory, steps = by_node[at]
        by_node[at] = cores + step.cores * count, memory + (step.memory_mb or default) * count, steps + 1
    return by_node


def _estimate_waves(facts: Facts, running: RunningSteps) -> list[float]:
    """Seconds of each step if it has the cluster for itself."""
    if running.streams:
        return list(running.seconds)
    lanes: dict[tuple[int, tuple[str, ...]], int] = {}
    by_node = list(running.seconds)
    for at, count in enumerate(running.counts):
        if count > 1:
            step = running.steps[at]
            kind = step.cores, step.pinned
            if kind not in lanes:
                allowed = [worker for worker in facts.cluster.workers if not step.pinned or worker.id in step.pinned]
                lanes[kind] = sum(worker.free_cores // step.cores for worker in allowed) or count
            by_node[at] *= -(-count // lanes[kind])
    return by_node


def _condense_loops(facts: Facts) -> tuple[Sequence[int], Sequence[Sequence[int]], Sequence[int]]:
    """For each place its node, the nodes behind each node, and these in order."""
    edges = facts.edges
    nexts: list[list[int]] = edges.later
    if edges.beyond:
        nexts = [inside + outside for inside, outside in zip(edges.later, edges.beyond, strict=True)]
    if not edges.back:
        sizes = [len(group.steps) for group in facts.plan.groups] + [1] * len(facts.tasks)
        places = [range(first, end) for first, end in pairwise(accumulate(sizes, initial=0))]
        return range(len(nexts)), nexts, [at for unit in edges.order for at in places[unit]]
    loop = find_loops(facts.dataflow)
    names = [name for group in facts.plan.groups for name in group.steps] + [task.id for task in facts.dataflow.tasks]
    node = [edges.place[loop.get(name, name)] for name in names]
    above: list[set[int]] = [set() for _ in node]
    rowful = ((src, dst) for src, afters in enumerate(nexts) for dst in afters)
    for src, dst in chain(rowful, ((edges.place[src], edges.place[dst]) for src, dst in edges.back)):
        if node[src] != node[dst]:
            above[node[dst]].add(node[src])
    drawn: list[list[int]] = [[] for _ in node]
    for at, before in enumerate(above):
        for other in before:
            drawn[other].append(at)
    return node, drawn, order_units(above)


def _find_gaps(
    facts: Facts, running: RunningSteps, node: Sequence[int], nexts: Sequence[Sequence[int]]
) -> list[list[float | None]]:
    """See ``Paths``."""
    color, apart, place = _color_nodes(facts, running, node), set[tuple[int, int]](), facts.edges.place
    for names in facts.settings.apart:
        apart |= set(permutations({node[place[name]] for name in names if name in place}, 2))
    if len(set(color)) <= 1 and not apart:
        return []
    size = _sum_bytes_between(facts, node)
    steps, by_node = len(running.steps), []
    start_s, spilling_s = running.start_s, running.spilling_s
    for here, afters in enumerate(nexts):
        own, bytes_to = color[here], size.get(here, NOTHING)
        row: list[float | None] = [
            None
            if own == color[there] != TASK and not (apart and (here, there) in apart)
            else 0.0
            if there >= steps
            else start_s + spilling_s * bytes_to.get(there, 0)
            for there in afters
        ]
        by_node.append(row)
    return by_node


def _sum_bytes_between(facts: Facts, node: Sequence[int]) -> dict[int, dict[int, int]]:
    """From node to node, each dataset once, of those that are in different groups."""
    place, by_node = facts.edges.place, dict[int, dict[int, int]]()
    for dataset, readers in facts.edges.crossing.items():
        size = facts.dataset_bytes[dataset]
        if size:
            row = by_node.setdefault(node[place[dataset[0]]], {})
            for reader in set(map(node.__getitem__, readers)):
                row[reader] = row.get(reader, 0) + size
    return by_node


def _color_nodes(facts: Facts, running: RunningSteps, node: Sequence[int]) -> list[int]:
    """By node: steps of different colors may not share a group, an ordinary task is in none."""
    isolated = {node[at] for at, step in enumerate(running.steps) if step.isolate}
    known: dict[tuple[int, str, str], int] = {}
    colors = []
    for at, step in zip(node, running.steps, strict=False):
        settings = repr(sorted(step.application.items())) if step.application else ""
        colors.append(known.setdefault((at if at in isolated else TASK, settings, step.pool), len(known)))
    return colors + [TASK] * len(facts.tasks)
