"""What the failure of each worker would cost where instances weigh differently.

As level as needed is then a load that differs from a level one by no more than the heaviest instance: what differs by
more has to change hands, counted in instances of that weight. ::

    heaviest 3     load if all were level 7      10 and below: none      11 ... 13: one too many      14 ... 16: two
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import ceil

from airflow_dagsched.model.units import TOLERANCE
from airflow_dagsched.placement.high_availability.facts import Facts
from airflow_dagsched.placement.high_availability.sticky.fair_shares import FairShares
from airflow_dagsched.placement.high_availability.sticky.initial_assignment import sum_active_loads
from airflow_dagsched.placement.high_availability.sticky.standbys.failures import (
    Aftermath,
    Cost,
    Failures,
    compute_cost,
)


def make_failures(facts: Facts, active: Mapping[int, int], standbys: dict[int, list[int]]) -> Failures:
    """The failures of all workers: weighted where instances weigh differently."""
    if len({facts.get_weight(instance) for instance in active}) > 1:
        return WeightedFailures(facts, active, standbys)
    return Failures(facts, active, standbys)


def compute_failure_cost(facts: Facts, active: Mapping[int, int], standbys: Mapping[int, Sequence[int]]) -> Cost:
    """The cost of all workers' failures, where every instance has the standbys that are wanted."""
    if len(facts.workers) <= 2:
        return (0, 0)  # there is one heir only
    failures = make_failures(facts, active, {at: list(held) for at, held in standbys.items()})
    return failures.sum_costs(failures.find_critical())


class WeightedFailures(Failures):
    """Loads are sums of weights."""

    def __init__(self, facts: Facts, active: Mapping[int, int], standbys: dict[int, list[int]]) -> None:
        super().__init__(facts, active, standbys)
        self.loads = sum_active_loads(facts, active)
        self.own = dict(enumerate(self.loads))
        self.load = sum(self.loads)
        self.heaviest = max(facts.get_weight(instance) for instance in active)
        self.one_heir = all(len(held) <= 1 for held in standbys.values())

    def _has_no_choice(self, instance: int) -> bool:
        """Nor has any other: who has goes where the load is least, so what one does changes what others do."""
        return self.one_heir

    def _count_excess(self, load: float, most: float) -> int:
        # Less the tolerance: rounding must not make one hand-over of none.
        return max(0, ceil((load - most) / self.heaviest - TOLERANCE))

    def _compute_moved_cost(self, before: Aftermath, instance: int, source: int, target: int) -> Cost:
        over, under = before.over, before.under
        for at, change in ((source, -self.facts.get_weight(instance)), (target, self.facts.get_weight(instance))):
            was = self.own[at] + before.inherited[at]
            least, most = before.level.least[at], before.level.most[at]
            over += self._count_excess(was + change, most) - self._count_excess(was, most)
            under += self._count_excess(least, was + change) - self._count_excess(least, was)
        return compute_cost(over, under)

    def _predict_failure(self, owner: int) -> Aftermath:
        """Each goes where the load is least then, those with the least choice first."""
        level = self._get_fair_shares(owner)
        over, under = self._count_deviation(owner, level)
        inherited: dict[int, float] = defaultdict(float)
        capacity = self.facts.capacity
        for instance in sorted(self.owned.get(owner, ()), key=lambda at: (len(self.standbys[at]), at)):
            held = sorted(self.standbys[instance])
            if held:
                weight = self.facts.get_weight(instance)
                heir = min(held, key=lambda at: (self.own[at] + inherited[at] + weight) / capacity[at])
                inherited[heir] += weight
        for heir, more in inherited.items():
            was, least, most = self.own[heir], level.least[heir], level.most[heir]
            over += self._count_excess(was + more, most) - self._count_excess(was, most)
            under += self._count_excess(least, was + more) - self._count_excess(least, was)
        return Aftermath(level, inherited, over, under)

    def _compute_fair_shares(self, owner: int) -> FairShares:
        capacity, slack = self.facts.capacity, self.facts.settings.balance_factor * self.heaviest
        mean = self.load / (sum(capacity) - capacity[owner])
        return FairShares([mean * has - slack for has in capacity], [mean * has + slack for has in capacity])
