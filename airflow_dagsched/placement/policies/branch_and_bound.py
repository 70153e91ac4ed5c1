"""Branch and bound over placements: depth first, the cheapest next step first, cut where no better one can follow.

The bound of a part: its own cost, which never falls, and for each instance still to come the least it can cost alone.
"""

from __future__ import annotations

from airflow_dagsched.model.units import TOLERANCE
from airflow_dagsched.placement.exhaustive_search import Placement
from airflow_dagsched.placement.offer_capacity import OfferCapacity, compute_limits
from airflow_dagsched.placement.policies.effort import Effort
from airflow_dagsched.placement.policies.price import PlacementPrice
from airflow_dagsched.placement.request import Request, StepRequest

MAX_PAIRS = 100
"""Instances times workers: above it the search would end long before it proves anything."""


def search_cheaper(request: Request, known: Placement, cost: float, effort: Effort) -> Placement:
    """A placement of a resident request that is cheaper than ``known`` at ``cost``, or ``known``.

    The cheapest there is, unless it takes more nodes than are left to tell; a request that is not small is not tried.
    """
    if not is_small(request):
        return known
    search = _Search(request, known, cost, effort.nodes)
    found = search.search_all()
    effort.nodes = max(0, search.nodes)
    return found


def is_small(request: Request) -> bool:
    """Whether the search may come to its end."""
    return 0 < request.instance_count * len({offer.worker for offer in request.offers}) <= MAX_PAIRS


class _Search:
    def __init__(self, request: Request, known: Placement, cost: float, nodes: int) -> None:
        self._instances = request.list_instances()
        self._price, self._capacity = PlacementPrice(request), OfferCapacity(request, compute_limits(request))
        self._alike = {step.number: _are_interchangeable(request, step) for step in request.steps}
        self._rest = self._sum_least_costs()
        self._best, self._cost = known, cost
        self.nodes = nodes  # left

    def search_all(self) -> Placement:
        """Down to the last instance, back up, and along: with a list of what is still to be tried at each depth."""
        spent: list[float] = []
        untried = [self._list_options(0, 0.0)]
        while untried and self.nodes > 0:
            depth = len(untried) - 1
            if len(spent) > depth:
                self._remove_instance(depth)
                spent.pop()
            if not untried[depth]:
                untried.pop()
                continue
            cost = self._place_instance(depth, untried[depth].pop(0)[1]) + (spent[-1] if spent else 0.0)
            spent.append(cost)
            if depth + 1 == len(self._instances):
                self._keep_if_cheaper(cost)
            else:
                untried.append(self._list_options(depth + 1, cost))
        return self._best

    def _list_options(self, depth: int, cost: float) -> list[tuple[float, int]]:
        """Offers for the next instance that may lead to something cheaper, the cheapest first."""
        step, index = self._instances[depth]
        options, seen = [], set[tuple[object, ...]]()
        # Work, not seconds: the same placement on every machine.
        self.nodes -= len(self._capacity.limits)
        for at in range(self._get_first_offer(step, index), len(self._capacity.limits)):
            if self._is_new(at, seen) and self._capacity.may_hold(step, index, at):
                added = self._price.compute_added_cost(step, index, at)
                # Strictly cheaper: of equals the known one stays, which has the fewest containers.
                if cost + added + self._rest[depth + 1] < self._cost - TOLERANCE:
                    options.append((added, at))
        return sorted(options)

    def _is_new(self, at: int, seen: set[tuple[object, ...]]) -> bool:
        """Whether no offer of the same worker, as large and holding as much, is among those ``seen``."""
        held = sorted((number, count) for number, count in self._capacity.held_counts[at].items() if count)
        state = self._capacity.request.offers[at].worker, self._capacity.limits[at], tuple(held)
        if state in seen:
            return False
        seen.add(state)
        return True

    def _get_first_offer(self, step: StepRequest, index: int) -> int:
        """Instances that are alike go to offers in rising order."""
        return self._price.places[step.number][index - 1] if index and self._alike[step.number] else 0

    def _place_instance(self, depth: int, at: int) -> float:
        step, index = self._instances[depth]
        self._capacity.take_instance(step, at)
        return self._price.add_instance(step, index, at)

    def _remove_instance(self, depth: int) -> None:
        step, index = self._instances[depth]
        self._capacity.give_back(step, self._price.remove_instance(step, index))

    def _keep_if_cheaper(self, cost: float) -> None:
        if cost < self._cost - TOLERANCE:
            self._best, self._cost = [list(options) for options in self._price.places], cost

    def _sum_least_costs(self) -> list[float]:
        """The least that the instances from each depth on cost by themselves."""
        least = {
            step.number: min(self._price.compute_own_cost(step, at) for at in range(len(self._capacity.limits)))
            for step in self._capacity.request.steps
        }
        rest = [0.0]
        for step, _ in reversed(self._instances):
            rest.append(rest[-1] + least[step.number])
        return rest[::-1]


def _are_interchangeable(request: Request, step: StepRequest) -> bool:
    """Whether it makes no difference which instance of the step is where."""
    # Index means something where rows go from i to i (forward), or all to instance 0 (single).
    channels = [
        (channel, dst) for dst in request.steps for channel in dst.inputs if step.number in {channel.src, dst.number}
    ]
    return not request.beside and all(
        channel.routing in {"shuffle", "broadcast"} or (channel.routing == "single" and channel.src == step.number)
        for channel, _ in channels
    )
