"""What the failure of each worker would cost.

Its actives go where their standbys are, each to one. Where that is uneven, further actives have to change hands to
make the others level again: hand-overs beyond those of what was lost. ::

    a fails      x -> b, y -> b     b has two more, c none       one too many: b gives one to c
                 x -> b, y -> b|c   y has two standbys           none

Instances count alike. Where they weigh differently ``weighted_failures`` has what is different then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from airflow_dagsched.placement.high_availability.facts import Facts
from airflow_dagsched.placement.high_availability.sticky.bipartite_matching import match_bipartite
from airflow_dagsched.placement.high_availability.sticky.fair_shares import FairShares, find_fair_line, list_fair_shares

PASSABLE = 1
"""Hand-overs too many that a failure may cost."""

Cost = tuple[int, int]
"""Hand-overs beyond what is passable; where there are any, how uneven the rest would be."""


class Aftermath(Struct, frozen=True):
    """A worker failed, and its instances are where their standbys were."""

    level: FairShares
    inherited: Mapping[int, float]
    """Load by heir: nothing for others."""
    over: int
    """What all other workers have above a level load."""
    under: int
    """What they have below one."""

    @property
    def excess(self) -> int:
        """Hand-overs that follow."""
        return max(self.over, self.under)

    @property
    def cost(self) -> Cost:
        """The cost of this failure."""
        return compute_cost(self.over, self.under)


def compute_cost(over: int, under: int) -> Cost:
    """The cost of so many instances above, and below, a level load."""
    beyond = max(0, max(over, under) - PASSABLE)
    return (beyond, over + under if beyond else 0)


class Failures:
    """What the failure of each worker leaves, for actives that stay and standbys that may change."""

    def __init__(self, facts: Facts, active: Mapping[int, int], standbys: dict[int, list[int]]) -> None:
        self.facts = facts
        self.standbys = standbys
        self.own: Mapping[int, float] = Counter(active.values())
        """Load by worker."""
        self.owned: dict[int, list[int]] = {}
        for instance, owner in sorted(active.items()):
            self.owned.setdefault(owner, []).append(instance)
        self.total = len(active)
        self.spans: dict[int, FairShares] = {}
        """Fair shares by capacity of the worker that fails: all of one capacity leave the same to the others."""
        self.off: dict[int, tuple[int, int]] = {}
        self.known: dict[int, Aftermath] = {}

    def find_critical(self) -> list[int]:
        """Workers that have more than is passable."""
        return [owner for owner, mine in sorted(self.owned.items()) if len(mine) > PASSABLE]

    def sum_costs(self, owners: Iterable[int]) -> Cost:
        """The cost of these workers' failures together."""
        costs = [self.predict_after(owner).cost for owner in owners]
        return sum(cost[0] for cost in costs), sum(cost[1] for cost in costs)

    def compute_saving(self, instance: int, owner: int, source: int, target: int) -> Cost:
        """What the failure of the owner costs less if a standby goes elsewhere."""
        before = self.predict_after(owner)
        if self._has_no_choice(instance):
            after = self._compute_moved_cost(before, instance, source, target)
        else:
            self.move_standby(instance, owner, source, target)
            after = self.predict_after(owner).cost
            self.move_standby(instance, owner, target, source)
            # ``move_standby`` dropped it both times, and all is as it was.
            self.known[owner] = before
        return before.cost[0] - after[0], before.cost[1] - after[1]

    def _has_no_choice(self, instance: int) -> bool:
        return len(self.standbys[instance]) == 1

    def _compute_moved_cost(self, before: Aftermath, instance: int, source: int, target: int) -> Cost:
        """The cost if one went to ``target`` that went to ``source``: of an instance with no other standby."""
        # With one standby there is nothing to match: four comparisons instead of it.
        gives, takes = (self.own[at] + before.inherited[at] for at in (source, target))
        level = before.level
        over = before.over - (gives > level.most[source]) + (takes >= level.most[target])
        under = before.under + (gives <= level.least[source]) - (takes < level.least[target])
        return compute_cost(over, under)

    def move_standby(self, instance: int, owner: int, source: int, target: int) -> None:
        """A standby goes elsewhere."""
        held = self.standbys[instance]
        held[held.index(source)] = target
        self.known.pop(owner, None)

    def predict_after(self, owner: int) -> Aftermath:
        """The failure of a worker, which is not the only one."""
        if owner not in self.known:
            self.known[owner] = self._predict_failure(owner)
        return self.known[owner]

    def _predict_failure(self, owner: int) -> Aftermath:
        level = self._get_fair_shares(owner)
        over, under = self._count_deviation(owner, level)
        choices = {instance: sorted(self.standbys[instance]) for instance in self.owned.get(owner, ())}
        heirs: dict[int, int] = {}
        # Workers that nobody fails over to keep what they have, and are counted in ``_count_deviation``.
        places = {worker for held in choices.values() for worker in held}
        # Up to each worker's least: whoever is placed so is one less that is missing.
        match_bipartite(choices, {at: int(level.least[at] - self.own[at]) for at in places}, heirs)
        filled = len(heirs)
        # Then up to its most, which is still level.
        match_bipartite(choices, {at: int(level.most[at] - self.own[at]) for at in places}, heirs)
        inherited = Counter(heirs.values())
        for instance, held in choices.items():
            if instance not in heirs and held:
                # No level place left: one above, which has to change hands again.
                inherited[held[0]] += 1
                over += 1
        return Aftermath(level, inherited, over, under - filled)

    def _get_fair_shares(self, owner: int) -> FairShares:
        capacity = self.facts.capacity
        if capacity[owner] not in self.spans:
            level = self._compute_fair_shares(owner)
            pairs = list(zip((self.own[at] for at in range(len(capacity))), level.most, level.least, strict=True))
            self.spans[capacity[owner]] = level
            self.off[capacity[owner]] = (
                sum(self._count_excess(have, most) for have, most, _ in pairs),
                sum(self._count_excess(least, have) for have, _, least in pairs),
            )
        return self.spans[capacity[owner]]

    def _compute_fair_shares(self, owner: int) -> FairShares:
        """What the others have if they are level without it."""
        capacity = self.facts.capacity
        others: Sequence[int] = capacity[:owner] + capacity[owner + 1 :]
        return list_fair_shares(find_fair_line(self.total, others), capacity)

    def _count_excess(self, load: float, most: float) -> int:
        """Instances too many."""
        return max(0, int(load - most))

    def _count_deviation(self, owner: int, level: FairShares) -> tuple[int, int]:
        """Instances above and below a level load before anybody inherits any, without the owner itself."""
        over, under = self.off[self.facts.capacity[owner]]
        have = self.own[owner]
        return over - self._count_excess(have, level.most[owner]), under - self._count_excess(level.least[owner], have)
