"""A tiny dataflow solved by trying all there is: groupings, lists inside groups, orders of launches.

    a ══> b      {a b c d}   {a b c} {d}   {a b} {c d}   ...   15 ways to part four steps, 14 without a cycle
    c ══> d      each group: the lists in which its steps can start, those that no other beats
                 each grouping: the orders in which its groups can be launched

*Lists.* A group's time and size depend on the list of its steps alone, so all lists are tried once a group; kept
are the planner's own and those of which no other is as soon with as few, as small containers. *Groupings* are priced
by the one cost model. *Launches* are searched (see ``launch_enumeration``) where that might end sooner than the best.

Where no budget cut that short, the best is the optimum of the model: a group is as large as the planner makes it for
one of these lists, and what finds room is launched. Counted, not timed: equal facts, equal plans.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, product

from msgspec import Struct, field

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.plan.costing.evaluated_grouping import EvaluatedGrouping
from airflow_dagsched.plan.costing.evaluator import Evaluator
from airflow_dagsched.plan.costing.executor_shape import ExecutorShape
from airflow_dagsched.plan.costing.launch_order import bound_launches, search_all_orders, search_launch_order
from airflow_dagsched.plan.grouping.proposals.all_groupings import list_groupings, list_units
from airflow_dagsched.plan.problem.problem import Problem

UNITS = 8
"""Steps, those that are never split as one; of eight there are 4,140 groupings."""
LISTS = 14_000
"""Lists of steps that are tried in all."""
PRICED = 20_000
"""Groupings, each with its lists, that are priced."""
MOMENTS = 100_000
"""Of time lines that are looked at."""

List = tuple[int, ...]


class Solved(Struct, frozen=True):
    """The best plan there is, or at least that was found."""

    evaluated: EvaluatedGrouping
    evaluator: Evaluator
    """With the order in which the steps of its groups start."""
    tried: int
    """Groupings."""
    proved: bool
    """Whether no budget cut the search short, so that there is no better one."""


def solve_tiny_dataflow(evaluator: Evaluator, best: EvaluatedGrouping) -> Solved | None:
    """The best plan of a tiny dataflow, ``best`` if no other is better; None for a larger dataflow."""
    few = 0 < len(list_units(evaluator.problem)) <= UNITS
    return _Search(evaluator, best, evaluator).run() if few else None


class _Search(Struct):
    evaluator: Evaluator
    best: EvaluatedGrouping
    best_evaluator: Evaluator
    lists: dict[List, list[List]] = field(default_factory=dict)
    """By the steps of a group: see ``_list_unbeaten``."""
    lists_left: int = LISTS
    prices_left: int = PRICED
    moments_left: int = MOMENTS
    tried: int = 0
    complete: bool = True

    def run(self) -> Solved:
        """Price first, search launches from the most promising on."""
        promising = []
        for evaluated, evaluator in self.list_candidates():
            self.keep_if_better(evaluated, evaluator)
            if self.may_improve(evaluated):
                promising.append((evaluated, evaluator))
        # The dearer a grouping, the sooner the bound drops it: the best so far only falls.
        for evaluated, evaluator in sorted(promising, key=lambda one: one[0].cost):
            if self.may_improve(evaluated):  # asked again: the best has fallen meanwhile
                self.search_launches(evaluated, evaluator)
        return Solved(self.best, self.best_evaluator, self.tried, self.complete)

    def keep_if_better(self, evaluated: EvaluatedGrouping, evaluator: Evaluator) -> None:
        if evaluated.cost < self.best.cost:
            self.best, self.best_evaluator = evaluated, evaluator

    def may_improve(self, evaluated: EvaluatedGrouping) -> bool:
        """Whether some order of launches might end sooner than the best."""
        return bound_launches(evaluated, self.evaluator.problem) < self.best.cost.makespan_s

    def list_candidates(self) -> Iterator[tuple[EvaluatedGrouping, Evaluator]]:
        """Every grouping with every choice of lists, priced."""
        for group_of in list_groupings(self.evaluator.problem):
            self.tried += 1
            groups = [self.get_lists(tuple(steps)) for steps in self.evaluator.list_members(group_of).values()]
            for lists in product(*groups):
                if not self.prices_left:
                    self.complete = False
                    return
                self.prices_left -= 1
                evaluator = _apply_lists(self.evaluator, lists)
                try:
                    evaluated = evaluator.evaluate_grouping(group_of)
                except DoesNotFit:
                    continue
                # In the cores that a group has beside others another list may be the best.
                self.complete &= _is_sized_alone(evaluated, evaluator)
                yield evaluated, evaluator

    def search_launches(self, evaluated: EvaluatedGrouping, evaluator: Evaluator) -> None:
        """Search all orders of launches; where room for spills decides, too, those that are searched anyway."""
        tree = search_all_orders(evaluated, evaluator.problem, self.best.cost.makespan_s, self.moments_left)
        if tree is None:
            self.complete = False
            self.keep_if_better(search_launch_order(evaluated, evaluator), evaluator)
            return
        self.moments_left = tree.left
        self.complete &= tree.complete
        if tree.turns is not None:
            self.keep_if_better(evaluator.evaluate_grouping(evaluated.group_of, turns=tree.turns), evaluator)

    def get_lists(self, steps: List) -> list[List]:
        """The lists in which a group of these steps is priced; none where it does not fit."""
        if steps not in self.lists:
            self.lists[steps] = self._list_unbeaten(steps)
        return self.lists[steps]

    def _list_unbeaten(self, steps: List) -> list[List]:
        """The planner's list, and those that no other beats."""
        found: dict[tuple[float, ...], List] = {}
        for one in _list_extensions(steps, self.evaluator.problem):
            if not self.lists_left:
                self.complete = False
                break
            self.lists_left -= 1
            try:
                # Of equal ones the first, which is the planner's own if it is among them.
                found.setdefault(_measure_shape(self.evaluator.size_group("of all", one)), one)
            except DoesNotFit:
                continue
        return [
            one for size, one in found.items() if one == steps or not any(_is_better(other, size) for other in found)
        ]


