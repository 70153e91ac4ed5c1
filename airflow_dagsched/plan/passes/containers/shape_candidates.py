"""Shapes of container that a policy with a measure is asked about: the planned one first, so that ties keep it.

    batch       cores from the widest instance to the most that a container may have; memory follows from cores
    resident    cores and memory so large that some worker, with as many containers as it holds, has none left

Whatever fits in equal containers also fits in ones of these shapes: of those of which each worker holds as many, the
largest is kept. Where that is too much work only halves and halves of halves are looked at.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from airflow_dagsched.placement.containers.equal_containers import count_copies, list_dominating_shapes
from airflow_dagsched.placement.request import Request
from airflow_dagsched.plan.passes.containers.container_offers import Shape, make_shape
from airflow_dagsched.plan.plan_types import Group

SMALL = 100
"""Instances times workers, at most, for which all shapes are tried, however many there are."""
LISTED = 400
"""Instances times workers, at most, for which all shapes of resident containers are listed: some milliseconds."""
WORK = 10_000
"""Shapes times instances times workers, at most, of all groups of a plan: so long all are tried, of more than SMALL."""


def list_candidates(group: Group, request: Request, most_cores: int, groups: int = 1) -> list[Shape]:
    """The planned shape, then others, no two of which each worker holds equally often.

    :param most_cores: of a container in batch.
    :param groups: that are placed for one plan.
    """
    planned = make_shape(group, request, group.containers[0].cores)
    found: dict[tuple[int, ...], Shape] = {}
    for shape in _list_others(group, request, most_cores, groups):
        found.setdefault(_count_on_each(request, shape), shape)
    return [planned, *(shape for counts, shape in found.items() if any(counts) and shape != planned)]


def _list_others(group: Group, request: Request, most_cores: int, groups: int) -> Iterator[Shape]:
    """The largest first, so that of those that each worker holds equally often the largest comes first."""
    least = math.ceil(max(step.needs.cores for step in request.steps))
    roomiest = max(int(offer.cores or 0) for offer in request.offers)
    if group.residency == "all" and _count_pairs(request) <= LISTED:
        shapes = list_dominating_shapes(request)
        if _may_try_all(request, len(shapes), groups):
            yield from (Shape(cores, memory) for cores, memory in shapes)
            return
    most = roomiest if group.residency == "all" else min(roomiest, max(least, most_cores))
    counts = range(most, least - 1, -1)
    tried = counts if _may_try_all(request, len(counts), groups) else _halve(most, least)
    yield from (make_shape(group, request, cores) for cores in tried)


def _may_try_all(request: Request, shapes: int, groups: int) -> bool:
    pairs = _count_pairs(request)
    return pairs <= SMALL or pairs * shapes * groups <= WORK


def _count_pairs(request: Request) -> int:
    return request.instance_count * len(request.offers)


def _halve(most: int, least: int) -> Iterator[int]:
    while most > least:
        yield most
        most = max(least, most // 2)
    yield least


def _count_on_each(request: Request, shape: Shape) -> tuple[int, ...]:
    """Containers of the shape on each worker; no more than there are instances."""
    most = request.instance_count
    return tuple(min(most, count_copies(offer, shape.cores, shape.memory_mb)) for offer in request.offers)
