"""The solver's model of a dataflow: a bound for all plans, and the groups or the order it finds.

*All resident.* Each step has the start and the end of its group. Along a channel either both are equal (one
group), or the reader's group starts once the writer's has ended. A step holds its cores and memory all that
time, which is at least a start, its own runtime and its own cut datasets. No group is numbered, so there is
nothing symmetric to break, and no cycle to forbid: time runs one way.

    a ══> b ══> c      whole: S(a) = S(b), E(a) = E(b)      cut: S(c) >= E(b)

*Batch.* One application can do all that several can, so steps are scheduled one by one: each instance on its
cores, behind an application's start, with the gaps that forced cuts need. The order of the solver's schedule
is tried for the lists inside groups.

Both are relaxations: what the planner adds (containers on single workers, the least padding, the datasets of a
group one after another) only makes plans longer. One worker, a deterministic budget: equal facts, equal answers.
Needs the extra ``[exact]``; only imported when called.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.model.units import MIB
from airflow_dagsched.plan.costing.lower_bound import Gaps
from airflow_dagsched.plan.grouping.selection import Selection
from airflow_dagsched.plan.problem.partition import find_root, join_parts
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.resident.separation import list_kept_apart

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

TICKS = 200_000
"""The time of the heuristic plan in units of the solver."""
INSTANCES = 600
"""Instances of a batch dataflow that are scheduled one by one; beyond, the bound stays as it is."""
CONFLICTS = 40_000
"""Dead ends of the search: each takes longer the more it has learnt, which the deterministic budget hardly counts."""


class Found(Struct, frozen=True):
    """What the solver proves and finds."""

    bound_s: float
    group_of: tuple[int, ...] | None
    """The groups, all resident."""
    order: tuple[int, ...] | None
    """The order of starts, batch."""


def solve_model(selection: Selection, budget: float) -> Found | None:
    """None where there is nothing to solve: no steps, streaming and batch mixed, too many instances, proved already.

    ``budget``: deterministic seconds. Raises ``InvalidInput`` without the extra ``[exact]``.
    """
    problem = selection.problem
    streaming = problem.arrays.streaming
    if not streaming or selection.is_proved or any(streaming) != all(streaming):
        return None
    model = _Model.of(selection)
    if not any(streaming):
        if sum(step.parallelism for step in problem.graph.steps) > INSTANCES:
            return None
        return _solve_batch(model, budget)
    return _solve_resident(model, budget)


class _Model(Struct):
    """The solver's model under construction; time in ticks, rounded down, so that it stays a relaxation."""

    problem: Problem
    selection: Selection
    cp: Any
    horizon: int
    ticks: float
    """Ticks a second."""
    makespan: Any

    @classmethod
    def of(cls, selection: Selection) -> _Model:
        """An empty model that ends no later than the best plan so far, and no sooner than the bound."""
        try:
            from ortools.sat.python import cp_model
        except ImportError:
            raise InvalidInput("dagsched plan", "--exact", "needs the extra: airflow-dagsched[exact]") from None
        assert selection.best is not None
        ticks = TICKS / selection.best.cost.makespan_s
        cp = cp_model.CpModel()
        # At most the best plan's: so a solution is always an improvement, or that plan.
        makespan = cp.new_int_var(int(selection.bound.seconds * ticks), TICKS, "")
        cp.minimize(makespan)
        return cls(selection.problem, selection, cp, TICKS, ticks, makespan)

    def count_ticks(self, seconds: float) -> int:
        """Whole ticks."""
        # Down, never up: a model in which something takes longer would prove bounds that do not hold.
        return int(seconds * self.ticks)

    def add_moment(self, earliest: float = 0.0) -> Any:
        """A variable: some time from ``earliest`` (seconds) on."""
        return self.cp.new_int_var(min(self.count_ticks(earliest), self.horizon), self.horizon, "")

    def count_transfer_ticks(self, size: int) -> int:
        """Ticks to write or read so much."""
        return self.count_ticks(size / (self.problem.cluster.spill_mb_s * MIB))

    def pad_memory(self, memory_mb: int) -> int:
        """With the padding, at least."""
        # Without the least padding a container has: how many containers there are is not in the model.
        return int(memory_mb * (1 + self.problem.settings.padding_fraction))

    def run_solver(self, budget: float, *, interleave: bool) -> cp_model.CpSolver | None:
        """Solve, by several strategies in turn if ``interleave``; None where nothing was found, not even a bound."""
        from ortools.sat.python import cp_model

        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1  # several race each other: the answer would depend on who wins
        solver.parameters.interleave_search = interleave
        solver.parameters.random_seed = 0
        solver.parameters.max_deterministic_time = budget
        solver.parameters.max_number_of_conflicts = CONFLICTS
        status = solver.solve(self.cp)
        return solver if status in (cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.UNKNOWN) else None

    def has_solution(self, solver: cp_model.CpSolver) -> bool:
        """Whether there is a solution, not only a bound."""
        return len(solver.response_proto.solution) > 0

    def add_capacity_limits(self, intervals: list[Any], cores: list[int], memory: list[int]) -> None:
        """All of these find room on the cluster's workers taken together."""
        workers = self.problem.arrays.workers
        self.cp.add_cumulative(intervals, cores, self.problem.arrays.room.cores)
        if memory:
            self.cp.add_cumulative(intervals, memory, sum(worker.free_memory_mb for worker in workers))