def _apply_lists(evaluator: Evaluator, lists: Sequence[List]) -> Evaluator:
    """With the steps in the order of these lists; what is known of shapes stays."""
    graph = evaluator.problem.graph
    tasks = range(len(graph.steps), len(graph.ids))
    return evaluator.reorder_starts((*chain.from_iterable(lists), *tasks))


def _is_sized_alone(evaluated: EvaluatedGrouping, evaluator: Evaluator) -> bool:
    """Whether no group has fewer cores than it could use."""
    return all(
        evaluated.shapes[first] == evaluator.size_group("of all", steps) for first, steps in evaluated.members.items()
    )


def _list_extensions(steps: List, problem: Problem) -> Iterator[List]:
    """All lists of these steps, the given one first; what leads back in a loop does not count."""
    place = {node: at for at, node in enumerate(steps)}
    above: dict[int, set[int]] = {node: set() for node in steps}
    for node in steps:
        for after in problem.graph.successors[node]:
            if place.get(after, -1) > place[node]:
                above[after].add(node)

    def extended(done: List) -> Iterator[List]:
        if len(done) == len(steps):
            yield done
        for node in steps:
            if node not in done and above[node] <= set(done):
                yield from extended((*done, node))

    return extended(())


def _measure_shape(shape: ExecutorShape) -> tuple[float, ...]:
    disk = max(shape.disk_mb, default=0)
    return shape.schedule.compute_s, len(shape.workers), shape.cores, shape.memory_mb, disk


def _is_better(other: tuple[float, ...], size: tuple[float, ...]) -> bool:
    return other != size and all(one <= than for one, than in zip(other, size, strict=True))
