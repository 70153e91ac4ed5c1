"""Containers as large as what is offered for them: with ``container_size="offered"`` one a worker, with all of it.

w1   8 cores  [        ]      The containers of an application are equal: where workers that differ take part,
w2   4 cores  [    ]          each is as large as the smallest of them allows; where only ``w1`` does, as ``w1``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import accumulate

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.placement.request import Request
from airflow_dagsched.placement.settings import PlacementSettings
from airflow_dagsched.placement.values import Offer
from airflow_dagsched.plan.passes.containers.container_offers import Shape
from airflow_dagsched.plan.reasons.placement import LargeAsOffered
from airflow_dagsched.plan.report.sentences import say_placement

PACKING = "first_fit"
"""The policy of few containers."""


def is_offered(settings: PlacementSettings) -> bool:
    """Whether containers get what is offered, not what they need."""
    return settings.container_size == "offered"


def list_offered_shapes(request: Request, least: int, *, policy: str) -> Sequence[Shape]:
    """What every worker with ``least`` cores offers, then every one but the smallest, up to the largest alone.

    For a policy of few containers the other way round.
    """
    rooms = [room for room in map(_make_whole_shape, request.offers) if room.cores >= least]
    most = Shape(max((room.cores for room in rooms), default=1), max((room.memory_mb for room in rooms), default=1))
    # By the scarcer of its two amounts: a worker with many cores and little memory is a small one.
    rooms.sort(key=lambda room: (_measure_part(room, most), room.cores, room.memory_mb), reverse=True)
    # What the first so many workers all have: leaving the smallest out lets the others be larger.
    largest_first = list(dict.fromkeys(accumulate(rooms, _take_least)))
    return largest_first if policy == PACKING else largest_first[::-1]


def _take_least(one: Shape, other: Shape) -> Shape:
    return Shape(min(one.cores, other.cores), min(one.memory_mb, other.memory_mb))


def _measure_part(room: Shape, most: Shape) -> float:
    return min(room.cores / most.cores, room.memory_mb / max(1, most.memory_mb))


def _make_whole_shape(offer: Offer) -> Shape:
    return Shape(int(offer.cores or 0), int(offer.memory_mb or 0))


def size_as_offered(used: Sequence[Offer], least: int, needed_mb: Callable[[int], int]) -> tuple[Shape, str]:
    """The size of containers on each of the workers ``used``, and how it comes about.

    :param least: cores that an instance needs.
    :param needed_mb: of so many cores, the memory of what then runs at once.
    Fewer cores than are offered, where memory is for no more at once. Raises ``DoesNotFit`` for less than ``least``.
    """
    # Only of workers the policy has used: one that it left empty need not be as large.
    rooms = [_make_whole_shape(offer) for offer in used]
    offered = reduce(_take_least, rooms)
    # Fewer cores run fewer instances at once: so a worker with much to run and little memory is used all the same.
    fitting = (cores for cores in range(offered.cores, least - 1, -1) if needed_mb(cores) <= offered.memory_mb)
    cores = next(fitting, None)
    if cores is None:
        raise DoesNotFit("a container as large as offered", "memory", needed_mb(least), offered.memory_mb, "MiB")
    reason = LargeAsOffered(len(set(rooms)) > 1, cores, offered.cores)
    return Shape(cores, offered.memory_mb), say_placement(reason)
