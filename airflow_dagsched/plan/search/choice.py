"""The best grouping so far, what it has been compared with, and how much may still be looked at."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.plan.cost import Cost, Priced, price
from airflow_dagsched.plan.given import Given
from airflow_dagsched.plan.groups import fewest
from airflow_dagsched.plan.launches.order import MOST, in_best_order, soonest_end
from airflow_dagsched.plan.stages import Stages

FINALISTS = 3
"""Runners-up, besides those that have to be compared, of which the order of launches is searched."""
MANY = 200
"""Steps; of more, orders of launches are searched only for what could save at least"""
WORTH = 0.02
"""of the time."""
CLOSE = 0.002
"""A plan this close to the bound, as a share of it, is as good as any."""


class Choice(Struct):
    """The best grouping so far, and what it has been compared with."""

    given: Given
    budget: int
    stages: Stages
    """Of the coarsest groups."""
    best: Priced | None = None
    chosen: str = ""
    compared: dict[str, Cost] = field(default_factory=dict)
    """The best of each kind, without the chosen one where it is the same grouping."""
    refused: DoesNotFit | None = None
    seen: set[tuple[int, ...]] = field(default_factory=set)
    anchors: set[tuple[int, ...]] = field(default_factory=set)
    """Groupings than which the plan must not be worse."""
    finalists: list[tuple[str, Priced]] = field(default_factory=list)
    """The best few, and the anchors, by their costs: the order of their launches is still to be searched."""
    few: tuple[Stages, list[int]] | None = None
    """Once asked for: see ``fewest``."""

    def fewest(self) -> tuple[Stages, list[int]]:
        """As few groups as the rules allow: what forces them apart, and their homes."""
        if self.few is None:
            self.few = fewest(self.given.graph, self.given.rules)
        return self.few

    @property
    def open(self) -> bool:
        """Whether there may be a better one, and it may be looked for."""
        return self.budget > 0 and not self.proved

    @property
    def proved(self) -> bool:
        """Whether none can end much sooner."""
        return self.best is not None and self.best.cost.makespan_s <= self.given.bound * (1 + CLOSE)

    def lacks(self, home: Sequence[int]) -> bool:
        """Whether a grouping has not been offered yet."""
        return tuple(home) not in self.seen

    def offer(self, what: str, home: Sequence[int]) -> Priced | None:
        """Price a grouping and keep it if it is the best; None if it does not fit or is known."""
        key = tuple(home)
        if key in self.seen:
            return None
        self.seen.add(key)
        self.budget -= len(home) + len(self.given.graph.datasets)
        try:
            priced = price(home, self.given)
        except DoesNotFit as refusal:
            self.refused = refusal
            return None
        self.take(what, priced)
        self._remember(what, priced)
        return priced

    def decide(self) -> None:
        """Which of the finalists ends first once each launches its groups in the best order."""
        if self.best is None:
            return
        many = len(self.given.graph.steps) > MANY
        for what, priced in self.finalists:
            soonest, worth = soonest_end(priced, self.given), self.best.cost.makespan_s * (1 - WORTH * many)
            if soonest < worth or (priced is self.best and not many):
                self.take(what, in_best_order(priced, self.given))
        self.finalists = []

    def take(self, what: str, priced: Priced) -> None:
        """Compare a plan of the kind ``what``, and keep it if it is the best."""
        if what not in self.compared or priced.cost < self.compared[what]:
            self.compared[what] = priced.cost
        if self.best is None or priced.cost < self.best.cost:
            self.best, self.chosen = priced, what

    def _remember(self, what: str, priced: Priced) -> None:
        """As a finalist, where the order of launches is searched at all."""
        if len(priced.spans) > MOST:
            return
        self.finalists.append((what, priced))
        self.finalists.sort(key=lambda one: one[1].cost)
        rivals = [one for one in self.finalists if tuple(one[1].home) not in self.anchors]
        if len(rivals) > FINALISTS:
            self.finalists.remove(rivals[-1])
