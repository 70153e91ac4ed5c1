"""Data locality: instances near what they read (seed: Twister2's DataLocalityStreamingTaskScheduler).

    block 0 on h1, h2     scan/0  h1   join/0  h1     A source instance goes where its own blocks are the least
    block 1 on h2, h3     scan/1  h3   join/1  h1     seconds away; one downstream where most of its input bytes
                                                      are, given where the instances above it went.

Of equally near workers the first is filled to its cap or its room before the next, as the seed has it. Instances
with few near workers choose before those with many. Whoever finds the nearest full goes to the next nearest.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from msgspec import structs
from msgspec.structs import replace

from airflow_dagsched.placement.distance import Sites, split, transfer_seconds
from airflow_dagsched.placement.exact import Places
from airflow_dagsched.placement.greedy import greedy, in_order
from airflow_dagsched.placement.request import Input, Request, Work
from airflow_dagsched.placement.room import Room, rooms_of


def data_locality(request: Request) -> Places:
    """An offer for each instance. Raises ``DoesNotFit``."""
    capped = _with_cap(request)
    nearest = _Nearest(capped)
    order = sorted(in_order(capped), key=lambda work: work.level)
    return greedy(capped, rooms_of(capped), order, nearest.choose, nearest.fewest_choices_first)


def _with_cap(request: Request) -> Request:
    """The cap of the settings holds where the dataflow sets none: the seed has it so for this policy."""
    cap = request.cap or request.settings.instances_per_container
    return replace(request, settings=structs.replace(request.settings, max_instances_per_worker=cap))


class _Nearest:
    """Where instances went so far, and with it the seconds from each worker to what the next ones read."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._sites = Sites(request)
        self._places: list[dict[int, int]] = [{} for _ in request.works]
        self._ranking: dict[tuple[int, int], list[int]] = {}
        """Offers by nearness, of instance (number, index)."""

    def fewest_choices_first(self, work: Work) -> Sequence[int]:
        """The instances of ``work``, those with the fewest nearest workers first, then those that read most."""
        self._ranking.clear()
        inputs = self._input_seconds(work)
        nearest = {index: self._rank(work, index, inputs) for index in range(work.parallelism)}
        everywhere = len(self._request.offers)
        return sorted(
            nearest,
            key=lambda index: (nearest[index], -_read_bytes(work, index) if nearest[index] < everywhere else 0, index),
        )

    def choose(self, room: Room, work: Work, index: int) -> int | None:
        """The nearest offer with room."""
        for at in self._ranking[work.number, index]:
            if room.fits(work, index, at):
                self._places[work.number][index] = at
                return at
        return None

    def _rank(self, work: Work, index: int, inputs: Sequence[float]) -> int:
        """Fill the ranking of an instance; how many offers are nearest. ``inputs``: seconds that all have in common."""
        seconds = [round(sum(parts), 9) for parts in zip(inputs, *self._own_seconds(work, index), strict=True)]
        self._ranking[work.number, index] = sorted(range(len(seconds)), key=lambda at: (seconds[at], at))
        return seconds.count(min(seconds))

    def _own_seconds(self, work: Work, index: int) -> Iterator[list[float]]:
        """Seconds to what this instance alone reads: its blocks, and what is handed on instance to instance."""
        blocks = split(work, index)
        if blocks:
            yield self._sites.read_seconds(blocks)
        for one in work.inputs:
            if self._is_forward(one, work) and one.bytes:
                offer = self._places[one.src].get(index)
                yield self._seconds_from({} if offer is None else {offer: one.bytes / work.parallelism})

    def _input_seconds(self, work: Work) -> list[float]:
        """Seconds to what every instance reads alike: an even part of all that the instances above it made."""
        shared = [one for one in work.inputs if one.bytes and not self._is_forward(one, work)]
        vectors = [self._seconds_from(self._made(one, work)) for one in shared]
        return [sum(parts) for parts in zip(*vectors, strict=True)] if vectors else [0.0] * len(self._request.offers)

    def _is_forward(self, one: Input, work: Work) -> bool:
        return one.routing == "forward" and self._request.works[one.src].parallelism == work.parallelism

    def _made(self, one: Input, work: Work) -> dict[int, float]:
        """Offer -> bytes there of what an instance of ``work`` reads from the input."""
        counts = Counter(self._places[one.src].values())
        readers = 1 if one.routing in {"broadcast", "single"} else work.parallelism
        each = one.bytes / readers / max(1, counts.total())
        return {offer: each * count for offer, count in sorted(counts.items())}

    def _seconds_from(self, made: dict[int, float]) -> list[float]:
        """For each offer: seconds to get the bytes made elsewhere to its worker."""
        offers, here, total = self._request.offers, defaultdict[str, float](float), sum(made.values())
        for at, count in made.items():
            here[offers[at].worker] += count
        away = [total - here[offer.worker] for offer in offers]
        settings = self._request.settings
        return [
            transfer_seconds(count, offer, settings) if count > 0.5 else 0.0
            for count, offer in zip(away, offers, strict=True)
        ]


def _read_bytes(work: Work, index: int) -> int:
    return sum(block.bytes for block in split(work, index))
