"""What the failure of each worker would cost where instances weigh differently.

As level as needed is then a load that differs from a level one by no more than the heaviest instance: what differs by
more has to change hands, counted in instances of that weight. ::

    heaviest 3     load if all were level 7      10 and below: none      11 ... 13: one too many      14 ... 16: two
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import ceil

from airflow_dagsched.placement.high_availability.facts import Facts
from airflow_dagsched.placement.high_availability.sticky.apportioned import Span
from airflow_dagsched.placement.high_availability.sticky.failures import Aftermath, Cost, Failures, cost_of
from airflow_dagsched.placement.high_availability.sticky.house import TOLERANCE, active_loads


def failures_of(facts: Facts, active: Mapping[int, int], standbys: dict[int, list[int]]) -> Failures:
    """Of all workers."""
    if len({facts.instances[instance].weight for instance in active}) > 1:
        return Weighed(facts, active, standbys)
    return Failures(facts, active, standbys)


def cost_of_failures(facts: Facts, active: Mapping[int, int], standbys: Mapping[int, Sequence[int]]) -> Cost:
    """Over all workers, where every instance has the standbys that are wanted."""
    if len(facts.workers) <= 2:
        return (0, 0)  # there is one heir only
    found = failures_of(facts, active, {at: list(held) for at, held in standbys.items()})
    return found.cost(found.several())


class Weighed(Failures):
    """Loads are sums of weights."""

    def __init__(self, facts: Facts, active: Mapping[int, int], standbys: dict[int, list[int]]) -> None:
        super().__init__(facts, active, standbys)
        self.loads = active_loads(facts, active)
        self.own = dict(enumerate(self.loads))
        self.load = sum(self.loads)
        self.heaviest = max(facts.instances[instance].weight for instance in active)
        self.one_heir = all(len(held) <= 1 for held in standbys.values())

    def _weight(self, instance: int) -> float:
        return self.facts.instances[instance].weight

    def _has_no_choice(self, instance: int) -> bool:
        """Nor has any other: who has goes where the load is least, so what one does changes what others do."""
        return self.one_heir

    def _over(self, load: float, most: float) -> int:
        return max(0, ceil((load - most) / self.heaviest - TOLERANCE))

    def _shifted(self, before: Aftermath, instance: int, source: int, target: int) -> Cost:
        over, under = before.over, before.under
        for at, change in ((source, -self._weight(instance)), (target, self._weight(instance))):
            was = self.own[at] + before.inherited[at]
            least, most = before.span.least[at], before.span.most[at]
            over += self._over(was + change, most) - self._over(was, most)
            under += self._over(least, was + change) - self._over(least, was)
        return cost_of(over, under)

    def _after(self, owner: int) -> Aftermath:
        """Each goes where the load is least then, those with the least choice first."""
        level = self._span(owner)
        over, under = self._off(owner, level)
        inherited: dict[int, float] = defaultdict(float)
        capacity = self.facts.capacity
        for instance in sorted(self.owned.get(owner, ()), key=lambda at: (len(self.standbys[at]), at)):
            held = sorted(self.standbys[instance])
            if held:
                weight = self._weight(instance)
                heir = min(held, key=lambda at: (self.own[at] + inherited[at] + weight) / capacity[at])
                inherited[heir] += weight
        for heir, more in inherited.items():
            was, least, most = self.own[heir], level.least[heir], level.most[heir]
            over += self._over(was + more, most) - self._over(was, most)
            under += self._over(least, was + more) - self._over(least, was)
        return Aftermath(level, inherited, over, under)

    def _level(self, owner: int) -> Span:
        capacity, slack = self.facts.capacity, self.facts.settings.balance_factor * self.heaviest
        mean = self.load / (sum(capacity) - capacity[owner])
        return Span([mean * has - slack for has in capacity], [mean * has + slack for has in capacity])
