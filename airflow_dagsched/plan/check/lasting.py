"""How long each group takes, worked out anew: its steps played through, its datasets read and written.

Batch: whenever something ends, steps that run and have instances left, then steps whose inputs are done, take
free cores in the group's order; a step takes a slot from its first instance to its last. Streaming: all from
start to end. Edges that lead back in the group's order (a loop's) hold nothing up. A step that is left out ends with
its last input, without a slot, and is no end of the group's work.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from airflow_dagsched.model.dataflow import Step
from airflow_dagsched.plan.check.facts import Facts, Violation
from airflow_dagsched.plan.values import Container, Group

TOLERANCE_S = 1e-3
BYTES_PER_MIB = 2**20


@dataclass(slots=True)
class _Playing:
    """A step of the group: instances to start, instances running, inputs to wait for, who waits for it."""

    seconds: float
    cores: int
    to_start: int
    at_once: int
    """Instances that the containers it may be in hold at the same time."""
    running: int = 0
    inputs: int = 0
    readers: Sequence[int] = ()
    """One as often as it waits."""


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
        compute, spread = _played(group, _steps(facts, group, steps, place))
        expected = {
            "start": (group.time.start, facts.cluster.application_start_s),
            "read": (group.time.read, read.get(group.id, 0) / rate),
            "compute": (group.time.compute, compute),
            "write": (group.time.write, written.get(group.id, 0) / rate),
            "finish_spread_s": (group.finish_spread_s, spread),
        }
        for what, (told, found) in expected.items():
            if abs(told - found) > TOLERANCE_S + 1e-9 * found:
                yield Violation("times", group.id, f"{what} is {told:g} s, by simulation {found:g} s")


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


def _played(group: Group, steps: list[_Playing]) -> tuple[float, float]:
    """Seconds until the last step ends, and between the first end and the last."""
    ends = _together(steps) if group.residency == "all" else _in_turn(steps, group)
    return max(ends, default=0.0), max(ends, default=0.0) - min(ends, default=0.0)


def _steps(facts: Facts, group: Group, steps: list[Step], place: int) -> list[_Playing]:
    """Those of the group, the first of which stands at ``place`` in the plan."""
    gone = _pruned(group)
    default = facts.settings.step_runtime_s
    known: dict[tuple[int, tuple[str, ...]], int] = {}
    made = []
    for step in steps:
        count = max(0, step.parallelism - gone.get(step.id, 0)) if gone else step.parallelism
        kind = step.cores, step.pinned
        if kind not in known:
            known[kind] = _lanes(step, group.containers)
        made.append(_Playing(step.runtime_s or default, step.cores, count, known[kind]))
    for one, later in zip(made, facts.edges.later[place : place + len(made)], strict=True):
        one.readers = [there - place for there in later]
        for reader in one.readers:
            made[reader].inputs += 1
    return made


def _pruned(group: Group) -> dict[str, int]:
    """Step -> instances that do not run."""
    gone: dict[str, int] = {}
    for pruned in group.pruned:
        if pruned.what == "step":
            gone[pruned.id] = 2**62
        elif pruned.what == "instance":
            name = pruned.id.rpartition("/")[0]
            gone[name] = gone.get(name, 0) + 1
    return gone


def _lanes(step: Step, boxes: tuple[Container, ...]) -> int:
    if not step.pinned:
        return len(boxes) * (boxes[0].cores // step.cores)
    return sum(box.cores // step.cores for box in boxes if box.worker in step.pinned)


def _together(steps: list[_Playing]) -> list[float]:
    """No step ends before those it takes from."""
    ends = [step.seconds if step.to_start else 0.0 for step in steps]
    for at, step in enumerate(steps):
        for reader in step.readers:
            ends[reader] = max(ends[reader], ends[at])
    return ends


def _in_turn(steps: list[_Playing], group: Group) -> list[float]:
    if len(steps) == 1 and steps[0].at_once:  # nothing to wait for
        return [steps[0].seconds * -(-steps[0].to_start // steps[0].at_once)]
    play = _Play(steps, sum(box.cores for box in group.containers), group.slots)
    for at in [at for at, step in enumerate(steps) if not step.inputs]:
        play.let_in(at)
    play.hand_out()
    ends: list[float] = []
    while play.ending:
        done = play.advance()
        ends += [play.now] * len(done)
        for at in done:
            play.tell_readers(at)
        play.hand_out()
    return ends


@dataclass(slots=True)
class _Play:
    """Free cores and slots at a moment, who waits for them, what ends when."""

    steps: list[_Playing]
    free: int
    slots: int
    now: float = 0.0
    ready: list[int] = field(default_factory=list)
    partly: list[int] = field(default_factory=list)
    """Steps that run and have instances left, sorted."""
    ending: list[tuple[float, int, int]] = field(default_factory=list)

    def let_in(self, at: int) -> None:
        """A step has all its inputs; one without instances has ended with that."""
        if self.steps[at].to_start:
            heapq.heappush(self.ready, at)
        else:
            self.tell_readers(at)

    def tell_readers(self, at: int) -> None:
        """A step has ended."""
        for reader in self.steps[at].readers:
            self.steps[reader].inputs -= 1
            if not self.steps[reader].inputs:
                self.let_in(reader)

    def hand_out(self) -> None:
        """Cores first for what runs, then for what is ready, while there are slots."""
        for at in self.partly:
            self._start(at)
        self.partly = [at for at in self.partly if self.steps[at].to_start]
        while self.ready and self.slots and self._start(self.ready[0]):
            at = heapq.heappop(self.ready)
            self.slots -= 1
            if self.steps[at].to_start:
                self.partly = sorted([*self.partly, at])

    def _start(self, at: int) -> bool:
        """Start as many instances as fit; whether any did."""
        step = self.steps[at]
        count = min(step.to_start, step.at_once - step.running, self.free // step.cores)
        if count <= 0:
            return False
        step.to_start -= count
        step.running += count
        self.free -= count * step.cores
        heapq.heappush(self.ending, (self.now + step.seconds, at, count))
        return True

    def advance(self) -> list[int]:
        """Go to the next moment at which something ends; the steps that end at it."""
        self.now = self.ending[0][0]
        done = []
        while self.ending and self.ending[0][0] == self.now:
            _, at, count = heapq.heappop(self.ending)
            step = self.steps[at]
            step.running -= count
            self.free += count * step.cores
            if not step.running and not step.to_start:
                self.slots += 1
                done.append(at)
        return done
