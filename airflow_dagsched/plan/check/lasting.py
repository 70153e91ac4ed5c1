"""How long each group takes, worked out anew: its steps played through, its datasets read and written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import sub

from airflow_dagsched.model.dataflow import Step
from airflow_dagsched.plan.check.facts import BYTES_PER_MIB, TOLERANCE_S, Facts, Violation
from airflow_dagsched.plan.check.limits import check_limits, longest_chain
from airflow_dagsched.plan.check.playing import Played, Playing, played, played_alone
from airflow_dagsched.plan.check.running import instances_left
from airflow_dagsched.plan.values import Container, Group

PARTS = ("start", "read", "compute", "write", "finish_spread_s")


def check_lasting(facts: Facts) -> Iterator[Violation]:
    """Start, read, compute and write of each group are what its steps and datasets take on its containers."""
    read, written = _moved(facts)
    rate, start_s = facts.cluster.spill_mb_s * BYTES_PER_MIB, facts.cluster.application_start_s
    first = 0
    for at, (group, steps) in enumerate(facts.members):
        place, first = first, first + len(group.steps)
        if not group.containers or len(steps) < len(group.steps):
            continue
        if group.progress != "planned":
            yield from _over(group)
            continue
        chain_s, found = _computed(facts, group, steps, place)
        yield from check_limits(facts, group, chain_s, found)
        expected = start_s, read[at] / rate, found.compute_s, written[at] / rate, found.spread_s
        yield from _compared(group, expected)


def _compared(group: Group, expected: tuple[float, ...]) -> Iterator[Violation]:
    """``expected``: seconds of each of the ``PARTS``."""
    time = group.time
    told = time.start, time.read, time.compute, time.write, group.finish_spread_s
    if max(map(abs, map(sub, told, expected))) > TOLERANCE_S:
        for what, one, seconds in zip(PARTS, told, expected, strict=True):
            if abs(one - seconds) > TOLERANCE_S + 1e-9 * seconds:
                yield Violation("times", group.id, f"{what} is {one:g} s, by simulation {seconds:g} s")


def _over(group: Group) -> Iterator[Violation]:
    """What runs was predicted before what is known now; what has finished takes no time any more."""
    if group.progress == "finished" and group.end_s > group.start_s:
        yield Violation("times", group.id, f"has finished, and still takes {group.end_s - group.start_s:g} s")


def _moved(facts: Facts) -> tuple[list[int], list[int]]:
    """Bytes that each group reads from and writes for other groups, each dataset once; what is left out, neither."""
    edges = facts.edges
    idle = {edges.place.get(one.id) for group in facts.plan.groups for one in group.pruned if one.what == "step"}
    read, written = [0] * len(facts.units), [0] * len(facts.units)
    for dataset, readers in edges.crossing.items():
        size, writer = facts.size[dataset], edges.place[dataset[0]]
        if size and writer not in idle:
            written[edges.unit_at[writer]] += size
            running = [reader for reader in readers if reader not in idle] if idle else readers
            for unit in set(map(edges.unit_at.__getitem__, running)):
                read[unit] += size
    return read, written


def _computed(facts: Facts, group: Group, steps: Sequence[Step], place: int) -> tuple[float, Played]:
    """Seconds of the longest chain that counts for its limit, and the group played; its first step is at ``place``."""
    waves = group.limit == "critical path"
    if len(steps) == 1 and group.residency == "slots":
        seconds = steps[0].runtime_s or facts.settings.step_runtime_s
        alone = played_alone(seconds, instances_left(group, steps)[0], _lanes(steps[0], group.containers))
        return alone.compute_s if waves else seconds, alone
    playing = _steps(facts, group, steps, place)
    batch = group.residency == "slots" and not group.placement
    return longest_chain(playing, waves=waves) if batch else 0.0, played(group, playing)


def _steps(facts: Facts, group: Group, steps: Sequence[Step], place: int) -> list[Playing]:
    """Those of the group, the first of which stands at ``place`` in the plan."""
    default = facts.settings.step_runtime_s
    known: dict[tuple[int, tuple[str, ...]], int] = {}
    made = []
    for step, count in zip(steps, instances_left(group, steps), strict=True):
        kind = step.cores, step.pinned
        if kind not in known:
            known[kind] = _lanes(step, group.containers)
        made.append(Playing(step.runtime_s or default, step.cores, count, known[kind]))
    for one, later in zip(made, facts.edges.later[place : place + len(made)], strict=True):
        one.readers = [there - place for there in later]
        for reader in one.readers:
            made[reader].inputs += 1
    return made


def _lanes(step: Step, boxes: tuple[Container, ...]) -> int:
    if not step.pinned:
        return len(boxes) * (boxes[0].cores // step.cores)
    return sum(box.cores // step.cores for box in boxes if box.worker in step.pinned)