class _Span(Struct, frozen=True):
    start: Any
    end: Any


def _add_tasks(model: _Model) -> dict[int, _Span]:
    """Ordinary tasks take their time and no room."""
    spans = {}
    graph = model.problem.graph
    for node in range(len(graph.steps), len(graph.ids)):
        start = model.add_moment()
        end = start + model.count_ticks(model.problem.arrays.runtime_s[node])
        model.cp.add(end <= model.makespan)
        spans[node] = _Span(start, end)
    return spans


def _solve_batch(model: _Model, budget: float) -> Found | None:
    spans = _add_tasks(model)
    intervals, cores, memory = _add_instances(model, spans)
    graph, gaps = model.problem.declared, Gaps(model.problem)
    for node, nexts in enumerate(graph.successors):
        for after in nexts:
            if graph.loop[node] != graph.loop[after]:
                gap = gaps.find_gap(graph.loop[node], graph.loop[after])
                model.cp.add(spans[after].start >= spans[node].end + model.count_ticks(gap or 0.0))
    single = all(need.cores == 1 for need in model.problem.arrays.needs)
    model.add_capacity_limits(intervals, cores, memory if single else [])
    # In turn, few instances take ten times the seconds that the budget counts, for the same bound.
    solver = model.run_solver(budget, interleave=False)
    if solver is None:
        return None
    order = (
        _sort_by_start(model, {node: solver.value(span.start) for node, span in spans.items()})
        if model.has_solution(solver)
        else None
    )
    return Found(solver.best_objective_bound / model.ticks, None, order)


def _add_instances(model: _Model, spans: dict[int, _Span]) -> tuple[list[Any], list[int], list[int]]:
    """Every instance of every step; adds the steps to ``spans``. Equal instances start in order."""
    problem, cp = model.problem, model.cp
    intervals, cores, memory = [], [], []
    for node, step in enumerate(problem.graph.steps):
        length, need = model.count_ticks(problem.arrays.runtime_s[node]), problem.arrays.needs[node]
        starts = [model.add_moment(problem.cluster.application_start_s) for _ in range(step.parallelism)]
        # Equal instances are interchangeable: one order of them is enough to look at.
        for one, other in pairwise(starts):
            cp.add(one <= other)
        intervals += [cp.new_fixed_size_interval_var(start, length, "") for start in starts]
        cores += [need.cores] * len(starts)
        memory += [model.pad_memory(need.memory_mb)] * len(starts)
        cp.add(starts[-1] + length <= model.makespan)
        spans[node] = _Span(starts[0], starts[-1] + length)
    return intervals, cores, memory


def _sort_by_start(model: _Model, starts: dict[int, int]) -> tuple[int, ...]:
    """All nodes by their starts, those above first."""
    place = {node: at for at, node in enumerate(model.selection.evaluator.start_order)}
    return tuple(sorted(starts, key=lambda node: (starts[node], place[node])))


