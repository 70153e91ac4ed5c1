"""Data locality: instances near what they read (seed: Twister2's DataLocalityStreamingTaskScheduler).

    block 0 on h1, h2     scan/0  h1   join/0  h1     A source instance goes where its own blocks are the least
    block 1 on h2, h3     scan/1  h3   join/1  h1     seconds away; one downstream where most of its input bytes
                                                      are, given where the instances above it went.

Of equally near workers the first is filled to its cap or its room before the next, as the seed has it. Instances
with few near workers choose before those with many. Of a step whose instances all have room at once, together they are
the least seconds away (of many: whoever finds the nearest full goes to the next nearest).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from airflow_dagsched.placement.exhaustive_search import Placement
from airflow_dagsched.placement.offer_capacity import OfferCapacity, compute_limits
from airflow_dagsched.placement.policies.distance import OfferSites, compute_transfer_seconds, select_blocks
from airflow_dagsched.placement.policies.greedy import order_steps, place_greedily
from airflow_dagsched.placement.policies.least_assignment import assign_at_least_cost
from airflow_dagsched.placement.policies.price import Measure
from airflow_dagsched.placement.request import InputChannel, Request, StepRequest

MAX_PAIRS = 2_500
"""Instances of a step times workers, at most, that are assigned at the least cost in all: a tenth of a second."""


def place_near_data(request: Request) -> Placement:
    """An offer for each instance. Raises ``DoesNotFit``."""
    nearest = _NearestOffers(request)
    order = sorted(order_steps(request), key=lambda step: step.level)
    return place_greedily(request, compute_limits(request), order, nearest.choose_offer, nearest.order_by_choices)


def measure_distance(request: Request, places: Placement) -> Measure:
    """Seconds to what sources hold, then to what the other steps hand on, of all instances one after another."""
    return _NearestOffers(request).sum_seconds(places)


class _NearestOffers:
    """Where instances went so far, and with it the seconds from each worker to what the next ones read.

    Workers are numbered as their first offers come: all offers of one are as far.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        by_worker: dict[str, list[int]] = {}
        for at, offer in enumerate(request.offers):
            by_worker.setdefault(offer.worker, []).append(at)
        self._offers_of = list(by_worker.values())
        self._worker_of = {at: worker for worker, offers in enumerate(self._offers_of) for at in offers}
        self._firsts = tuple(request.offers[offers[0]] for offers in self._offers_of)
        self._sites = OfferSites(replace(request, offers=self._firsts))
        self._places: list[dict[int, int]] = [{} for _ in request.steps]
        """Of each step: the worker of each instance."""
        self._ranking: dict[tuple[int, int], list[int]] = {}
        """Workers by nearness, of instance (number, index)."""
        self._seconds: dict[tuple[int, int], list[float]] = {}
        """Of an instance to what it reads, by worker."""
        self._meant: dict[int, list[int]] = {}
        """Step -> the worker that each of its instances is meant for, where all have room at once."""

    def order_by_choices(self, step: StepRequest) -> Sequence[int]:
        """The instances of ``step``, those with the fewest nearest workers first, then those that read most."""
        # Nobody asks for the steps before any more.
        self._ranking.clear()
        self._seconds.clear()
        inputs = self._sum_input_seconds(step)
        nearest = {index: self._rank_offers(step, index, inputs) for index in range(step.parallelism)}
        everywhere = len(self._firsts)
        return sorted(
            nearest,
            key=lambda index: (
                nearest[index],
                # Where all workers are as near, who reads more has nothing to choose.
                -_count_read_bytes(step, index) if nearest[index] < everywhere else 0,
                index,
            ),
        )

    def choose_offer(self, capacity: OfferCapacity, step: StepRequest, index: int) -> int | None:
        """An offer of the worker that is meant for it, else the nearest, with room."""
        if step.number not in self._meant:
            self._meant[step.number] = self._assign_instances(capacity, step)
        meant = self._meant[step.number]
        workers = [*((meant[index],) if meant else ()), *self._ranking[step.number, index]]
        nearest = (at for worker in workers for at in self._offers_of[worker])
        found = next((at for at in nearest if capacity.fits_in_wave(step, index, at)), None)
        if found is not None:
            self._places[step.number][index] = self._worker_of[found]
        return found

    def _assign_instances(self, capacity: OfferCapacity, step: StepRequest) -> list[int]:
        """The worker of each instance, so that all are the least seconds away; none where some have to wait."""
        if step.parallelism * len(self._firsts) > MAX_PAIRS:
            return []
        room = [_count_room(capacity, step, offers) for offers in self._offers_of]
        if sum(room) < step.parallelism or self._request.beside:
            return []
        costs = [self._seconds[step.number, index] for index in range(step.parallelism)]
        return assign_at_least_cost(costs, room)

    def sum_seconds(self, places: Placement) -> tuple[float, float]:
        """Seconds to blocks, and to what is handed on, if every instance is where ``places`` has it."""
        self._places = [{index: self._worker_of[at] for index, at in enumerate(offers)} for offers in places]
        blocks = passed = 0.0
        for step in self._request.steps:
            shared = self._sum_input_seconds(step)
            for index, at in self._places[step.number].items():
                read = self._sites.compute_read_seconds(select_blocks(step, index))[at] if step.blocks else 0.0
                blocks += read
                passed += shared[at] + sum(parts[at] for parts in self._list_own_seconds(step, index)) - read
        return round(blocks, 6), round(passed, 6)

    def _rank_offers(self, step: StepRequest, index: int, inputs: Sequence[float]) -> int:
        """Fill the ranking of an instance; how many workers are nearest. ``inputs``: seconds that all share."""
        own = list(self._list_own_seconds(step, index))
        first = step.number, 0
        if index and not own and not step.blocks:
            # It reads nothing of its own: what is near is as it is for the first.
            self._seconds[step.number, index], self._ranking[step.number, index] = (
                self._seconds[first],
                self._ranking[first],
            )
        else:
            # To the nanosecond: sums of the same parts have to tie.
            seconds = [round(sum(parts), 9) for parts in zip(inputs, *own, strict=True)]
            self._seconds[step.number, index] = seconds
            self._ranking[step.number, index] = sorted(range(len(seconds)), key=lambda at: (seconds[at], at))
        there = self._seconds[step.number, index]
        return there.count(min(there))

    def _list_own_seconds(self, step: StepRequest, index: int) -> Iterator[list[float]]:
        """Seconds to what this instance alone reads: its blocks, and what is handed on instance to instance."""
        blocks = select_blocks(step, index)
        if blocks:
            yield self._sites.compute_read_seconds(blocks)
        for channel in step.inputs:
            if self._is_forward(channel, step) and channel.bytes:
                worker = self._places[channel.src].get(index)
                yield self._compute_seconds({} if worker is None else {worker: channel.bytes / step.parallelism})

    def _sum_input_seconds(self, step: StepRequest) -> list[float]:
        """Seconds to what every instance reads alike: an even part of all that the instances above it made."""
        shared = [channel for channel in step.inputs if channel.bytes and not self._is_forward(channel, step)]
        vectors = [self._compute_seconds(self._locate_output(channel, step)) for channel in shared]
        return [sum(parts) for parts in zip(*vectors, strict=True)] if vectors else [0.0] * len(self._firsts)

    def _is_forward(self, channel: InputChannel, step: StepRequest) -> bool:
        return channel.routing == "forward" and self._request.steps[channel.src].parallelism == step.parallelism

    def _locate_output(self, channel: InputChannel, step: StepRequest) -> dict[int, float]:
        """Worker -> bytes there of what an instance of ``step`` reads from the input."""
        counts = Counter(self._places[channel.src].values())
        readers = 1 if channel.routing in {"broadcast", "single"} else step.parallelism
        each = channel.bytes / readers / max(1, counts.total())
        return {worker: each * count for worker, count in sorted(counts.items())}

    def _compute_seconds(self, bytes_by_worker: dict[int, float]) -> list[float]:
        """Seconds to get the bytes made elsewhere to each worker."""
        total = sum(bytes_by_worker.values())
        away = [total - bytes_by_worker.get(worker, 0.0) for worker in range(len(self._firsts))]
        settings = self._request.settings
        return [
            # Less than a byte is what rounding left of nothing: no transfer, so no latency either.
            compute_transfer_seconds(count, offer, settings) if count > 0.5 else 0.0
            for count, offer in zip(away, self._firsts, strict=True)
        ]


def _count_room(capacity: OfferCapacity, step: StepRequest, offers: Sequence[int]) -> int:
    """Instances of the step that offers of one worker have room for in this wave."""
    taken: list[int] = []
    # Tried on the capacity itself and undone: the offers share the worker's disk.
    for at in offers:
        while len(taken) < step.parallelism and capacity.fits_in_wave(step, 0, at):
            capacity.take_instance(step, at)
            taken.append(at)
    for at in taken:
        capacity.give_back(step, at)
    return len(taken)


def _count_read_bytes(step: StepRequest, index: int) -> int:
    return sum(block.bytes for block in select_blocks(step, index))
