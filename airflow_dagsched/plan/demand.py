"""What a group's instances, and the containers that hold them, ask of the cluster."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from airflow_dagsched.model.dataflow import Step
from airflow_dagsched.plan.needs import Need, need_of, padding
from airflow_dagsched.plan.settings import Settings
from airflow_dagsched.plan.values import Instance, Resources


@dataclass(frozen=True, slots=True)
class Demand:
    """The steps of a group with their needs, in the group's order."""

    group: str
    steps: tuple[Step, ...]
    needs: tuple[Need, ...]
    residency: Literal["all", "slots"]
    slots: int
    settings: Settings

    def most_cores(self) -> int:
        """Of one instance."""
        return max(need.cores for need in self.needs)

    def wanted_cores(self) -> int:
        """Cores that the widest steps can keep busy side by side; of all steps, if all are resident."""
        widths = sorted((step.cores * step.parallelism for step in self.steps), reverse=True)
        return sum(widths if self.residency == "all" else widths[: self.slots])

    def memory_at_once(self, cores: int) -> int:
        """MiB, without padding, that any container of ``cores`` may need: whichever instances it holds."""
        left = at_once(cores, self.needs)
        total = 0
        for need, step in sorted(zip(self.needs, self.steps, strict=True), key=lambda pair: -pair[0].memory_mb):
            take = min(left, step.parallelism)
            total, left = total + take * need.memory_mb, left - take
        return total


def demand_of(group: str, steps: Sequence[Step], width: int, settings: Settings) -> Demand:
    """``width``: how many steps could run side by side."""
    streaming = any(step.mode == "streaming" for step in steps)
    return Demand(
        group,
        tuple(steps),
        tuple(need_of(step, settings) for step in steps),
        "all" if streaming else "slots",
        max(1, min(settings.slots, width)),
        settings,
    )


def at_once(cores: int, needs: Sequence[Need]) -> int:
    """Instances that a container's cores allow to run at once, at most."""
    return max(1, cores // min(need.cores for need in needs))


@dataclass(frozen=True, slots=True)
class Share:
    """The instances dealt to one container, with their needs."""

    instances: list[Instance]
    needs: list[Need]

    def required(self, demand: Demand, cores: int) -> Resources:
        """What the container needs, padding included; ``cores``: what it has, in slots residency."""
        held = sum(need.cores for need in self.needs)
        if demand.residency == "all" or not self.needs:
            memory = sum(need.memory_mb for need in self.needs)
        else:
            held = min(cores, held)
            memory = sum(sorted((need.memory_mb for need in self.needs), reverse=True)[: at_once(cores, self.needs)])
        disk = sum(need.disk_mb for need in self.needs)
        return Resources(cores=held, memory_mb=memory + padding(memory, demand.settings), disk_mb=disk)


def deal(demand: Demand, workers: Sequence[str]) -> list[Share]:
    """Deal all instances to containers on ``workers`` (one entry a container): each to the one with fewest cores dealt.

    Pinned steps are dealt first, to the containers on their workers; there must be one.
    """
    shares = [Share([], []) for _ in workers]
    load = [0] * len(workers)
    free = []
    for at, step in enumerate(demand.steps):
        if step.pinned:
            _deal(demand, at, [box for box, worker in enumerate(workers) if worker in step.pinned], load, shares)
        else:
            free.append(at)
    for at in free:
        _deal(demand, at, list(range(len(workers))), load, shares)
    return shares


def _deal(demand: Demand, at: int, boxes: list[int], load: list[int], shares: list[Share]) -> None:
    step, need = demand.steps[at], demand.needs[at]
    heap = [(load[box], box) for box in boxes]
    heapq.heapify(heap)
    for index in range(step.parallelism):
        cores, box = heap[0]
        shares[box].instances.append((step.id, index))
        shares[box].needs.append(need)
        load[box] = cores + need.cores
        heapq.heapreplace(heap, (load[box], box))


def containers_for(demand: Demand, cores: int) -> int:
    """Containers of ``cores`` that keep the wanted cores."""
    return max(1, math.ceil(demand.wanted_cores() / cores))
