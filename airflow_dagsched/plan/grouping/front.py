"""The groupings that no other beats: none has as few groups and ends as soon.

groups      1      2      4    102
ends      270 s  221 s  194 s  193.6 s       three groups that end after 230 s are beaten by the two
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct, field

from airflow_dagsched.plan.costing.evaluated_grouping import EvaluatedGrouping
from airflow_dagsched.plan.costing.evaluator import Evaluator

WITHIN = 0.01
"""How much later than the soonest, as a share, a grouping may end that has fewer groups: an application costs ten
seconds of a processor, a driver with a core and 1 GiB, and a slot of Airflow, and runtimes are not known to 1%."""


class Found(NamedTuple):
    """A grouping that has been evaluated."""

    kind: str
    evaluated: EvaluatedGrouping
    evaluator: Evaluator
    """With the order in which it starts the steps of its groups."""


class Front(Struct):
    """By number of groups the best grouping, as far as no other with as few ends as soon."""

    by_count: dict[int, Found] = field(default_factory=dict)

    def keep_if_unbeaten(self, found: Found) -> None:
        """Keep it, and drop those that it beats."""
        if any(_is_beaten(found, other) for other in self.by_count.values()):
            return
        self.by_count = {count: one for count, one in self.by_count.items() if not _is_beaten(one, found)}
        self.by_count[found.evaluated.cost.groups] = found

    def limit_makespan(self) -> float:
        """The latest end, in seconds, that is as good as the soonest of all."""
        return min([one.evaluated.cost.makespan_s for one in self.by_count.values()]) * (1 + WITHIN)

    def list_fewer(self) -> list[Found]:
        """Those with fewer groups than any that ends in time, the soonest first."""
        most = self.find_fewest().evaluated.cost.groups
        return [self.by_count[count] for count in sorted(self.by_count, reverse=True) if count < most]

    def find_fewest(self) -> Found:
        """Of those that end in time the one with the fewest groups; there must be one at all."""
        limit_s = self.limit_makespan()
        return self.by_count[
            min(count for count, one in self.by_count.items() if one.evaluated.cost.makespan_s <= limit_s)
        ]


def _is_beaten(found: Found, other: Found) -> bool:
    cost, rival = found.evaluated.cost, other.evaluated.cost
    # Of as many groups all of the cost counts; with fewer groups it is enough to end as soon.
    return cost >= rival if cost.groups == rival.groups else cost.groups > rival.groups and cost[0] >= rival[0]
