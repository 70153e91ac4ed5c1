"""What is free on the workers, and for spills, at a moment of the time line."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from airflow_dagsched.model.cluster import Worker
from airflow_dagsched.plan.costing.executor_shape import ExecutorShape

UNLIMITED = 2**62


class FreeCapacity:
    """Free cores, memory and disk of each worker; containers are packed first fit, in natural order."""

    def __init__(self, workers: Sequence[Worker], applications: int = 0) -> None:
        """``applications``: so many groups side by side, at most; 0: as many as fit."""
        self._workers = workers
        self._cores = [worker.free_cores for worker in workers]
        self._memory = [worker.free_memory_mb for worker in workers]
        self._disk = [UNLIMITED if worker.free_disk_mb is None else worker.free_disk_mb for worker in workers]
        self._number = {worker.id: at for at, worker in enumerate(workers)}
        self.cores = sum(self._cores)
        """Free ones of all workers."""
        self._applications_left = applications or UNLIMITED
        self._first_free = 0
        """No worker before it has a free core."""

    @property
    def is_full(self) -> bool:
        """Whether no worker has a free core, or no other application may run."""
        return not self.cores or not self._applications_left

    def find_workers(self, shape: ExecutorShape) -> tuple[int, ...]:
        """A worker for each container of ``shape``; empty where there is no room for all of them."""
        count = len(shape.workers)
        # The sum over all workers is kept up to date, so that a full cluster is not searched.
        if shape.cores * count > self.cores or not self._applications_left:
            return ()
        if shape.pinned:
            # What is in a container decides where it may be: no other worker would do.
            return self._find_pinned(shape)
        # Workers fill up from the front, so a run of full ones stands before the first with a free core.
        while self._first_free < len(self._cores) and not self._cores[self._first_free]:
            self._first_free += 1
        if count == 1:
            return self._find_one(shape)
        at_workers: list[int] = []
        for at in range(self._first_free, len(self._cores)):
            # All containers or none: an application whose executors come one by one would hold cores and wait.
            at_workers += [at] * min(count - len(at_workers), self._count_copies(at, shape, len(at_workers)))
            if len(at_workers) == count:
                return tuple(at_workers)
        return ()

    def take_first(self, shape: ExecutorShape) -> tuple[int, ...]:
        """Where containers of ``shape`` start, as ``find_workers`` has it."""
        at_workers = self.find_workers(shape)
        if at_workers:
            self.take_room(shape, at_workers)
        return at_workers

    def take_room(self, shape: ExecutorShape, at_workers: Sequence[int]) -> None:
        """Containers of ``shape`` start on these workers."""
        self._applications_left -= 1
        self._change_free(shape, at_workers, -1)

    def give_back(self, shape: ExecutorShape, at_workers: Sequence[int]) -> None:
        """They have ended."""
        self._applications_left += 1
        self._change_free(shape, at_workers, 1)
        # The first is the least: containers are numbered in the order of their workers.
        self._first_free = min(self._first_free, at_workers[0])

    def _find_one(self, shape: ExecutorShape) -> tuple[int, ...]:
        cores, memory = shape.cores, shape.memory_mb
        disk = shape.disk_mb[0] if shape.disk_mb else 0
        for at in range(self._first_free, len(self._cores)):
            if self._cores[at] >= cores and self._memory[at] >= memory and self._disk[at] >= disk:
                return (at,)
        return ()

    def _find_pinned(self, shape: ExecutorShape) -> tuple[int, ...]:
        at_workers = tuple(self._number[place] for place in shape.workers)
        # Several containers may be on one worker: taking them all and looking for less than nothing counts that
        # right.
        self._change_free(shape, at_workers, -1)
        fits = all(min(self._cores[at], self._memory[at], self._disk[at]) >= 0 for at in at_workers)
        self._change_free(shape, at_workers, 1)
        return at_workers if fits else ()

    def _count_copies(self, at: int, shape: ExecutorShape, done: int) -> int:
        """How many containers, from the ``done``-th on, worker ``at`` has room for."""
        most = min(self._cores[at] // shape.cores, self._memory[at] // max(1, shape.memory_mb))
        # Containers of a group are equal in cores and memory, but each has the disk of what it was dealt.
        needed = accumulate(shape.disk_mb[done : done + most])
        return sum(1 for disk in needed if disk <= self._disk[at]) if shape.disk_mb else most

    def _change_free(self, shape: ExecutorShape, at_workers: Sequence[int], sign: int) -> None:
        cores, memory = sign * shape.cores, sign * shape.memory_mb
        for at in at_workers:
            self._cores[at] += cores
            self._memory[at] += memory
        for at, disk in zip(at_workers, shape.disk_mb, strict=False):  # empty where no worker's disk has a limit
            self._disk[at] += sign * disk
        self.cores += cores * len(at_workers)


class InFlightSpill(NamedTuple):
    """A dataset that one group spills for others, by their numbers."""

    writer: int | None
    """None: it is there from before."""
    readers: tuple[int, ...]
    bytes: int


class SpillCapacity:
    """Bytes of spills in flight: from the start of the writer to the end of the last reader."""

    def __init__(self, spills: Sequence[InFlightSpill], limit: int) -> None:
        self.limit = limit
        self._free = limit - sum(spill.bytes for spill in spills if spill.writer is None)
        """Less than nothing where more is there from before."""
        self._written: dict[int, int] = {}
        self._read: dict[int, list[int]] = {}
        self._readers_left = [len(spill.readers) for spill in spills]
        self._spills = spills
        for at, spill in enumerate(spills):
            if spill.writer is not None:
                self._written[spill.writer] = self._written.get(spill.writer, 0) + spill.bytes
            for reader in spill.readers:
                self._read.setdefault(reader, []).append(at)

    def count_missing(self, writer: int) -> int:
        """Bytes that the spills of ``writer`` need on top of what is free; 0: they fit."""
        written = self._written.get(writer, 0)
        # Free may be negative from the start: a group that writes nothing must still be able to start and make room.
        return max(0, written - self._free) if written else 0

    def take_room(self, writer: int) -> None:
        """``writer`` starts."""
        self._free -= self._written.get(writer, 0)

    def end_reader(self, reader: int) -> None:
        """``reader`` has ended: what nobody else will read is gone."""
        for at in self._read.get(reader, ()):
            self._readers_left[at] -= 1
            if not self._readers_left[at]:
                # Only now: a dataset that another group still reads keeps all of its bytes.
                self._free += self._spills[at].bytes
