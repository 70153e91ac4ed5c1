"""What is left of each offer while instances are placed, one wave after another.

streaming   one wave: what is taken stays taken
batch       a new wave gives memory and cores back; a container may hold what no wave has side by side,
            as long as the largest instances that its cores could run at once fit its memory (``fits``)
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from airflow_dagsched.placement.padding import held_at_once, rooms
from airflow_dagsched.placement.request import Request, Work
from airflow_dagsched.placement.values import Amounts, Offer

SLACK = 1e-9
"""Floating point: a sum of amounts may be off by so much."""

Rooms = tuple[float, float, float]
"""Memory, disk and cores; infinite where no limit is known."""


def rooms_of(request: Request) -> list[Rooms]:
    """What instances may hold of each offer."""
    return [_limits(*rooms(offer, request.settings)) for offer in request.offers]


def _limits(memory: float | None, disk: float | None, cores: float | None) -> Rooms:
    return (
        math.inf if memory is None else memory,
        math.inf if disk is None else disk,
        math.inf if cores is None else cores,
    )


class Room:
    """Mutable: lives within one call of a policy."""

    def __init__(self, request: Request, limits: Sequence[Rooms]) -> None:
        self.request = request
        self.limits = list(limits)
        self.held: list[dict[int, int]] = [{} for _ in request.offers]
        """For each offer how many instances of each step, by its number, it holds."""
        self.count = [0] * len(request.offers)
        self.memory, self.cores = self._empty()
        """MiB and cores left of each offer in this wave."""
        self._levels: dict[int, tuple[list[float], list[float]]] = {}
        self._disk = _disks(request, limits)
        self._resident = request.residency == "all"

    def disk(self, at: int) -> float:
        """MiB left on the disk of the worker of offer ``at``."""
        return self._disk[self.request.offers[at].worker]

    def fits(self, work: Work, index: int, at: int) -> bool:
        """Whether offer ``at`` has room for the instance in this wave."""
        return (
            work.needs.memory_mb <= self.memory[at] + SLACK
            and work.needs.cores <= self.cores[at] + SLACK
            and self.may_hold(work, index, at)
        )

    def may_hold(self, work: Work, index: int, at: int) -> bool:
        """Whether offer ``at`` has room for the instance in some wave: for a streaming one there is one wave."""
        allowed = self.request.allowed(work, index)
        if allowed and self.request.offers[at].worker not in allowed:
            return False
        if work.needs.disk_mb > self.disk(at) + SLACK or not self._below_cap(work, at):
            return False
        memory, cores = self._wave_of(work)
        if self.request.residency != "slots":
            now = work.needs.memory_mb <= memory[at] + SLACK and work.needs.cores <= cores[at] + SLACK
            if not now or self._resident:
                return now
        if work.needs.cores > self.limits[at][2] + SLACK:
            return False
        counts = {**self.held[at], work.number: self.held[at].get(work.number, 0) + 1}
        return fits_in_waves(self.request, counts, self.limits[at])

    def take(self, work: Work, at: int) -> None:
        """Place one instance of ``work`` in offer ``at``."""
        self._change(work, at, 1)

    def give(self, work: Work, at: int) -> None:
        """Undo a ``take`` of the same wave."""
        self._change(work, at, -1)

    def may_keep(self, needs: Amounts, at: int) -> bool:
        """Whether offer ``at`` has room for what takes memory and disk to the end, whatever runs beside it."""
        memory, disk, cores = self.limits[at]
        if needs.disk_mb > self.disk(at) + SLACK or needs.memory_mb > memory + SLACK:
            return False
        if self._resident:
            return needs.memory_mb <= self.memory[at] + SLACK
        held = {number: count for number, count in self.held[at].items() if count}
        return not held or fits_in_waves(self.request, held, (memory - needs.memory_mb, disk, cores))

    def keep(self, needs: Amounts, at: int, sign: int = 1) -> None:
        """Take it of offer ``at``, or with ``sign`` -1 give it back."""
        memory, disk, cores = self.limits[at]
        self.limits[at] = memory - sign * needs.memory_mb, disk, cores
        self.memory[at] -= sign * needs.memory_mb
        self._disk[self.request.offers[at].worker] -= sign * needs.disk_mb

    def next_wave(self, level: int) -> None:
        """All that was placed has ended, and instances of ``level`` follow. Streaming instances never end."""
        if self.request.residency == "levels":
            self.memory, self.cores = self._level(level)
        if self.request.residency != "slots":
            return
        self.memory, self.cores = self._empty()
        if self.request.settings.barriers:
            self._disk = _disks(self.request, self.limits)

    def free(self) -> list[Rooms]:
        """Memory, disk and cores left of each offer."""
        return [(self.memory[at], self.disk(at), self.cores[at]) for at in range(len(self.limits))]

    def left(self, at: int) -> tuple[float, ...]:
        """MiB and cores left of offer ``at``, in every level that has been begun."""
        waves = [(self.memory, self.cores), *(self._levels[level] for level in sorted(self._levels))]
        return tuple(values[at] for wave in waves for values in wave)

    def _below_cap(self, work: Work, at: int) -> bool:
        """The cap counts all instances if they are resident, else those of one step."""
        cap = self.request.cap
        return cap is None or (self.count[at] if self._resident else self.held[at].get(work.number, 0)) < cap

    def _empty(self) -> tuple[list[float], list[float]]:
        return [limit[0] for limit in self.limits], [limit[2] for limit in self.limits]

    def _level(self, level: int) -> tuple[list[float], list[float]]:
        if level not in self._levels:
            self._levels[level] = self._empty()
        return self._levels[level]

    def _wave_of(self, work: Work) -> tuple[list[float], list[float]]:
        if self.request.residency == "levels":
            return self._level(work.level)
        return self.memory, self.cores

    def _change(self, work: Work, at: int, sign: int) -> None:
        memory, cores = self._wave_of(work)
        memory[at] -= sign * work.needs.memory_mb
        cores[at] -= sign * work.needs.cores
        self._disk[self.request.offers[at].worker] -= sign * work.needs.disk_mb
        self.count[at] += sign
        self.held[at][work.number] = self.held[at].get(work.number, 0) + sign


def _disks(request: Request, limits: Sequence[Rooms]) -> dict[str, float]:
    return {offer.worker: limit[1] for offer, limit in zip(request.offers, limits, strict=True)}


def fits_in_waves(request: Request, counts: dict[int, int], limit: Rooms) -> bool:
    """Whether a container with the fewest cores that its widest instance allows has the memory for its largest."""
    if math.isinf(limit[0]):
        return True
    works = [(request.works[number], count) for number, count in counts.items() if count]
    least = max(work.needs.cores for work, _ in works)
    return held_at_once(request, works, least).memory_mb <= limit[0] + SLACK


def container_cores(
    request: Request, counts: Sequence[tuple[Work, int]], offer: Offer, kept_mb: float = 0.0
) -> float | None:
    """Cores of a batch container: as many of those offered as its memory allows; None: no limit known.

    ``kept_mb`` of the memory is taken by what runs nothing.
    """
    memory, _, cores = _limits(*rooms(offer, request.settings))
    memory -= kept_mb
    least = max((work.needs.cores for work, _ in counts), default=1.0)
    if math.isinf(memory):
        return offer.cores
    if math.isinf(cores):
        cores = sum(work.needs.cores * count for work, count in counts)
    while cores > least and held_at_once(request, counts, cores).memory_mb > memory + SLACK:
        cores -= 1
    return max(cores, least)


def held_by(request: Request, held: dict[int, int], offer: Offer, kept_mb: float = 0.0) -> Amounts:
    """What the instances of a container hold at once, without padding."""
    counts = [(request.works[number], count) for number, count in sorted(held.items())]
    cores = container_cores(request, counts, offer, kept_mb) if request.residency != "all" else None
    return held_at_once(request, counts, cores)