def _solve_resident(model: _Model, budget: float) -> Found | None:
    problem, cp = model.problem, model.cp
    spans = _add_tasks(model)
    cuts = _Cuts(model, spans)
    moved = _add_transfers(model, cuts)
    intervals, cores, memory = [], [], []
    for unit, members in _list_units(problem).items():
        needs = [(problem.arrays.needs[node], problem.graph.steps[node].parallelism) for node in members]
        own = problem.cluster.application_start_s + max(problem.arrays.runtime_s[node] for node in members)
        length = spans[unit].end - spans[unit].start
        size = cp.new_int_var(model.count_ticks(own), model.horizon, "")
        cp.add(size == length)
        cp.add(size >= model.count_ticks(own) + sum(moved.get(unit, [])))
        cp.add(spans[unit].end <= model.makespan)
        intervals.append(cp.new_interval_var(spans[unit].start, size, spans[unit].end, ""))
        cores.append(sum(need.cores * count for need, count in needs))
        memory.append(model.pad_memory(sum(need.memory_mb * count for need, count in needs)))
    model.add_capacity_limits(intervals, cores, memory)
    cuts.add_hints()
    solver = model.run_solver(budget, interleave=True)
    if solver is None:
        return None
    group_of = cuts.group_of(solver) if model.has_solution(solver) else None
    return Found(solver.best_objective_bound / model.ticks, group_of, None)


def _list_units(problem: Problem) -> dict[int, list[int]]:
    """Steps that are never split, by the first of them."""
    units: dict[int, list[int]] = {}
    for node in range(len(problem.graph.steps)):
        units.setdefault(problem.graph.loop[node], []).append(node)
    return units


class _Cuts:
    """For each two neighbours whether they are cut; what is not cut starts and ends together."""

    def __init__(self, model: _Model, spans: dict[int, _Span]) -> None:
        self._model = model
        self._spans = spans
        problem, cp = model.problem, model.cp
        for unit in _list_units(problem):
            spans[unit] = _Span(model.add_moment(), model.add_moment(problem.cluster.application_start_s))
        self.cut: dict[tuple[int, int], Any] = {}
        gaps = Gaps(problem)
        loop = problem.graph.loop
        pairs = {(loop[node], loop[after]) for node, nexts in enumerate(problem.graph.successors) for after in nexts}
        for node, after in sorted(pair for pair in pairs if pair[0] != pair[1]):
            before, behind = spans[node], spans[after]
            if gaps.find_gap(node, after) is not None:
                cp.add(behind.start >= before.end)
                self.cut[node, after] = 1
                continue
            cut = self.cut[node, after] = cp.new_bool_var("")
            cp.add(behind.start >= before.end).only_enforce_if(cut)
            cp.add(behind.start == before.start).only_enforce_if(~cut)
            cp.add(behind.end == before.end).only_enforce_if(~cut)
        for unit, befores in enumerate(list_kept_apart(problem)):
            for one in befores:
                if loop[unit] != loop[one]:
                    cp.add(spans[loop[unit]].start >= spans[loop[one]].end)

    def add_hints(self) -> None:
        """Start from the best plan so far."""
        model, best = self._model, self._model.selection.best
        assert best is not None
        for node, span in best.spans.items():
            for unit in {model.problem.graph.loop[one] for one in best.members.get(node, [node])}:
                model.cp.add_hint(self._spans[unit].start, model.count_ticks(span.start_s))
        for (node, after), cut in self.cut.items():
            if not isinstance(cut, int):
                model.cp.add_hint(cut, int(best.group_of[node] != best.group_of[after]))

    def group_of(self, solver: cp_model.CpSolver) -> tuple[int, ...]:
        """The groups of a solution: what is joined by neighbours that are not cut."""
        parent = list(self._model.problem.graph.loop)
        for (node, after), cut in self.cut.items():
            if not isinstance(cut, int) and not solver.value(cut):
                join_parts(parent, node, after)
        return tuple(find_root(parent, node) for node in range(len(parent)))


def _add_transfers(model: _Model, cuts: _Cuts) -> dict[int, list[Any]]:
    """For each unit the times it takes to read and write its own datasets, where they are cut."""
    moved: dict[int, list[Any]] = {}
    loop = model.problem.graph.loop
    for dataset in model.problem.graph.datasets:
        src, time = loop[dataset.src], model.count_transfer_ticks(dataset.bytes)
        readers = sorted({loop[reader] for reader in dataset.readers} - {src})
        if not time or not readers:
            continue
        written = model.cp.new_bool_var("")
        moved.setdefault(src, []).append(time * written)
        for reader in readers:
            cut = cuts.cut[src, reader]
            model.cp.add(written >= cut)
            moved.setdefault(reader, []).append(time * cut)
    return moved
