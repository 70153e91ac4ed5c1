"""Why groups that could be one are not: together they would not fit, or end later. And what was compared."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType, field

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.model.ranges import MOST_PLANNED
from airflow_dagsched.plan.costing.evaluated_grouping import Cost, EvaluatedGrouping, GroupOf
from airflow_dagsched.plan.grouping.candidates import COARSEST, FEWEST, PER_STEP
from airflow_dagsched.plan.grouping.reasons import Reasons
from airflow_dagsched.plan.grouping.selection import Selection
from airflow_dagsched.plan.plan_types import Compared
from airflow_dagsched.plan.reasons.grouping import ApartFrom, CutReason, GroupReason, Saving, TogetherTooLarge

SIMULATED = 6_000
"""Steps and edges that may be simulated to tell what single cuts save; beyond, the whole grouping is compared."""
TOLD = 8
"""Kinds of groupings that are told, the best first; and of the others those that anybody would think of."""


class Savings(Struct):
    """Reasons of the chosen grouping."""

    selection: Selection
    best: EvaluatedGrouping
    forced: Reasons
    neighbour: dict[int, tuple[int, int]]
    """For each group two that nothing forces apart: itself and one it hands rows to, or takes them from, else any."""
    budget: int = SIMULATED
    known: dict[tuple[int, int], CutReason] = field(default_factory=dict)
    whole: CutReason | None = None
    """What the grouping as a whole saves; None: not worked out yet."""

    @classmethod
    def of(cls, selection: Selection, best: EvaluatedGrouping, forced: Reasons) -> Savings:
        """Look at every cut once."""
        neighbour: dict[int, tuple[int, int]] = {}
        group_of = best.group_of
        for dataset in selection.problem.graph.datasets:
            here = group_of[dataset.src]
            for reader in dataset.readers:
                there = group_of[reader]
                if there != here and not forced.is_forced(dataset.src, reader):
                    pair = here, there
                    neighbour.setdefault(here, pair)
                    neighbour.setdefault(there, pair)
        if len(best.members) > 1:
            # A group without a cut channel is explained against one that it could have shared: the right side wins.
            neighbour = _find_beside(selection.find_fewest()[1], best) | neighbour
        return cls(selection, best, forced, neighbour)

    def explain_cut(self, src: int, dst: int) -> CutReason:
        """Why the channel between two steps is cut."""
        return self.forced.find_force(src, dst) or self._explain_pair(self.best.group_of[src], self.best.group_of[dst])

    def explain_group(self, first: int) -> GroupReason:
        """Why the steps of a group are one, or no more than these."""
        if first not in self.neighbour:
            return self.forced.explain_group(self.best.members[first], is_only=len(self.best.members) == 1)
        pair = self.neighbour[first]
        other = pair[0] if pair[1] == first else pair[1]
        return ApartFrom(f"launch_{self.selection.problem.graph.ids[other]}", self._explain_pair(*pair))

    def _explain_pair(self, writer: int, reader: int) -> CutReason:
        if (writer, reader) not in self.known:
            self.known[writer, reader] = self._find_limit(writer, reader) or self._find_profit(writer, reader)
        return self.known[writer, reader]

    def _find_limit(self, writer: int, reader: int) -> CutReason | None:
        """What keeps the two from being one group."""
        evaluator, members = self.selection.evaluator, self.best.members
        limit = self.forced.find_limit(members[writer], members[reader])
        # Without budget nothing is sized any more: the reason is then that of the whole grouping.
        if limit or self.budget <= 0:
            return limit
        both = {*members[writer], *members[reader]}
        try:
            self.budget -= len(both)
            evaluator.size_group("of both", [node for node in evaluator.start_order if node in both])
        except DoesNotFit as refusal:
            return TogetherTooLarge(refusal)
        return None

    def _find_profit(self, writer: int, reader: int) -> CutReason:
        single = self._evaluate_joined(writer, reader)
        if single is not None:
            is_checkpoint = self._is_only_for_failures(single)
            return self._measure(single.cost, "one group of both", is_checkpoint=is_checkpoint)
        self.whole = self.whole or self._explain_grouping()
        return self.whole

    def _explain_grouping(self) -> CutReason:
        rivals = [(cost, what) for what, cost in self.selection.costs.items() if what in (COARSEST, FEWEST)]
        if not rivals or min(rivals)[0] == self.best.cost:
            return "too large"
        cost, kind = min(rivals)
        return self._measure(cost, kind, is_whole=True)

    def _measure(self, rival: Cost, kind: str, *, is_checkpoint: bool = False, is_whole: bool = False) -> Saving:
        """What the chosen grouping saves against ``rival``."""
        best, is_by_regret = self.best.cost, bool(self.selection.regrets)
        seconds, core_seconds = rival.makespan_s - best.makespan_s, rival.core_seconds - best.core_seconds
        return Saving(kind, seconds, core_seconds, rival.groups - best.groups, is_checkpoint, is_whole, is_by_regret)

    def _is_only_for_failures(self, single: EvaluatedGrouping) -> bool:
        """Whether the cut ends nothing sooner if nothing fails."""
        evaluator = self.selection.evaluator
        if not evaluator.problem.settings.failures_per_hour:
            return False
        whole, cut = (evaluator.evaluate_grouping(one.group_of, failures=False).cost for one in (single, self.best))
        return whole.makespan_s <= cut.makespan_s

    def _evaluate_joined(self, writer: int, reader: int) -> EvaluatedGrouping | None:
        """The plan with the two groups made one; None where that is not known."""
        if self.budget <= 0:
            return None
        problem, group_of = self.selection.problem, self.best.group_of
        self.budget -= len(group_of) + len(problem.graph.datasets)
        # With a group in between, the two as one would wait for it, and it for them.
        if self.budget <= 0 or self._has_detour(writer, reader) or self._has_detour(reader, writer):
            return None
        kept = min(writer, reader)
        try:
            return self.selection.evaluator.evaluate_grouping(
                [kept if of in (writer, reader) else of for of in group_of]
            )
        except DoesNotFit:
            return None

    def _has_detour(self, writer: int, reader: int) -> bool:
        """Whether the reader waits for a group in between."""
        edges = self.best.edges
        queue = [node for node in edges[writer] if node != reader]
        reached = set(queue)
        for node in queue:
            fresh = [after for after in edges[node] if after not in reached]
            reached.update(fresh)
            queue += fresh
        return reader in reached


def _find_beside(few: GroupOf, best: EvaluatedGrouping) -> dict[int, tuple[int, int]]:
    """For each group another that is one with it in ``few``, the fewest groups there can be."""
    alike: dict[int, list[int]] = {}
    for first in best.members:
        alike.setdefault(few[first], []).append(first)
    rows = [groups for groups in alike.values() if len(groups) > 1]
    return {one: (one, row[one == row[0]]) for row in rows for one in row}


def list_compared(selection: Selection, best: EvaluatedGrouping) -> tuple[Compared, ...]:
    """The chosen grouping, then the runner-up and others by their costs."""
    others = sorted((cost, what) for what, cost in selection.costs.items() if what != selection.best_kind)
    ranked = enumerate([(best.cost, selection.best_kind), *others])
    return tuple(
        _describe_cost(what, cost, selection.regrets.get(what, UNSET))
        for at, (cost, what) in ranked
        if at < TOLD or what in (FEWEST, PER_STEP)
    )


def _describe_cost(what: str, cost: Cost, regret: float | UnsetType) -> Compared:
    """With no more than a plan can say: where failures never let a group end, it would take longer."""
    return Compared(
        what=what,
        makespan_s=min(cost.makespan_s, MOST_PLANNED),
        core_seconds=min(cost.core_seconds, MOST_PLANNED),
        spilled_bytes=cost.spilled_bytes,
        groups=cost.groups,
        regret=regret,
    )
