"""How long each group takes, worked out anew: its steps simulated, its datasets read and written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import sub

from airflow_dagsched.model.dataflow import Step
from airflow_dagsched.model.units import MIB
from airflow_dagsched.plan.checking.facts.plan_facts import TOLERANCE_S, Facts, Violation, measure_tolerance
from airflow_dagsched.plan.checking.facts.running_instances import count_instances
from airflow_dagsched.plan.checking.times.slot_simulation import (
    SimulatedGroup,
    SimulatedStep,
    simulate_group,
    simulate_single_step,
)
from airflow_dagsched.plan.plan_types import Container, Group

PARTS = ("start", "read", "compute", "write", "finish_spread_s")


def check_durations(facts: Facts) -> Iterator[Violation]:
    """Start, read, compute and write of each group are what its steps and datasets take on its containers."""
    bytes_read, bytes_written = _sum_transfers(facts)
    rate, start_s = facts.cluster.spill_mb_s * MIB, facts.cluster.application_start_s
    for number, group, steps, first_place in _list_known_groups(facts):
        if group.progress != "planned":
            yield from _check_begun(group)
            continue
        simulated = _simulate_in_slots(facts, group, steps, first_place)
        read_s, write_s = bytes_read[number] / rate, bytes_written[number] / rate
        yield from _compare_parts(group, (start_s, read_s, simulated.compute_s, write_s, simulated.spread_s))
        yield from _compare_begins(group, simulated)
        yield from _compare_slots(group, simulated)


def _compare_slots(group: Group, simulated: SimulatedGroup) -> Iterator[Violation]:
    """As many slots as are in use at some moment; placed, or with instances pruned, a group keeps those of before."""
    changed = group.placement or any(entry.what == "instance" for entry in group.pruned)
    if group.residency == "slots" and not changed and group.slots != simulated.side_by_side:
        text = f"has {group.slots} slots, of which {simulated.side_by_side} are ever in use"
        yield Violation("slots", group.id, text)


def list_simulated_groups(facts: Facts) -> Iterator[tuple[Group, list[SimulatedStep]]]:
    """Each group that is still to run, with its steps ready to be simulated."""
    for _, group, steps, first_place in _list_known_groups(facts):
        if group.progress == "planned":
            yield group, _prepare_steps(facts, group, steps, first_place)


def _list_known_groups(facts: Facts) -> Iterator[tuple[int, Group, Sequence[Step], int]]:
    """Number of each group that has containers and no unknown step, the group, its steps, the place of the first."""
    first_place = 0
    for number, (group, steps) in enumerate(facts.members):
        # A group without containers has nothing left to do; one with an unknown step cannot be simulated.
        if group.containers and len(steps) == len(group.steps):
            yield number, group, steps, first_place
        first_place += len(group.steps)


def _compare_parts(group: Group, expected: tuple[float, ...]) -> Iterator[Violation]:
    """``expected``: seconds of each of the ``PARTS``."""
    time = group.time
    planned = time.start, time.read, time.compute, time.write, group.finish_spread_s
    # All five at once first: nearly every group is right.
    if max(map(abs, map(sub, planned, expected))) > TOLERANCE_S:
        # How far apart steps end is the difference of two moments: as far off as these may be.
        sizes = *expected[:-1], expected[PARTS.index("compute")]
        for part, planned_s, expected_s, size_s in zip(PARTS, planned, expected, sizes, strict=True):
            if abs(planned_s - expected_s) > measure_tolerance(size_s):
                yield Violation("times", group.id, f"{part} is {planned_s:g} s, by simulation {expected_s:g} s")


def _compare_begins(group: Group, simulated: SimulatedGroup) -> Iterator[Violation]:
    """Each step that runs begins when the simulation has a core and a slot for it; a plan may also leave all unsaid."""
    expected = {group.steps[at]: begin for at, begin in simulated.begins.items()}
    if not group.begins:
        return
    for step in sorted(expected.keys() ^ group.begins.keys()):
        text = "begins at a moment that is not told" if step in expected else "begins, though it does not run here"
        yield Violation("times", group.id, f"{step!r} {text}")
    for step in sorted(expected.keys() & group.begins.keys()):
        if abs(group.begins[step] - expected[step]) > measure_tolerance(expected[step]):
            text = f"begins at {group.begins[step]:g} s, by simulation at {expected[step]:g} s"
            yield Violation("times", group.id, f"{step!r} {text}")


def _check_begun(group: Group) -> Iterator[Violation]:
    """What runs was predicted before what is known now; what has finished takes no time any more."""
    if group.progress == "finished" and group.end_s > group.start_s:
        yield Violation("times", group.id, f"has finished, and still takes {group.end_s - group.start_s:g} s")


def _sum_transfers(facts: Facts) -> tuple[list[int], list[int]]:
    """Bytes that each group reads from and writes for other groups, each dataset once; steps left out do neither."""
    edges = facts.edges
    idle = {edges.place.get(entry.id) for group in facts.plan.groups for entry in group.pruned if entry.what == "step"}
    bytes_read, bytes_written = [0] * len(facts.units), [0] * len(facts.units)
    for dataset, readers in edges.crossing.items():
        size, writer = facts.dataset_bytes[dataset], edges.place[dataset[0]]
        # What a step that is left out would have written is neither written nor read.
        if size and writer not in idle:
            bytes_written[edges.unit_at[writer]] += size
            running = [reader for reader in readers if reader not in idle] if idle else readers
            for unit in set(map(edges.unit_at.__getitem__, running)):  # once a group, however many of its steps read it
                bytes_read[unit] += size
    return bytes_read, bytes_written


def _simulate_in_slots(facts: Facts, group: Group, steps: Sequence[Step], first_place: int) -> SimulatedGroup:
    """The group simulated; many groups have one step, which takes no event loop."""
    if len(steps) == 1 and group.residency == "slots":
        seconds = steps[0].runtime_s or facts.settings.step_runtime_s
        at_once = _count_lanes(steps[0], group.containers)
        return simulate_single_step(seconds, count_instances(group, steps)[0], at_once)
    return simulate_group(group, _prepare_steps(facts, group, steps, first_place))


def _prepare_steps(facts: Facts, group: Group, steps: Sequence[Step], first_place: int) -> list[SimulatedStep]:
    """The steps of the group, the first of which stands at ``first_place`` in the plan."""
    default_s = facts.settings.step_runtime_s
    lanes: dict[tuple[int, tuple[str, ...]], int] = {}
    prepared = []
    for step, count in zip(steps, count_instances(group, steps), strict=True):
        # The lanes of a step follow from these two alone: most steps of a group are alike.
        kind = step.cores, step.pinned
        if kind not in lanes:
            lanes[kind] = _count_lanes(step, group.containers)
        prepared.append(SimulatedStep(step.runtime_s or default_s, step.cores, count, lanes[kind]))
    later_places = facts.edges.later[first_place : first_place + len(prepared)]
    for simulated, later in zip(prepared, later_places, strict=True):
        simulated.readers = [place - first_place for place in later]
        for reader in simulated.readers:
            prepared[reader].inputs += 1
    return prepared


def _count_lanes(step: Step, containers: tuple[Container, ...]) -> int:
    """Instances of the step that the containers it may be in hold at the same time."""
    if not step.pinned:
        # Of one container times their number: ``check_capacity`` sees to it that all with an instance are equal.
        running = [container for container in containers if container.instances]
        return len(running) * (running[0].cores // step.cores) if running else 0
    return sum(container.cores // step.cores for container in containers if container.worker in step.pinned)
