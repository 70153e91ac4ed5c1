"""What is left of each offer while instances are placed, one wave after another.

streaming   one wave: what is taken stays taken
batch       a new wave gives memory and cores back; a container may hold what no wave has side by side,
            as long as the largest instances that its cores could run at once fit its memory (``fits_in_wave``)
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from airflow_dagsched.model.units import TOLERANCE
from airflow_dagsched.placement.containers.requirements import compute_held_at_once, compute_usable
from airflow_dagsched.placement.request import Request, StepRequest
from airflow_dagsched.placement.values import Amounts, Limit, Offer


def compute_limits(request: Request) -> list[Limit]:
    """What instances may hold of each offer."""
    return [compute_usable(offer, request.settings) for offer in request.offers]


class OfferCapacity:
    """Mutable: lives within one call of a policy."""

    def __init__(self, request: Request, limits: Sequence[Limit]) -> None:
        self.request = request
        self.limits = list(limits)
        self.held_counts: list[dict[int, int]] = [{} for _ in request.offers]
        """Instances held by offer, then step number."""
        self.held_totals = [0] * len(request.offers)
        self.free_memory, self.free_cores = self._list_limits()
        """MiB and cores left of each offer in this wave."""
        self._levels: dict[int, tuple[list[float], list[float]]] = {}
        # Disk is the worker's, not the container's: offers of one worker share it.
        self._disk = limit_disks(request, limits)
        self._resident = request.residency == "all"

    def get_free_disk(self, at: int) -> float:
        """MiB left on the disk of the worker of offer ``at``."""
        return self._disk[self.request.offers[at].worker]

    def fits_in_wave(self, step: StepRequest, index: int, at: int) -> bool:
        """Whether offer ``at`` has room for the instance in this wave."""
        return (
            step.needs.memory_mb <= self.free_memory[at] + TOLERANCE
            and step.needs.cores <= self.free_cores[at] + TOLERANCE
            and self.may_hold(step, index, at)
        )

    def may_hold(self, step: StepRequest, index: int, at: int) -> bool:
        """Whether offer ``at`` has room for the instance in some wave: for a streaming one there is one wave."""
        allowed = self.request.get_allowed_workers(step, index)
        if allowed and self.request.offers[at].worker not in allowed:
            return False
        if step.needs.disk_mb > self.get_free_disk(at) + TOLERANCE or not self._is_below_cap(step, at):
            return False
        memory, cores = self._get_wave(step)
        if self.request.residency != "slots":
            # What is resident needs no more than this; in levels the whole container must hold, too (below).
            now = step.needs.memory_mb <= memory[at] + TOLERANCE and step.needs.cores <= cores[at] + TOLERANCE
            if not now or self._resident:
                return now
        if step.needs.cores > self.limits[at][2] + TOLERANCE:
            return False
        counts = {**self.held_counts[at], step.number: self.held_counts[at].get(step.number, 0) + 1}
        return fits_in_waves(self.request, counts, self.limits[at])

    def take_instance(self, step: StepRequest, at: int) -> None:
        """Place one instance of ``step`` in offer ``at``."""
        self._add_instances(step, at, 1)

    def give_back(self, step: StepRequest, at: int) -> None:
        """Undo a ``take_instance`` of the same wave."""
        self._add_instances(step, at, -1)

    def may_hold_copy(self, needs: Amounts, at: int) -> bool:
        """Whether offer ``at`` has room for what takes memory and disk to the end, whatever runs beside it."""
        memory, disk, cores = self.limits[at]
        if needs.disk_mb > self.get_free_disk(at) + TOLERANCE or needs.memory_mb > memory + TOLERANCE:
            return False
        if self._resident:
            return needs.memory_mb <= self.free_memory[at] + TOLERANCE
        held = {number: count for number, count in self.held_counts[at].items() if count}
        # A copy stays while waves come and go: what it takes is missing in each of them.
        return not held or fits_in_waves(self.request, held, (memory - needs.memory_mb, disk, cores))

    def take_copy(self, needs: Amounts, at: int, sign: int = 1) -> None:
        """Take it of offer ``at``, or with ``sign`` -1 give it back."""
        memory, disk, cores = self.limits[at]
        self.limits[at] = memory - sign * needs.memory_mb, disk, cores
        self.free_memory[at] -= sign * needs.memory_mb
        self._disk[self.request.offers[at].worker] -= sign * needs.disk_mb

    def begin_wave(self, level: int) -> None:
        """All that was placed has ended, and instances of ``level`` follow. Streaming instances never end."""
        if self.request.residency == "levels":
            self.free_memory, self.free_cores = self._get_level(level)
        if self.request.residency != "slots":
            return
        self.free_memory, self.free_cores = self._list_limits()
        # Spark keeps shuffle files until the application ends: only a barrier gives disk back.
        if self.request.settings.barriers:
            self._disk = limit_disks(self.request, self.limits)

    def list_free(self) -> list[Limit]:
        """Memory, disk and cores left of each offer."""
        return [(self.free_memory[at], self.get_free_disk(at), self.free_cores[at]) for at in range(len(self.limits))]

    def list_free_by_level(self, at: int) -> tuple[float, ...]:
        """MiB and cores left of offer ``at``, in every level that has been begun."""
        waves = [(self.free_memory, self.free_cores), *(self._levels[level] for level in sorted(self._levels))]
        return tuple(values[at] for wave in waves for values in wave)

    def _is_below_cap(self, step: StepRequest, at: int) -> bool:
        """Caps count all instances if they are resident, else those of one step."""
        settings = self.request.settings
        in_container, on_worker = settings.instances_per_container, settings.max_instances_per_worker
        if in_container is not None and self._count_capped(step, at) >= in_container:
            return False
        # Containers of one worker share its cap.
        return on_worker is None or self._count_on_worker(step, self.request.offers[at].worker) < on_worker

    def _count_on_worker(self, step: StepRequest, worker: str) -> int:
        return sum(
            self._count_capped(step, at) for at, offer in enumerate(self.request.offers) if offer.worker == worker
        )

    def _count_capped(self, step: StepRequest, at: int) -> int:
        return self.held_totals[at] if self._resident else self.held_counts[at].get(step.number, 0)

    def _list_limits(self) -> tuple[list[float], list[float]]:
        return [limit[0] for limit in self.limits], [limit[2] for limit in self.limits]

    def _get_level(self, level: int) -> tuple[list[float], list[float]]:
        if level not in self._levels:
            self._levels[level] = self._list_limits()
        return self._levels[level]

    def _get_wave(self, step: StepRequest) -> tuple[list[float], list[float]]:
        if self.request.residency == "levels":
            return self._get_level(step.level)
        return self.free_memory, self.free_cores

    def _add_instances(self, step: StepRequest, at: int, sign: int) -> None:
        memory, cores = self._get_wave(step)
        memory[at] -= sign * step.needs.memory_mb
        cores[at] -= sign * step.needs.cores
        self._disk[self.request.offers[at].worker] -= sign * step.needs.disk_mb
        self.held_totals[at] += sign
        self.held_counts[at][step.number] = self.held_counts[at].get(step.number, 0) + sign


def limit_disks(request: Request, limits: Sequence[Limit]) -> dict[str, float]:
    """MiB of disk by worker."""
    return {offer.worker: limit[1] for offer, limit in zip(request.offers, limits, strict=True)}


def fits_in_waves(request: Request, counts: dict[int, int], limit: Limit) -> bool:
    """Whether a container with the fewest cores that its widest instance allows has the memory for its largest."""
    if math.isinf(limit[0]):
        return True
    steps = [(request.steps[number], count) for number, count in counts.items() if count]
    # The fewest cores that run the widest instance hold the least at once: if that is too much, more would be.
    least = max(step.needs.cores for step, _ in steps)
    return compute_held_at_once(request, steps, least).memory_mb <= limit[0] + TOLERANCE


def choose_cores(
    request: Request, counts: Sequence[tuple[StepRequest, int]], offer: Offer, kept_mb: float = 0.0
) -> float | None:
    """Cores of a batch container: as many of those offered as its memory allows; None: no limit known.

    ``kept_mb`` of the memory is taken by what runs nothing.
    """
    memory, _, cores = compute_usable(offer, request.settings)
    memory -= kept_mb
    least = max((step.needs.cores for step, _ in counts), default=1.0)
    # Nothing to give cores up for.
    if math.isinf(memory):
        return offer.cores
    if math.isinf(cores):
        cores = sum(step.needs.cores * count for step, count in counts)
    # Fewer cores run fewer at once, in less memory: slower, but it fits.
    while cores > least and compute_held_at_once(request, counts, cores).memory_mb > memory + TOLERANCE:
        cores -= 1
    return max(cores, least)


def compute_held(request: Request, held: dict[int, int], offer: Offer, kept_mb: float = 0.0) -> Amounts:
    """What the instances of a container hold at once, without padding."""
    counts = [(request.steps[number], count) for number, count in sorted(held.items())]
    cores = choose_cores(request, counts, offer, kept_mb) if request.residency != "all" else None
    return compute_held_at_once(request, counts, cores)
