"""What a placement costs: cost x cores x seconds of each instance, and the bytes that go from worker to worker.

    forward     instance i to instance i, if there are as many of both
    shuffle     every instance to every instance, evenly
    broadcast   everything to each worker that has a reader
    single      everything to instance 0

Of a part of a placement it is the part of the cost that is certain: placing one more never lowers it. What one
instance adds is found from counts, in a time that depends on its step's channels alone.
"""

from __future__ import annotations

from airflow_dagsched.placement.distance import MIB
from airflow_dagsched.placement.exact import Places
from airflow_dagsched.placement.request import Input, Request, Work

NOWHERE = -1


class Price:
    """Counts of a placement that grows and shrinks, one instance at a time; mutable."""

    def __init__(self, request: Request) -> None:
        self._request = request
        workers = {worker: at for at, worker in enumerate(sorted({offer.worker for offer in request.offers}))}
        self._worker = [workers[offer.worker] for offer in request.offers]
        self.places: Places = [[NOWHERE] * work.parallelism for work in request.works]
        self._count = [[0] * len(workers) for _ in request.works]
        self._placed = [0] * len(request.works)
        self._spread = [0] * len(request.works)
        """Of each step, how many workers have an instance."""
        self._outputs = _outputs(request)

    def own(self, work: Work, at: int) -> float:
        """Cost of running one instance of ``work`` in offer ``at``."""
        return self._request.offers[at].cost * work.needs.cores * work.seconds

    def added(self, work: Work, index: int, at: int) -> float:
        """What placing the instance, which is nowhere yet, in offer ``at`` adds to the cost."""
        worker = self._worker[at]
        into = sum(self._cost(one) * self._read(one, work, index, worker) for one in work.inputs)
        out = sum(self._cost(one) * self._made(one, dst, index, worker) for one, dst in self._outputs[work.number])
        return self.own(work, at) + into + out

    def take(self, work: Work, index: int, at: int) -> float:
        """Place the instance; what that adds."""
        added = self.added(work, index, at)
        self._change(work, index, at, 1)
        return added

    def give(self, work: Work, index: int) -> int:
        """Take the instance out; the offer where it was."""
        at = self.places[work.number][index]
        self._change(work, index, at, -1)
        return at

    def _change(self, work: Work, index: int, at: int, sign: int) -> None:
        number, worker = work.number, self._worker[at]
        before = self._count[number][worker]
        self._count[number][worker] = before + sign
        self._placed[number] += sign
        self._spread[number] += (before + sign > 0) - (before > 0)
        self.places[number][index] = at if sign > 0 else NOWHERE

    def _cost(self, one: Input) -> float:
        """Of all bytes of the channel, moved once."""
        return one.bytes / MIB * self._request.settings.moved_mb_cost

    def _read(self, one: Input, dst: Work, index: int, worker: int) -> float:
        """Share of the channel's bytes that one more reader on ``worker`` has moved there."""
        sources = self._request.works[one.src].parallelism
        away = self._placed[one.src] - self._count[one.src][worker]
        if one.routing == "forward" and sources == dst.parallelism:
            return self._apart(self.places[one.src][index], worker) / sources
        if one.routing == "broadcast":
            return 0.0 if self._count[dst.number][worker] else away / sources
        if one.routing == "single":
            return 0.0 if index else away / sources
        return away / sources / dst.parallelism

    def _made(self, one: Input, dst: Work, index: int, worker: int) -> float:
        """Share of the channel's bytes that one more source on ``worker`` has moved from there."""
        sources = self._request.works[one.src].parallelism
        if one.routing == "forward" and sources == dst.parallelism:
            return self._apart(self.places[dst.number][index], worker) / sources
        if one.routing == "broadcast":
            return (self._spread[dst.number] - (self._count[dst.number][worker] > 0)) / sources
        if one.routing == "single":
            return self._apart(self.places[dst.number][0], worker) / sources
        return (self._placed[dst.number] - self._count[dst.number][worker]) / sources / dst.parallelism

    def _apart(self, at: int, worker: int) -> bool:
        """Whether the other end is placed, and on another worker."""
        return at != NOWHERE and self._worker[at] != worker


def _outputs(request: Request) -> list[list[tuple[Input, Work]]]:
    """For each step the channels out of it, each with the step that reads it."""
    found: list[list[tuple[Input, Work]]] = [[] for _ in request.works]
    for work in request.works:
        for one in work.inputs:
            found[one.src].append((one, work))
    return found
