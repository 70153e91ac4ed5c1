"""What is free on the workers, and for spills, at a moment of the time line."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from airflow_dagsched.model.cluster import Worker
from airflow_dagsched.plan.shape import Shape

UNLIMITED = 2**62


class Room:
    """Free cores, memory and disk of each worker; containers are packed first fit, in natural order."""

    def __init__(self, workers: Sequence[Worker]) -> None:
        self._workers = workers
        self._cores = [worker.free_cores for worker in workers]
        self._memory = [worker.free_memory_mb for worker in workers]
        self._disk = [UNLIMITED if worker.free_disk_mb is None else worker.free_disk_mb for worker in workers]
        self._number = {worker.id: at for at, worker in enumerate(workers)}
        self.cores = sum(self._cores)
        """Free ones of all workers."""
        self._first = 0
        """No worker before it has a free core."""

    @property
    def full(self) -> bool:
        """Whether no worker has a free core."""
        return not self.cores

    def find(self, shape: Shape) -> tuple[int, ...]:
        """A worker for each container of ``shape``; empty where there is no room for all of them."""
        count = len(shape.places)
        if shape.cores * count > self.cores:
            return ()
        if shape.pinned:
            return self._as_told(shape)
        while self._first < len(self._cores) and not self._cores[self._first]:
            self._first += 1
        if count == 1:
            return self._one(shape)
        found: list[int] = []
        for at in range(self._first, len(self._cores)):
            found += [at] * min(count - len(found), self._copies(at, shape, len(found)))
            if len(found) == count:
                return tuple(found)
        return ()

    def taken(self, shape: Shape) -> tuple[int, ...]:
        """Where containers of ``shape`` start, as ``find`` has it."""
        found = self.find(shape)
        if found:
            self._change(shape, found, -1)
        return found

    def take(self, shape: Shape, found: Sequence[int]) -> None:
        """Containers of ``shape`` start on these workers."""
        self._change(shape, found, -1)

    def give(self, shape: Shape, found: Sequence[int]) -> None:
        """They have ended."""
        self._change(shape, found, 1)
        self._first = min(self._first, found[0])

    def _one(self, shape: Shape) -> tuple[int, ...]:
        cores, memory = shape.cores, shape.memory_mb
        disk = shape.disk_mb[0] if shape.disk_mb else 0
        for at in range(self._first, len(self._cores)):
            if self._cores[at] >= cores and self._memory[at] >= memory and self._disk[at] >= disk:
                return (at,)
        return ()

    def _as_told(self, shape: Shape) -> tuple[int, ...]:
        found = tuple(self._number[place] for place in shape.places)
        self._change(shape, found, -1)
        fits = all(min(self._cores[at], self._memory[at], self._disk[at]) >= 0 for at in found)
        self._change(shape, found, 1)
        return found if fits else ()

    def _copies(self, at: int, shape: Shape, done: int) -> int:
        """How many containers, from the ``done``-th on, worker ``at`` has room for."""
        most = min(self._cores[at] // shape.cores, self._memory[at] // max(1, shape.memory_mb))
        needed = accumulate(shape.disk_mb[done : done + most])
        return sum(1 for disk in needed if disk <= self._disk[at]) if shape.disk_mb else most

    def _change(self, shape: Shape, found: Sequence[int], sign: int) -> None:
        cores, memory = sign * shape.cores, sign * shape.memory_mb
        for at in found:
            self._cores[at] += cores
            self._memory[at] += memory
        for at, disk in zip(found, shape.disk_mb, strict=False):
            self._disk[at] += sign * disk
        self.cores += cores * len(found)


class Cut(NamedTuple):
    """A dataset that one group spills for others, by their numbers."""

    writer: int | None
    """None: it is there from before."""
    readers: tuple[int, ...]
    bytes: int


class SpillRoom:
    """Bytes of spills in flight: from the start of the writer to the end of the last reader."""

    def __init__(self, cuts: Sequence[Cut], limit: int) -> None:
        self.limit = limit
        self._free = limit - sum(cut.bytes for cut in cuts if cut.writer is None)
        """Less than nothing where more is there from before."""
        self._written: dict[int, int] = {}
        self._read: dict[int, list[int]] = {}
        self._left = [len(cut.readers) for cut in cuts]
        self._cuts = cuts
        for at, cut in enumerate(cuts):
            if cut.writer is not None:
                self._written[cut.writer] = self._written.get(cut.writer, 0) + cut.bytes
            for reader in cut.readers:
                self._read.setdefault(reader, []).append(at)

    def lacks(self, writer: int) -> int:
        """Bytes that the spills of ``writer`` need on top of what is free; 0: they fit."""
        written = self._written.get(writer, 0)
        return max(0, written - self._free) if written else 0

    def take(self, writer: int) -> None:
        """``writer`` starts."""
        self._free -= self._written.get(writer, 0)

    def end(self, reader: int) -> None:
        """``reader`` has ended: what nobody else will read is gone."""
        for at in self._read.get(reader, ()):
            self._left[at] -= 1
            if not self._left[at]:
                self._free += self._cuts[at].bytes
