"""How long each group takes, worked out anew: its steps played through, its datasets read and written."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_dagsched.model.dataflow import Step
from airflow_dagsched.plan.check.facts import Facts, Violation
from airflow_dagsched.plan.check.limits import check_limits, longest_chain
from airflow_dagsched.plan.check.playing import Playing, played
from airflow_dagsched.plan.check.running import instances_left
from airflow_dagsched.plan.values import Container, Group

TOLERANCE_S = 1e-3
BYTES_PER_MIB = 2**20


def check_lasting(facts: Facts) -> Iterator[Violation]:
    """Start, read, compute and write of each group are what its steps and datasets take on its containers."""
    read, written = _moved(facts)
    rate = facts.cluster.spill_mb_s * BYTES_PER_MIB
    first = 0
    for group, steps in facts.members:
        place, first = first, first + len(group.steps)
        if not group.containers or len(steps) < len(group.steps):
            continue
        if group.progress != "planned":
            yield from _over(group)
            continue
        playing = _steps(facts, group, steps, place)
        batch = group.residency == "slots" and not group.placement
        chain = longest_chain(playing, waves=group.limit == "critical path") if batch else 0.0
        found = played(group, playing)
        yield from check_limits(facts, group, chain, found)
        expected = {
            "start": (group.time.start, facts.cluster.application_start_s),
            "read": (group.time.read, read.get(group.id, 0) / rate),
            "compute": (group.time.compute, found.compute_s),
            "write": (group.time.write, written.get(group.id, 0) / rate),
            "finish_spread_s": (group.finish_spread_s, found.spread_s),
        }
        for what, (told, seconds) in expected.items():
            if abs(told - seconds) > TOLERANCE_S + 1e-9 * seconds:
                yield Violation("times", group.id, f"{what} is {told:g} s, by simulation {seconds:g} s")


def _over(group: Group) -> Iterator[Violation]:
    """What runs was predicted before what is known now; what has finished takes no time any more."""
    if group.progress == "finished" and group.end_s > group.start_s:
        yield Violation("times", group.id, f"has finished, and still takes {group.end_s - group.start_s:g} s")


def _moved(facts: Facts) -> tuple[dict[str, int], dict[str, int]]:
    """Bytes that each group reads from and writes for other groups, each dataset once; what is left out, neither."""
    crossing = {(one.src, one.output, facts.unit(one.dst)) for one in facts.edges.crossing}
    size = {(src, output): 0 for src, output, _ in crossing}
    for channel in facts.dataflow.channels if crossing else ():
        dataset = channel.src, channel.output
        if dataset in size:
            size[dataset] = max(size[dataset], channel.bytes)
    idle = {one.id for group in facts.plan.groups for one in group.pruned if one.what == "step"}
    taken = {
        (one.src, one.output, facts.unit(one.dst)) for one in facts.edges.crossing if not idle & {one.src, one.dst}
    }
    read: dict[str, int] = {}
    for src, output, reader in taken:
        read[reader] = read.get(reader, 0) + size[src, output]
    written: dict[str, int] = {}
    for (src, _), amount in size.items():
        if src not in idle:
            written[facts.unit(src)] = written.get(facts.unit(src), 0) + amount
    return read, written


def _steps(facts: Facts, group: Group, steps: list[Step], place: int) -> list[Playing]:
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
