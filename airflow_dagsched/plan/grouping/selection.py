"""The best grouping so far, what it has been compared with, and how much may still be looked at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct, field

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.plan.costing.evaluated_grouping import Cost, EvaluatedGrouping
from airflow_dagsched.plan.costing.evaluator import Evaluator
from airflow_dagsched.plan.costing.launch_order import MOST, bound_launches, search_launch_order
from airflow_dagsched.plan.costing.lower_bound import LowerBound
from airflow_dagsched.plan.grouping.coarsest import find_fewest
from airflow_dagsched.plan.grouping.front import WITHIN, Found, Front
from airflow_dagsched.plan.grouping.stages import Stages
from airflow_dagsched.plan.problem.problem import Problem

FINALISTS = 3
"""Runners-up, besides those that have to be compared, of which the order of launches is searched."""
MANY = 200
"""Steps; of more, orders of launches are searched only for what could save at least"""
WORTH = 0.02
"""of the time."""
CLOSE = 0.002  # 2 s of 1,000: less than runtimes are known to
"""A plan this close to the bound, as a share of it, is as good as any."""


class Candidate(NamedTuple):
    """A grouping that may be evaluated."""

    kind: str
    group_of: Sequence[int]
    effort: int = 0
    """Steps and edges that could have been simulated in the time it took to find it."""


class Selection(Struct):
    """The best grouping so far, and what it has been compared with."""

    evaluator: Evaluator
    bound: LowerBound
    budget: int
    """Steps and edges that may still be simulated."""
    stages: Stages
    """Of the coarsest groups."""
    best: EvaluatedGrouping | None = None
    best_kind: str = ""
    costs: dict[str, Cost] = field(default_factory=dict)
    """The best of each kind, without the best grouping's where it is the same grouping."""
    groupings: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Which grouping that is."""
    regrets: dict[str, float] = field(default_factory=dict)
    """By kind, as a share: how much later than the soonest its best ends over runtimes that may be the true ones.
    Empty: the best was chosen by its cost."""
    refusal: DoesNotFit | None = None
    seen: set[tuple[int, ...]] = field(default_factory=set)
    anchors: set[tuple[int, ...]] = field(default_factory=set)
    """Groupings than which the plan must not be worse."""
    finalists: list[tuple[str, EvaluatedGrouping]] = field(default_factory=list)
    """The best few, and the anchors, by their costs: the order of their launches is still to be searched."""
    front: Front = field(default_factory=Front)
    """Of all that have been evaluated those that no other beats, with the order in which each starts its steps."""
    few: tuple[Stages, list[int]] | None = None
    """Once asked for: see ``find_fewest``."""

    @property
    def problem(self) -> Problem:
        """What is grouped."""
        return self.evaluator.problem

    def find_fewest(self) -> tuple[Stages, list[int]]:
        """As few groups as the rules allow: what forces them apart, and the group of each node."""
        if self.few is None:
            self.few = find_fewest(self.problem.graph, self.problem.rules)
        return self.few

    @property
    def is_open(self) -> bool:
        """Whether there may be a better one, and it may be looked for."""
        return self.budget > 0 and not self.is_proved

    @property
    def is_proved(self) -> bool:
        """Whether none can end much sooner."""
        return self.best is not None and self.best.cost.makespan_s <= self.bound.seconds * (1 + CLOSE)

    def has_seen(self, group_of: Sequence[int]) -> bool:
        """Whether a grouping has been evaluated, or refused."""
        return tuple(group_of) in self.seen

    def evaluate_grouping(self, kind: str, group_of: Sequence[int]) -> EvaluatedGrouping | None:
        """Evaluate a grouping and keep it if it is the best; None if it does not fit or has been seen."""
        key = tuple(group_of)
        # Different ways of searching come upon the same groupings: each costs once.
        if key in self.seen:
            return None
        self.seen.add(key)
        evaluated = self.price_grouping(group_of)
        if evaluated is not None:
            self.keep_if_better(kind, evaluated)
            self._remember_finalist(kind, evaluated)
        return evaluated

    def price_grouping(self, group_of: Sequence[int]) -> EvaluatedGrouping | None:
        """What a grouping would take, without keeping it; None if it does not fit."""
        # Counted before it is known whether it fits: a refusal takes time as well.
        self.budget -= len(group_of) + len(self.problem.graph.datasets)
        try:
            return self.evaluator.evaluate_grouping(group_of)
        except DoesNotFit as refusal:
            self.refusal = refusal
            return None

    def evaluate_all(self, candidates: Iterator[Candidate]) -> None:
        """Evaluate these while that may help."""
        while self.may_change():
            candidate = next(candidates, None)
            if candidate is None:
                return
            self.budget -= candidate.effort
            self.evaluate_grouping(candidate.kind, candidate.group_of)

    def decide_launch_orders(self) -> None:
        """Keep that finalist which ends first once each launches its groups in the best order."""
        if self.best is None:
            return
        many = len(self.problem.graph.steps) > MANY
        for kind, evaluated in self.finalists:
            # If its best conceivable order is no better than the best plan, none is searched.
            soonest_s = bound_launches(evaluated, self.problem)
            worth_s = self.best.cost.makespan_s * (1 - WORTH * many)
            # The best itself is searched in any case, as long as steps are few: its order is launched.
            if soonest_s < worth_s or (evaluated is self.best and not many):
                self.keep_if_better(kind, search_launch_order(evaluated, self.evaluator))
        self.finalists = []

    def keep_if_better(self, kind: str, evaluated: EvaluatedGrouping) -> None:
        """Compare a grouping, and keep it if it is the best."""
        if kind not in self.costs or evaluated.cost < self.costs[kind]:
            self.costs[kind], self.groupings[kind] = evaluated.cost, tuple(evaluated.group_of)
        self.front.keep_if_unbeaten(Found(kind, evaluated, self.evaluator))
        if self.best is None or evaluated.cost < self.best.cost:
            self.best, self.best_kind = evaluated, kind

    def may_change(self) -> bool:
        """Whether others may help, and may be looked at."""
        return self.is_open and self.may_gain()

    def _remember_finalist(self, kind: str, evaluated: EvaluatedGrouping) -> None:
        """Where the order of launches is searched at all."""
        if len(evaluated.spans) > MOST:
            return
        self.finalists.append((kind, evaluated))
        self.finalists.sort(key=lambda finalist: finalist[1].cost)
        rivals = [finalist for finalist in self.finalists if tuple(finalist[1].group_of) not in self.anchors]
        # Anchors stay, however dear: no plan may end later than the best order of any of them.
        if len(rivals) > FINALISTS:
            self.finalists.remove(rivals[-1])

    def is_within(self, seconds: float) -> bool:
        """Whether the best ends about then, or before: a grouping that did would be taken only for fewer groups."""
        return self.best is not None and self.best.cost.makespan_s <= seconds * (1 + WITHIN)

    def may_gain(self) -> bool:
        """Not if it is one batch group that lacks nothing, or has all cores: no other has more, and all start more."""
        best, problem = self.best, self.problem
        if best is None or len(best.members) != 1 or len(best.group_of) > len(problem.graph.steps):
            return True
        shape = next(iter(best.shapes.values()))
        # What is resident holds all it needs to the end: in several groups it may hold less.
        if shape.residency == "all":
            return True
        if any(need.cores > 1 for need in problem.arrays.needs) and shape.schedule.compute_s > max(
            problem.arrays.tail_s
        ):
            return True  # Cores of a container are left over that another one could use.
        whole = shape.held_cores >= problem.arrays.room.cores
        # Neither cores nor memory nor slots hold it up: then only its longest path does, which no cut shortens.
        return not whole and (bool(shape.short_of) or shape.schedule.steps >= problem.settings.slots)
