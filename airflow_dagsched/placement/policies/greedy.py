"""One instance after another, in the order and to the offers that a policy chooses; search where that gets stuck."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from airflow_dagsched.placement.exhaustive_search import Placement, search_placement
from airflow_dagsched.placement.offer_capacity import OfferCapacity
from airflow_dagsched.placement.refusals import check_capacity, refuse_instance
from airflow_dagsched.placement.request import Request, StepRequest
from airflow_dagsched.placement.values import Limit

ChooseOffer = Callable[[OfferCapacity, StepRequest, int], int | None]
"""The offer for an instance among those with room in this wave; None: none has."""


def place_greedily(
    request: Request,
    limits: Sequence[Limit],
    order: Iterable[StepRequest],
    choose_offer: ChooseOffer,
    indices: Callable[[StepRequest], Iterable[int]] = lambda step: range(step.parallelism),
) -> Placement:
    """All instances placed by ``choose_offer``, steps as in ``order``, instances of a step as in ``indices``.

    A batch level starts a new wave, and so does a step more than may run side by side, and an instance for which
    the wave has no room left. An instance without room even then starts the search. Raises ``DoesNotFit``.
    """
    # Else what cannot fit would send the search through its whole budget first.
    check_capacity(request, limits)
    capacity = OfferCapacity(request, limits)
    places = [[0] * step.parallelism for step in request.steps]
    for step in iterate_in_waves(capacity, order):
        for index in indices(step):
            at = _choose_with_wave(capacity, step, index, choose_offer)
            if at is None:
                return _search_instead(request, limits, step, capacity)
            capacity.take_instance(step, at)
            places[step.number][index] = at
    return places


def iterate_in_waves(capacity: OfferCapacity, order: Iterable[StepRequest]) -> Iterable[StepRequest]:
    """The steps of ``order``, with a new wave at each level and after so many steps as run side by side."""
    level, beside = None, 0
    for step in order:
        if step.level != level or beside == capacity.request.settings.steps_at_once:
            capacity.begin_wave(step.level)
            level, beside = step.level, 0
        beside += 1
        yield step


def _choose_with_wave(capacity: OfferCapacity, step: StepRequest, index: int, choose_offer: ChooseOffer) -> int | None:
    at = choose_offer(capacity, step, index)
    # A batch instance may wait: in a new wave all that was placed has ended.
    if at is None and capacity.request.residency == "slots":
        capacity.begin_wave(step.level)
        at = choose_offer(capacity, step, index)
    return at


def _search_instead(request: Request, limits: Sequence[Limit], step: StepRequest, capacity: OfferCapacity) -> Placement:
    """Where no batch instance may wait, not: then it waits, which costs less than the search."""
    places = None if request.residency == "levels" else search_placement(request, limits)
    if places is None:
        raise refuse_instance(request, step, capacity.list_free())
    return places


def order_steps(request: Request) -> list[StepRequest]:
    """Resident: pinned steps first, so that nobody takes their room; batch: level by level. Then as numbered."""
    if request.residency == "all":
        return sorted(request.steps, key=lambda step: (not step.pinned, step.number))
    return sorted(request.steps, key=lambda step: (step.level, step.number))
