"""Branch and bound over placements: depth first, the cheapest next step first, cut where no better one can follow.

The bound of a part: its own cost, which never falls, and for each instance still to come the least it can cost alone.
"""

from __future__ import annotations

from airflow_dagsched.placement.exact import Places
from airflow_dagsched.placement.price import Price
from airflow_dagsched.placement.request import Request, Work
from airflow_dagsched.placement.room import Room, rooms_of

NODES = 200_000
"""Offers priced for an instance, in all: about a second."""
SMALL = 100
"""Instances times offers: above it the search would end long before it proves anything."""
GAIN = 1e-9


def branch_and_bound(request: Request, known: Places, cost: float, nodes: int = NODES) -> Places:
    """A placement of a resident request that is cheaper than ``known`` at ``cost``, or ``known``.

    The cheapest there is, unless it takes more than ``nodes`` to tell; a request that is not small is not tried.
    """
    if not 0 < request.instances * len(request.offers) <= SMALL:
        return known
    return _Search(request, known, cost, nodes).run()


class _Search:
    def __init__(self, request: Request, known: Places, cost: float, nodes: int) -> None:
        self._items = [(work, index) for work in request.works for index in range(work.parallelism)]
        self._price, self._room = Price(request), Room(request, rooms_of(request))
        self._alike = {work.number: _are_alike(request, work) for work in request.works}
        self._rest = self._least_from_here()
        self._best, self._cost, self._nodes = known, cost, nodes

    def run(self) -> Places:
        """Down to the last instance, back up, and along: with a list of what is still to be tried at each depth."""
        spent: list[float] = []
        untried = [self._options(0, 0.0)]
        while untried and self._nodes > 0:
            depth = len(untried) - 1
            if len(spent) > depth:
                self._undo(depth)
                spent.pop()
            if not untried[depth]:
                untried.pop()
                continue
            cost = self._do(depth, untried[depth].pop(0)[1]) + (spent[-1] if spent else 0.0)
            spent.append(cost)
            if depth + 1 == len(self._items):
                self._keep(cost)
            else:
                untried.append(self._options(depth + 1, cost))
        return self._best

    def _options(self, depth: int, cost: float) -> list[tuple[float, int]]:
        """Offers for the next instance that may lead to something cheaper, the cheapest first."""
        work, index = self._items[depth]
        found = []
        self._nodes -= len(self._room.limits)
        for at in range(self._first(work, index), len(self._room.limits)):
            if self._room.may_hold(work, index, at):
                added = self._price.added(work, index, at)
                if cost + added + self._rest[depth + 1] < self._cost - GAIN:
                    found.append((added, at))
        return sorted(found)

    def _first(self, work: Work, index: int) -> int:
        """Instances that are alike go to offers in rising order."""
        return self._price.places[work.number][index - 1] if index and self._alike[work.number] else 0

    def _do(self, depth: int, at: int) -> float:
        work, index = self._items[depth]
        self._room.take(work, at)
        return self._price.take(work, index, at)

    def _undo(self, depth: int) -> None:
        work, index = self._items[depth]
        self._room.give(work, self._price.give(work, index))

    def _keep(self, cost: float) -> None:
        if cost < self._cost - GAIN:
            self._best, self._cost = [list(found) for found in self._price.places], cost

    def _least_from_here(self) -> list[float]:
        """For each depth the least that the instances from it on cost by themselves."""
        least = {
            work.number: min(self._price.own(work, at) for at in range(len(self._room.limits)))
            for work in self._room.request.works
        }
        rest = [0.0]
        for work, _ in reversed(self._items):
            rest.append(rest[-1] + least[work.number])
        return rest[::-1]


def _are_alike(request: Request, work: Work) -> bool:
    """Whether it makes no difference which instance of the step is where."""
    channels = [(one, dst) for dst in request.works for one in dst.inputs if work.number in {one.src, dst.number}]
    return not request.beside and all(
        one.routing in {"shuffle", "broadcast"} or (one.routing == "single" and one.src == work.number)
        for one, _ in channels
    )
