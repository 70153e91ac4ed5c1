"""A placement made cheaper by moving one instance, or swapping two, while that pays: a local minimum."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from airflow_dagsched.model.units import TOLERANCE
from airflow_dagsched.placement.exhaustive_search import Placement
from airflow_dagsched.placement.offer_capacity import OfferCapacity, compute_limits
from airflow_dagsched.placement.policies.effort import Effort
from airflow_dagsched.placement.policies.price import PlacementPrice
from airflow_dagsched.placement.request import Request, StepRequest

Instance = tuple[StepRequest, int]


def improve_placement(request: Request, places: Placement, effort: Effort) -> Placement:
    """A placement that costs no more, of a resident request; it takes at most half of the tries that are left."""
    price, capacity = PlacementPrice(request), OfferCapacity(request, compute_limits(request))
    for step in request.steps:
        for index, at in enumerate(places[step.number]):
            price.add_instance(step, index, at)
            capacity.take_instance(step, at)
    tries, gained = effort.tries // 2, True
    effort.tries -= tries
    while gained and tries > 0:
        gained = False
        # Never listed whole: pairs grow with the square of the instances.
        for instance, other, to in itertools.islice(_list_candidates(request), tries):
            tries -= 1
            paid = _try_swap(price, capacity, instance, other) if other else _try_move(price, capacity, instance, to)
            gained = gained or paid
    effort.tries += tries
    return price.places


def _list_candidates(request: Request) -> Iterator[tuple[Instance, Instance | None, int]]:
    """First each instance to each offer, then each two instances in each other's place."""
    instances = request.list_instances()
    for instance in instances:
        for to in range(len(request.offers)):
            yield instance, None, to
    for instance, other in itertools.combinations(instances, 2):
        yield instance, other, 0


def _try_move(price: PlacementPrice, capacity: OfferCapacity, instance: Instance, to: int) -> bool:
    """Move the instance if there is room and it pays; whether it did."""
    step, index = instance
    if to == price.places[step.number][index] or not capacity.may_hold(step, index, to):
        return False
    before = price.remove_instance(step, index)
    if price.compute_added_cost(step, index, to) >= price.compute_added_cost(step, index, before) - TOLERANCE:
        price.add_instance(step, index, before)
        return False
    price.add_instance(step, index, to)
    capacity.give_back(step, before)
    capacity.take_instance(step, to)
    return True


def _try_swap(price: PlacementPrice, capacity: OfferCapacity, first: Instance, second: Instance) -> bool:
    """Swap the two if there is room and it pays; whether it did."""
    here, there = (price.places[step.number][index] for step, index in (first, second))
    if here == there or first[0] is second[0] or not _can_swap(capacity, first, second, here, there):
        return False
    price.remove_instance(*first)
    price.remove_instance(*second)
    before = price.add_instance(*first, here) + price.add_instance(*second, there)
    price.remove_instance(*first)
    price.remove_instance(*second)
    after = price.add_instance(*first, there) + price.add_instance(*second, here)
    if after < before - TOLERANCE:
        _exchange_capacity(capacity, first, second, here, there)
        return True
    price.remove_instance(*first)
    price.remove_instance(*second)
    price.add_instance(*first, here)
    price.add_instance(*second, there)
    return False


def _can_swap(capacity: OfferCapacity, first: Instance, second: Instance, here: int, there: int) -> bool:
    """Whether both fit once they are out of each other's way."""
    # Tried on the capacity itself and undone: ``may_hold`` knows only what is held now.
    capacity.give_back(first[0], here)
    capacity.give_back(second[0], there)
    fit = capacity.may_hold(*first, there)
    capacity.take_instance(first[0], there)
    fit = fit and capacity.may_hold(*second, here)
    capacity.give_back(first[0], there)
    capacity.take_instance(first[0], here)
    capacity.take_instance(second[0], there)
    return fit


def _exchange_capacity(capacity: OfferCapacity, first: Instance, second: Instance, here: int, there: int) -> None:
    capacity.give_back(first[0], here)
    capacity.give_back(second[0], there)
    capacity.take_instance(first[0], there)
    capacity.take_instance(second[0], here)
