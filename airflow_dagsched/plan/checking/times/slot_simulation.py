"""The steps of a group simulated: when each ends, and how many are side by side.

Batch: whenever something ends, steps that run and have instances left, then steps whose inputs are done, take
free cores in the group's order; a step takes a slot from its first instance to its last. Streaming: all from
start to end. Edges that lead back in the group's order (a loop's) hold nothing up. A step that is left out ends with
its last input, without a slot, and is no end of the group's work.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct, field

from airflow_dagsched.plan.plan_types import Group


class SimulatedStep(Struct):
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


class SimulatedGroup(NamedTuple):
    """How long the steps of a group take together."""

    compute_s: float
    spread_s: float
    """Between the first end of a step and the last."""
    side_by_side: int
    """Steps, at most."""
    begins: Mapping[int, float] = {}
    """Batch steps that run, by place in the group -> when the first of their instances starts."""


def simulate_group(group: Group, steps: list[SimulatedStep]) -> SimulatedGroup:
    """The steps in the containers and slots of the group; their counters are used up."""
    if group.residency == "all":
        return _measure_ends(_end_together(steps), len(steps))
    slots = _SlotSimulation(steps, sum(container.cores for container in group.containers), group.slots, group.slots)
    return _measure_ends(slots.run(), group.slots - slots.unused)._replace(begins=slots.begins)


def simulate_single_step(seconds: float, count: int, at_once: int) -> SimulatedGroup:
    """One batch step in slots: its instances in waves."""
    # Full waves, and one for the rest.
    return SimulatedGroup(seconds * -(-count // at_once), 0.0, 1) if at_once else SimulatedGroup(0.0, 0.0, 0)


def _measure_ends(ends: list[float], side_by_side: int) -> SimulatedGroup:
    last = max(ends, default=0.0)  # none: every step is left out
    return SimulatedGroup(last, last - min(ends, default=0.0), side_by_side)


def _end_together(steps: list[SimulatedStep]) -> list[float]:
    """No step ends before those it takes from."""
    ends = [step.seconds if step.to_start else 0.0 for step in steps]
    # In the group's order, which is topological but for loops: one pass is enough.
    for at, step in enumerate(steps):
        for reader in step.readers:
            ends[reader] = max(ends[reader], ends[at])
    return ends


class _SlotSimulation(Struct):
    """Free cores and slots at a moment, who waits for them, what ends when."""

    steps: list[SimulatedStep]
    free: int
    slots: int
    unused: int
    """Slots that have never been taken."""
    now: float = 0.0
    ready: list[int] = field(default_factory=list)
    partly_started: list[int] = field(default_factory=list)
    """Steps that run and have instances left, sorted."""
    ending: list[tuple[float, int, int]] = field(default_factory=list)
    begins: dict[int, float] = field(default_factory=dict)

    def run(self) -> list[float]:
        """When each step ends."""
        # A list of its own: a step without instances may bring another's inputs to 0, which would be admitted twice.
        for at in [at for at, step in enumerate(self.steps) if not step.inputs]:
            self.admit_step(at)
        self.assign_cores()
        ends: list[float] = []
        while self.ending:
            ended = self.advance_time()
            ends += [self.now] * len(ended)
            for at in ended:
                self.release_readers(at)
            self.assign_cores()
        return ends

    def admit_step(self, at: int) -> None:
        """A step has all its inputs; one without instances has ended with that."""
        # Else it is left out: it takes no slot, and whoever waits for it is free at once.
        if self.steps[at].to_start:
            heapq.heappush(self.ready, at)
        else:
            self.release_readers(at)

    def release_readers(self, at: int) -> None:
        """A step has ended."""
        for reader in self.steps[at].readers:
            self.steps[reader].inputs -= 1
            if not self.steps[reader].inputs:
                self.admit_step(reader)

    def assign_cores(self) -> None:
        """Cores first for what runs, then for what is ready, while there are slots."""
        for at in self.partly_started:
            self._start_instances(at)
        # Behind the loop: taken out while it runs, the next step would be skipped.
        self.partly_started = [at for at in self.partly_started if self.steps[at].to_start]
        # The first that is ready is not overtaken, even by one that would find cores.
        while self.ready and self.slots and self._start_instances(self.ready[0]):
            at = heapq.heappop(self.ready)
            self.begins[at] = self.now
            self.slots -= 1
            if self.steps[at].to_start:
                self.partly_started = sorted([*self.partly_started, at])
        if self.slots < self.unused:  # noqa: PLR1730  called at each moment
            self.unused = self.slots

    def _start_instances(self, at: int) -> bool:
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

    def advance_time(self) -> list[int]:
        """Go to the next moment at which something ends; the steps that end at it."""
        self.now = self.ending[0][0]
        ended = []
        while self.ending and self.ending[0][0] == self.now:
            _, at, count = heapq.heappop(self.ending)
            step = self.steps[at]
            step.running -= count
            self.free += count * step.cores
            # The slot is held until the last instance ends, not while there are instances to start.
            if not step.running and not step.to_start:
                self.slots += 1
                ended.append(at)
        return ended
