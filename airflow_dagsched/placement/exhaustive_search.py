"""A placement by search, for when a policy's own order leaves an instance without room.

Depth first over the instances, the largest first; equal instances go to offers in rising order, and of offers in
equal state only the first is tried. Complete on small requests; on large ones it ends with its budget, so a refusal
then says that no placement was found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from airflow_dagsched.placement.offer_capacity import OfferCapacity
from airflow_dagsched.placement.request import Request, StepRequest
from airflow_dagsched.placement.shares import order_by_share
from airflow_dagsched.placement.values import Limit

BUDGET = 300_000
"""Offers looked at, in all: about half a second."""

Placement = list[list[int]]
"""The offer of each instance: by the step's number, then the index of the instance."""

OfferState = tuple[object, ...]


def search_placement(
    request: Request, limits: Sequence[Limit], budget: int = BUDGET, *, most: int | None = None
) -> Placement | None:
    """An offer for each instance, so that all fit; None if there is none, or none was found within ``budget``.

    ``most``: so many offers in use at most; None: any number.
    """
    # The least choice first: a dead end then shows near the root, where it costs one branch.
    instances = [(step, index) for step in order_by_share(request, limits) for index in range(step.parallelism)]
    capacity, named = OfferCapacity(request, limits), _list_named_workers(request)
    chosen: list[int] = []
    opened = 0
    # By depth: the next offer to look at, and the states of offers that were tried there.
    start, seen = [0], [set[OfferState]()]
    while len(chosen) < len(instances):
        at = len(chosen)
        may_open = most is None or opened < most
        offer, looked = _find_next(capacity, named, instances[at], start[at], seen[at], may_open=may_open)
        budget -= looked
        # Without an offer at the first depth everything has been tried: that is a proof, the budget's end is none.
        if budget < 0 or (offer < 0 and not at):
            return None
        if offer < 0:
            start.pop()
            seen.pop()
            capacity.give_back(instances[at - 1][0], emptied := chosen.pop())
            # After it was given back: an offer that is empty again counts as not opened.
            opened -= not capacity.held_totals[emptied]
            continue
        opened += not capacity.held_totals[offer]
        capacity.take_instance(instances[at][0], offer)
        chosen.append(offer)
        start[at] = offer + 1
        # Equal instances in rising order only: else each of their n! orders would be looked at.
        start.append(
            offer if at + 1 < len(instances) and _are_alike(request, instances[at][0], instances[at + 1][0]) else 0
        )
        seen.append(set())
    return _make_placement(request, instances, chosen)


def _are_alike(request: Request, step: StepRequest, after: StepRequest) -> bool:
    """Whether two instances in a row are equal, so that the second need not go before the first."""
    return step is after and not request.beside


def _find_next(
    capacity: OfferCapacity,
    named: frozenset[str],
    item: tuple[StepRequest, int],
    start: int,
    seen: set[OfferState],
    *,
    may_open: bool,
) -> tuple[int, int]:
    """The first offer from ``start`` on with room, in a state not seen here; -1: none. And how many were looked at."""
    for at in range(start, len(capacity.limits)):
        if (may_open or capacity.held_totals[at]) and capacity.may_hold(*item, at):
            state = _describe_offer(capacity, named, at)
            if state not in seen:
                seen.add(state)
                return at, at - start + 1
    return -1, len(capacity.limits) - start + 1


def _describe_offer(capacity: OfferCapacity, named: frozenset[str], at: int) -> OfferState:
    """Equal for offers that are interchangeable: same room, same content, and nobody asks for one by its name."""
    worker = capacity.request.offers[at].worker
    who = worker if worker in named else ""
    # What is resident leaves just what is free; in waves it matters which steps share the container.
    held = () if capacity.request.residency == "all" else tuple(sorted(capacity.held_counts[at].items()))
    return *capacity.list_free_by_level(at), capacity.get_free_disk(at), capacity.held_totals[at], held, who


def _list_named_workers(request: Request) -> frozenset[str]:
    """Workers that are not interchangeable: pinned to, or with several offers, which share a disk."""
    named = {worker for step in request.steps for worker in step.pinned} | set(request.beside.values())
    offers = Counter(offer.worker for offer in request.offers)
    return frozenset(named | {worker for worker, count in offers.items() if count > 1})


def _make_placement(request: Request, instances: Sequence[tuple[StepRequest, int]], chosen: Sequence[int]) -> Placement:
    places = [[0] * step.parallelism for step in request.steps]
    for (step, index), at in zip(instances, chosen, strict=True):
        places[step.number][index] = at
    return places
