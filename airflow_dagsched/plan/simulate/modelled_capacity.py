"""What is free on each worker of the modelled cluster; containers are placed all at once or not at all."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Literal, Self

from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.plan.simulate.jobs import Need, Place

NO_LIMIT = 2**62
"""Of a disk: never in the way."""
GONE: Need = (-1, -1, -1)
"""What a lost worker offers."""
Moves = Literal["any", "lost", "none"]
"""Which containers may go to another worker than planned: all that have no room there, those whose worker is lost."""


class Room:
    """Free cores, memory and disk of each worker, and a tree of maxima above them.

    ::

              (8, 32)             a node has the most cores and the most memory of the workers below it,
         (4, 32)   (8, 16)        not always of the same one; the first worker with room is found from
        w1    w2   w3    w4       the root, leftmost branch first that may have one
    """

    def __init__(self, cluster: Cluster) -> None:
        workers = cluster.workers
        # The next power of two, so that the children of node n are 2n and 2n + 1.
        self._leaves = 1 << max(0, len(workers) - 1).bit_length()
        padding = [GONE] * (self._leaves - len(workers))
        self._most = [GONE] * self._leaves + [_read_offered(worker) for worker in workers] + padding
        for node in range(self._leaves - 1, 0, -1):
            self._most[node] = _take_most(self._most[2 * node], self._most[2 * node + 1])
        self._lost: set[int] = set()
        self._watched: tuple[Need, int] | None = None
        """The need that last had no room, and for how many containers of it there is room now."""

    def get_free(self, worker: int) -> Need:
        """What a worker has just now."""
        return self._most[self._leaves + worker]

    def make_copy(self) -> Self:
        """As it is now; what is taken there is not taken here."""
        other = copy.copy(self)
        other._most, other._lost = self._most.copy(), self._lost.copy()
        return other

    def take_room(self, places: Sequence[Place], *, moves: Moves) -> tuple[Place, ...] | None:
        """Take room at the planned places, or on the first worker with room where a container may move.

        None, and nothing taken, if there is not room for all.
        """
        need = places[0][1]
        alike = moves == "any" and all(other == need for _, other in places)
        # On a full cluster the same group is tried at each event: how many have room is known without a search.
        if alike and self._watched and self._watched[0] == need and self._watched[1] < len(places):
            return None
        taken = self._take_places(places, moves=moves)
        if len(taken) == len(places):
            return tuple(taken)
        self.give_back(taken)
        if alike:
            self._watched = need, len(taken)
        return None

    def count_missing(self, places: Sequence[Place]) -> int:
        """How many of the containers have room nowhere while the others have."""
        taken = self._take_places(places, moves="any")
        self.give_back(taken)
        return len(places) - len(taken)

    def give_back(self, places: Sequence[Place]) -> None:
        """Give back what was taken; a lost worker stays lost."""
        for worker, need in places:
            if worker not in self._lost:
                self._change_free(worker, need, 1)

    def lose_worker(self, worker: int) -> None:
        """The worker offers nothing any more."""
        self._lost.add(worker)
        self._set_free(worker, GONE)

    def _take_places(self, places: Sequence[Place], *, moves: Moves) -> list[Place]:
        """Room for as many as there is, up to the first that has none."""
        taken: list[Place] = []
        for planned, need in places:
            worker = self._find_worker(planned, need, moves=moves)
            if worker is None:
                break
            self._change_free(worker, need, -1)
            taken.append((worker, need))
        return taken

    def _find_worker(self, planned: int, need: Need, *, moves: Moves) -> int | None:
        if _has_room(self._most[self._leaves + planned], need):
            return planned
        may = moves == "any" or (moves == "lost" and planned in self._lost)
        return self._find_first(need) if may else None

    def _find_first(self, need: Need) -> int | None:
        most, trail = self._most, [1]
        while trail:
            node = trail.pop()
            # A node's maxima may be of different workers: that it has room is a maybe, that it has none is sure.
            if _has_room(most[node], need):
                if node >= self._leaves:
                    return node - self._leaves
                # The left child on top: the first worker in order that has room.
                trail += (2 * node + 1, 2 * node)
        return None

    def _change_free(self, worker: int, need: Need, sign: int) -> None:
        cores, memory, disk = self._most[self._leaves + worker]
        self._set_free(worker, (cores + sign * need[0], memory + sign * need[1], disk + sign * need[2]))

    def _set_free(self, worker: int, free: Need) -> None:
        most, node = self._most, self._leaves + worker
        if self._watched:
            need, count = self._watched
            self._watched = need, count + count_slots(free, need) - count_slots(most[node], need)
        most[node] = free
        while node > 1:
            node //= 2
            larger = _take_most(most[2 * node], most[2 * node + 1])
            if larger == most[node]:  # above it nothing changes either
                break
            most[node] = larger


def count_slots(free: Need, need: Need) -> int:
    """How many containers have room on a worker; a lost one has less than nothing."""
    return max(0, min(has // want for has, want in zip(free, need, strict=True) if want))


def _read_offered(worker: Worker) -> Need:
    disk = worker.free_disk_mb
    return worker.free_cores, worker.free_memory_mb, NO_LIMIT if disk is None else disk


def _take_most(one: Need, other: Need) -> Need:
    return max(one[0], other[0]), max(one[1], other[1]), max(one[2], other[2])


def _has_room(free: Need, need: Need) -> bool:
    return free[0] >= need[0] and free[1] >= need[1] and free[2] >= need[2]
