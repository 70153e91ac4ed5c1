"""What a placement costs: cost x cores x seconds of each instance, and the bytes that go from worker to worker.

    forward     instance i to instance i, if there are as many of both
    shuffle     every instance to every instance, evenly
    broadcast   everything to each worker that has a reader
    single      everything to instance 0

Of a part of a placement it is the part of the cost that is certain: placing one more never lowers it.
"""

from __future__ import annotations

from airflow_dagsched.placement.distance import MIB
from airflow_dagsched.placement.exact import Places
from airflow_dagsched.placement.request import Input, Request, Work

NOWHERE = -1


class Price:
    """The cost of a placement that grows and changes, one instance at a time; mutable."""

    def __init__(self, request: Request) -> None:
        self._request = request
        workers = {worker: at for at, worker in enumerate(sorted({offer.worker for offer in request.offers}))}
        self._worker = [workers[offer.worker] for offer in request.offers]
        self.places: Places = [[NOWHERE] * work.parallelism for work in request.works]
        self._count = [[0] * len(workers) for _ in request.works]
        self._touching = _touching(request)

    def own(self, work: Work, at: int) -> float:
        """Cost of running one instance of ``work`` in offer ``at``."""
        return self._request.offers[at].cost * work.needs.cores * work.seconds

    def whole(self) -> float:
        """Cost of what is placed."""
        placed = ((work, at) for work in self._request.works for at in self.places[work.number] if at != NOWHERE)
        own = sum(self.own(work, at) for work, at in placed)
        return own + sum(self._moved(one, work) for work in self._request.works for one in work.inputs)

    def around(self, work: Work, index: int) -> float:
        """Of the whole, what depends on where the instance is."""
        at = self.places[work.number][index]
        own = 0.0 if at == NOWHERE else self.own(work, at)
        return own + sum(self._moved(one, dst) for one, dst in self._touching[work.number])

    def move(self, work: Work, index: int, to: int) -> float:
        """Put the instance in offer ``to``, or ``NOWHERE``; what that adds to the cost."""
        before = self.around(work, index)
        count, at = self._count[work.number], self.places[work.number][index]
        if at != NOWHERE:
            count[self._worker[at]] -= 1
        if to != NOWHERE:
            count[self._worker[to]] += 1
        self.places[work.number][index] = to
        return self.around(work, index) - before

    def _moved(self, one: Input, dst: Work) -> float:
        if not one.bytes:
            return 0.0
        return one.bytes / MIB * self._request.settings.moved_mb_cost * self._share_moved(one, dst)

    def _share_moved(self, one: Input, dst: Work) -> float:
        """Of the channel's bytes; above one if several workers get all of them."""
        made, read = self._count[one.src], self._count[dst.number]
        sources, there = len(self.places[one.src]), sum(made)
        if one.routing == "forward" and sources == dst.parallelism:
            return self._pairs_apart(one.src, dst.number) / sources
        if one.routing == "broadcast":
            return sum(there - here for here, readers in zip(made, read, strict=True) if readers) / sources
        if one.routing == "single":
            at = self.places[dst.number][0]
            return 0.0 if at == NOWHERE else (there - made[self._worker[at]]) / sources
        together = sum(a * b for a, b in zip(made, read, strict=True))
        return (there * sum(read) - together) / sources / dst.parallelism

    def _pairs_apart(self, src: int, dst: int) -> int:
        ends = zip(self.places[src], self.places[dst], strict=True)
        return sum(NOWHERE not in {a, b} and self._worker[a] != self._worker[b] for a, b in ends)


def _touching(request: Request) -> list[list[tuple[Input, Work]]]:
    """For each step its channels, in and out, each with the step that reads it."""
    found: list[list[tuple[Input, Work]]] = [[] for _ in request.works]
    for work in request.works:
        for one in work.inputs:
            found[one.src].append((one, work))
            found[work.number].append((one, work))
    return found
