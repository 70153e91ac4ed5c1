"""Why groups that could be one are not: together they would not fit, or end later. And what was compared."""

from __future__ import annotations

from msgspec import Struct, field

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.model.ranges import MOST, MOST_SECONDS
from airflow_dagsched.plan.cost import Cost, Home, Priced, price
from airflow_dagsched.plan.reasons import Reasons
from airflow_dagsched.plan.search.choice import Choice
from airflow_dagsched.plan.search.choose import COARSEST, FEWEST, PER_STEP
from airflow_dagsched.plan.shape import shape_of
from airflow_dagsched.plan.values import Compared
from airflow_dagsched.plan.words import duration

SIMULATED = 6_000
"""Steps and edges that may be simulated to tell what single cuts save; beyond, the whole grouping is compared."""
TOLD = 8
"""Kinds of groupings that are told, the best first; and of the others those that anybody would think of."""


class Savings(Struct):
    """Reasons of the chosen grouping."""

    choice: Choice
    best: Priced
    forced: Reasons
    neighbour: dict[int, tuple[int, int]]
    """For each group two that nothing forces apart: itself and one it hands rows to, or takes them from, else any."""
    budget: int = SIMULATED
    told: dict[tuple[int, int], str] = field(default_factory=dict)
    of_all: str = ""
    """Once asked for: what the grouping as a whole saves."""

    @classmethod
    def of(cls, choice: Choice, best: Priced, forced: Reasons) -> Savings:
        """Look at every cut once."""
        neighbour: dict[int, tuple[int, int]] = {}
        home = best.home
        for dataset in choice.given.graph.datasets:
            here = home[dataset.src]
            for reader in dataset.readers:
                there = home[reader]
                if there != here and not forced.parts(dataset.src, reader):
                    pair = here, there
                    neighbour.setdefault(here, pair)
                    neighbour.setdefault(there, pair)
        if len(best.members) > 1:
            neighbour = _beside(choice.fewest()[1], best) | neighbour
        return cls(choice, best, forced, neighbour)

    def of_cut(self, src: int, dst: int) -> str:
        """Why the channel between two steps is cut."""
        return self.forced.forced(src, dst) or self._of_pair(self.best.home[src], self.best.home[dst])

    def of_group(self, first: int) -> str:
        """Why the steps of a group are one, or no more than these."""
        if first not in self.neighbour:
            return self.forced.of_group(self.best.members[first], alone=len(self.best.members) == 1)
        pair = self.neighbour[first]
        other = pair[0] if pair[1] == first else pair[1]
        return f"apart from 'launch_{self.choice.given.graph.ids[other]}': {self._of_pair(*pair)}"

    def _of_pair(self, writer: int, reader: int) -> str:
        if (writer, reader) not in self.told:
            self.told[writer, reader] = self._limit(writer, reader) or self._profit(writer, reader)
        return self.told[writer, reader]

    def _limit(self, writer: int, reader: int) -> str:
        """What keeps the two from being one group."""
        given, members = self.choice.given, self.best.members
        limits = self.forced.limits(members[writer], members[reader])
        if limits or self.budget <= 0:
            return limits
        both = {*members[writer], *members[reader]}
        try:
            self.budget -= len(both)
            shape_of("of both", [node for node in given.work.order if node in both], given)
        except DoesNotFit as refusal:
            return f"together they do not fit: {refusal.dimension} {refusal.amounts}"
        return ""

    def _profit(self, writer: int, reader: int) -> str:
        single = self._joined(writer, reader)
        if single is not None:
            checkpoint = "a checkpoint: " if self._only_for_failures(single) else ""
            return checkpoint + _text(single.cost, self.best.cost, "one group of both")
        self.of_all = self.of_all or self._of_grouping()
        return self.of_all

    def _of_grouping(self) -> str:
        rivals = [(cost, what) for what, cost in self.choice.compared.items() if what in (COARSEST, FEWEST)]
        if not rivals or min(rivals)[0] == self.best.cost:
            return "larger groups do not fit the cluster, or end later"
        return "this grouping " + _text(*min(rivals)[:1], self.best.cost, min(rivals)[1])

    def _only_for_failures(self, single: Priced) -> bool:
        """Whether the cut ends nothing sooner if nothing fails."""
        given = self.choice.given
        if not given.settings.failures_per_hour:
            return False
        whole, cut = (price(one.home, given, failures=False).cost for one in (single, self.best))
        return whole.makespan_s <= cut.makespan_s

    def _joined(self, writer: int, reader: int) -> Priced | None:
        """The plan with the two groups made one; None where that is not known."""
        if self.budget <= 0:
            return None
        given, home = self.choice.given, self.best.home
        self.budget -= len(home) + len(given.graph.datasets)
        if self.budget <= 0 or self._detour(writer, reader) or self._detour(reader, writer):
            return None
        kept = min(writer, reader)
        try:
            return price([kept if of in (writer, reader) else of for of in home], given)
        except DoesNotFit:
            return None

    def _detour(self, writer: int, reader: int) -> bool:
        """Whether the reader waits for a group in between."""
        edges = self.best.edges
        queue = [node for node in edges[writer] if node != reader]
        reached = set(queue)
        for node in queue:
            fresh = [after for after in edges[node] if after not in reached]
            reached.update(fresh)
            queue += fresh
        return reader in reached


def _beside(few: Home, best: Priced) -> dict[int, tuple[int, int]]:
    """For each group another that is one with it in ``few``, the fewest groups there can be."""
    alike: dict[int, list[int]] = {}
    for first in best.members:
        alike.setdefault(few[first], []).append(first)
    rows = [groups for groups in alike.values() if len(groups) > 1]
    return {one: (one, row[one == row[0]]) for row in rows for one in row}


def compared(choice: Choice, best: Priced) -> tuple[Compared, ...]:
    """The chosen grouping, then the runner-up and others by their costs."""
    others = sorted((cost, what) for what, cost in choice.compared.items() if what != choice.chosen)
    ranked = enumerate([(best.cost, choice.chosen), *others])
    return tuple(_compared(what, cost) for at, (cost, what) in ranked if at < TOLD or what in (FEWEST, PER_STEP))


def _compared(what: str, cost: Cost) -> Compared:
    """With no more than a plan can say: where failures never let a group end, it would take longer."""
    return Compared(
        what=what,
        makespan_s=min(cost.makespan_s, MOST_SECONDS),
        core_seconds=min(cost.core_seconds, MOST),
        spilled_bytes=cost.spilled,
        groups=cost.groups,
    )


def _text(rival: Cost, best: Cost, what: str) -> str:
    """What ``best`` saves against ``rival``."""
    if rival.makespan_s > best.makespan_s:
        return f"ends {duration(rival.makespan_s - best.makespan_s)} sooner than {what}"
    if rival.core_seconds > best.core_seconds:
        return f"ends with {what}, and holds {rival.core_seconds - best.core_seconds:.0f} core-seconds less"
    return f"ends no later than {what}"
