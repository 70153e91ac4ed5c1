"""The proof: a schedule and a lower bound from CP-SAT, to measure the planner's own schedules by.

Needs the extra ``[exact]``, loaded when a schedule is asked for. One worker with a deterministic limit gives
the same answer on every machine; ``interleave_search`` lets that one worker take turns at what several
would do side by side, without which its lower bounds are weak. The schedule to start from is the hint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_dagsched.plan.rcpsp.project import Project
from airflow_dagsched.plan.rcpsp.schedule import Schedule

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel, IntVar

WORK = 10.0
"""Default limit in CP-SAT's deterministic time, in which one unit is about a second of a processor."""


def solve_exactly(project: Project, hint: Schedule, *, work: float = WORK) -> Schedule:
    """A schedule no longer than ``hint``, and the best lower bound found within ``work``; equal if proved.

    Raises ``ModuleNotFoundError`` without the extra ``[exact]``.
    """
    if hint.makespan == hint.lower_bound:
        return hint
    from ortools.sat.python.cp_model import CpModel

    model = CpModel()
    starts = _add_starts(model, project, hint)
    end = _add_constraints(model, project, starts, hint)
    model.minimize(end)
    return _run_solver(model, starts, hint, work)


def _add_starts(model: CpModel, project: Project, hint: Schedule) -> list[IntVar]:
    """Start times that leave room for the activity within the makespan of the hint."""
    found = []
    for at, (duration, start) in enumerate(zip(project.durations, hint.starts, strict=True)):
        # No later than in the hint: whatever the solver returns is no longer.
        found.append(model.new_int_var(0, hint.makespan - duration, f"start {at}"))
        model.add_hint(found[at], start)
    return found


def _add_constraints(model: CpModel, project: Project, starts: list[IntVar], hint: Schedule) -> IntVar:
    """Order and resources; returns the makespan."""
    end = model.new_int_var(hint.lower_bound, hint.makespan, "makespan")
    spans = []
    for start, duration, nexts in zip(starts, project.durations, project.successors, strict=True):
        spans.append(model.new_fixed_size_interval_var(start, duration, ""))
        model.add(start + duration <= end)
        for after in nexts:
            model.add(start + duration <= starts[after])
    for kind, capacity in enumerate(project.capacities):
        # Fewer intervals in a cumulative, faster propagation.
        users = [at for at, demand in enumerate(project.demands) if demand[kind] and project.durations[at]]
        model.add_cumulative([spans[at] for at in users], [project.demands[at][kind] for at in users], capacity)
    return end


def _run_solver(model: CpModel, starts: list[IntVar], hint: Schedule, work: float) -> Schedule:
    """The solver's schedule if it found one; what it knows of the bound in any case."""
    from ortools.sat.python.cp_model import FEASIBLE, OPTIMAL, CpSolver

    solver = CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.interleave_search = True
    solver.parameters.random_seed = 0
    solver.parameters.max_deterministic_time = work
    found = solver.solve(model) in (OPTIMAL, FEASIBLE)
    bound = max(hint.lower_bound, round(solver.best_objective_bound))  # a float, of a whole number
    if not found:
        return Schedule(hint.starts, hint.makespan, bound)
    return Schedule(tuple(solver.value(start) for start in starts), round(solver.objective_value), bound)
