"""What a placement costs: cost x cores x seconds of each instance, and the bytes that go from worker to worker.

    forward     instance i to instance i, if there are as many of both
    shuffle     every instance to every instance, evenly
    broadcast   everything to each worker that has a reader
    single      everything to instance 0

Of a part of a placement it is the part of the cost that is certain: placing one more never lowers it. What one
instance adds is found from counts, in a time that depends on its step's channels alone.
"""

from __future__ import annotations

from airflow_dagsched.model.units import MIB
from airflow_dagsched.placement.exhaustive_search import Placement
from airflow_dagsched.placement.request import InputChannel, Request, StepRequest

NOWHERE = -1

Measure = tuple[float, ...]
"""How far a placement is from the best, the weightiest first."""


class PlacementPrice:
    """Counts of a placement that grows and shrinks, one instance at a time; mutable."""

    def __init__(self, request: Request) -> None:
        self._request = request
        workers = {worker: at for at, worker in enumerate(sorted({offer.worker for offer in request.offers}))}
        self._worker = [workers[offer.worker] for offer in request.offers]
        self.places: Placement = [[NOWHERE] * step.parallelism for step in request.steps]
        # Counts by worker: a shuffle's price needs no look at the single instances.
        self._count = [[0] * len(workers) for _ in request.steps]
        self._placed = [0] * len(request.steps)
        self._spread = [0] * len(request.steps)
        """The number of workers that have an instance, by step."""
        self._outputs = _list_outputs(request)

    def compute_own_cost(self, step: StepRequest, at: int) -> float:
        """Cost of running one instance of ``step`` in offer ``at``."""
        return self._request.offers[at].cost * step.needs.cores * step.seconds

    def compute_added_cost(self, step: StepRequest, index: int, at: int) -> float:
        """What placing the instance, which is nowhere yet, in offer ``at`` adds to the cost."""
        worker = self._worker[at]
        into = sum(
            self._compute_channel_cost(channel) * self._share_read(channel, step, index, worker)
            for channel in step.inputs
        )
        out = sum(
            self._compute_channel_cost(channel) * self._share_sent(channel, dst, index, worker)
            for channel, dst in self._outputs[step.number]
        )
        return self.compute_own_cost(step, at) + into + out

    def add_instance(self, step: StepRequest, index: int, at: int) -> float:
        """Place the instance; what that adds."""
        added = self.compute_added_cost(step, index, at)
        self._count_instance(step, index, at, 1)
        return added

    def remove_instance(self, step: StepRequest, index: int) -> int:
        """Take the instance out; the offer where it was."""
        at = self.places[step.number][index]
        self._count_instance(step, index, at, -1)
        return at

    def _count_instance(self, step: StepRequest, index: int, at: int, sign: int) -> None:
        number, worker = step.number, self._worker[at]
        before = self._count[number][worker]
        self._count[number][worker] = before + sign
        self._placed[number] += sign
        self._spread[number] += (before + sign > 0) - (before > 0)
        self.places[number][index] = at if sign > 0 else NOWHERE

    def _compute_channel_cost(self, channel: InputChannel) -> float:
        """Cost of all bytes of the channel, moved once."""
        return channel.bytes / MIB * self._request.settings.moved_mb_cost

    def _share_read(self, channel: InputChannel, dst: StepRequest, index: int, worker: int) -> float:
        """Share of the channel's bytes that one more reader on ``worker`` has moved there."""
        sources = self._request.steps[channel.src].parallelism
        away = self._placed[channel.src] - self._count[channel.src][worker]
        if channel.routing == "forward" and sources == dst.parallelism:
            return self._is_apart(self.places[channel.src][index], worker) / sources
        if channel.routing == "broadcast":
            # Broadcast is per worker: a reader there has brought everything.
            return 0.0 if self._count[dst.number][worker] else away / sources
        if channel.routing == "single":
            # Instance 0 alone reads.
            return 0.0 if index else away / sources
        return away / sources / dst.parallelism

    def _share_sent(self, channel: InputChannel, dst: StepRequest, index: int, worker: int) -> float:
        """Share of the channel's bytes that one more source on ``worker`` has moved from there."""
        sources = self._request.steps[channel.src].parallelism
        if channel.routing == "forward" and sources == dst.parallelism:
            return self._is_apart(self.places[dst.number][index], worker) / sources
        if channel.routing == "broadcast":
            return (self._spread[dst.number] - (self._count[dst.number][worker] > 0)) / sources
        if channel.routing == "single":
            return self._is_apart(self.places[dst.number][0], worker) / sources
        return (self._placed[dst.number] - self._count[dst.number][worker]) / sources / dst.parallelism

    def _is_apart(self, at: int, worker: int) -> bool:
        """Whether the other end is placed, and on another worker."""
        return at != NOWHERE and self._worker[at] != worker


def _list_outputs(request: Request) -> list[list[tuple[InputChannel, StepRequest]]]:
    """The channels out of each step, each with the step that reads it."""
    outputs: list[list[tuple[InputChannel, StepRequest]]] = [[] for _ in request.steps]
    for step in request.steps:
        for channel in step.inputs:
            outputs[channel.src].append((channel, step))
    return outputs
