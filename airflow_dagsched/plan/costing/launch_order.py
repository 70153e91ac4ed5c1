"""In which order groups that wait for room are launched, where the longest remaining path first is not the best.

    two workers, launches of 11, 11, 10, 10 and 10 s

    longest first   w1 ▐aaaaaaaaaaa▌▐cccccccccc▌▐eeeeeeeeee▌   31 s
                    w2 ▐bbbbbbbbbbb▌▐dddddddddd▌
    searched        w1 ▐aaaaaaaaaaa▌▐bbbbbbbbbbb▌
                    w2 ▐cccccccccc▌▐dddddddddd▌▐eeeeeeeeee▌    30 s

The groups are the activities of a project (see ``rcpsp``) whose resources are all cores and all memory together.
What its schedule is worth on single workers, and with the room for spills, the time line says: only the
order is taken over, and only where the plan then ends sooner. Of few groups all orders are tried on the time line
itself (see ``launch_enumeration``). The effort is counted, so equal plans get equal orders.
"""

from __future__ import annotations

from collections.abc import Iterator

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.model.units import DIGITS
from airflow_dagsched.plan.costing.capacity import FreeCapacity
from airflow_dagsched.plan.costing.evaluated_grouping import EvaluatedGrouping, find_ready_times
from airflow_dagsched.plan.costing.evaluator import Evaluator
from airflow_dagsched.plan.costing.launch_enumeration import Tree, search_orders
from airflow_dagsched.plan.costing.timeline import measure_job_tails
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.rcpsp.project import Project
from airflow_dagsched.plan.rcpsp.schedule import scale_seconds, schedule

EFFORT = 10_000
"""Launches placed while searching."""
MOST = 300
"""Groups and ordinary tasks; of more, the longest remaining path decides."""
FEW = 10
"""Of no more, all orders are tried, as far as ``MOMENTS`` go."""
MOMENTS = 1_000
"""Looked at, on the time line, of all orders together: some hundredths of a second."""


def search_launch_order(
    evaluated: EvaluatedGrouping, evaluator: Evaluator, *, failures: bool = True
) -> EvaluatedGrouping:
    """The same groups, launched in the order that ends first; ``failures`` as ``evaluated`` was evaluated."""
    best = evaluated
    # If no group waits for room, each starts as early as it can: no order is better.
    if len(evaluated.spans) > MOST or not _has_waiting_groups(evaluated):
        return best
    soonest = bound_launches(evaluated, evaluator.problem)
    for turns in _list_orders(evaluated, evaluator.problem):
        # The bound is met: no other order of these groups ends sooner.
        if best.cost.makespan_s <= soonest:
            break
        try:
            other = evaluator.evaluate_grouping(evaluated.group_of, failures=failures, turns=turns)
        # Room for spills may get stuck in one order and not in another.
        except DoesNotFit:
            continue
        best = min(best, other, key=lambda one: one.cost)
    return best


def bound_launches(evaluated: EvaluatedGrouping, problem: Problem) -> float:
    """Seconds in which these groups end at least, in whatever order: by their longest path, and by what they hold."""
    cores, memory = problem.arrays.room.cores, problem.arrays.room.memory_mb
    held = [(shape, evaluated.jobs[first].seconds) for first, shape in evaluated.shapes.items()]
    path = max(measure_job_tails(evaluated.jobs, evaluated.edges).values(), default=0.0)
    by_cores = sum(shape.held_cores * seconds for shape, seconds in held) / max(1, cores)
    by_memory = sum(shape.memory_mb * len(shape.workers) * seconds for shape, seconds in held) / max(1, memory)
    return round(max(path, by_cores, by_memory), DIGITS)


def search_all_orders(evaluated: EvaluatedGrouping, problem: Problem, sooner_than: float, moments: int) -> Tree | None:
    """All orders of launches, as far as so many ``moments`` go; None where room for spills decides, too.

    ``sooner_than``: seconds; an order that ends no sooner is not told.
    """
    # The enumeration knows nothing of spills: what it calls best might not even be possible.
    if problem.cluster.spill_mb is not None:
        return None
    free = FreeCapacity(problem.arrays.workers, problem.settings.applications)
    return search_orders(evaluated.jobs, evaluated.edges, free, (sooner_than, moments))


def _list_orders(evaluated: EvaluatedGrouping, problem: Problem) -> Iterator[dict[int, int]]:
    """Orders worth a try: for each group and task its turn."""
    tree = (
        search_all_orders(evaluated, problem, evaluated.cost.makespan_s, MOMENTS)
        if len(evaluated.spans) <= FEW
        else None
    )
    if tree is not None and tree.turns is not None:
        yield tree.turns
    if tree is None or not tree.complete:
        nodes = sorted(evaluated.spans)
        starts = schedule(_make_project(evaluated, problem, nodes), effort=EFFORT).starts
        order = sorted(range(len(nodes)), key=lambda at: (starts[at], nodes[at]))
        yield {nodes[at]: turn for turn, at in enumerate(order)}


def _has_waiting_groups(evaluated: EvaluatedGrouping) -> bool:
    """Else the longest path decides, whatever the order."""
    ready = find_ready_times(evaluated)
    return any(span.start_s > ready[node] for node, span in evaluated.spans.items())


def _make_project(evaluated: EvaluatedGrouping, problem: Problem, nodes: list[int]) -> Project:
    """Ordinary tasks hold nothing."""
    place = {node: at for at, node in enumerate(nodes)}
    shapes = [evaluated.shapes.get(node) for node in nodes]
    return Project(
        durations=scale_seconds([evaluated.jobs[node].seconds for node in nodes]),
        demands=tuple((one.held_cores, one.memory_mb * len(one.workers)) if one else (0, 0) for one in shapes),
        successors=tuple(tuple(place[after] for after in evaluated.edges[node]) for node in nodes),
        capacities=(problem.arrays.room.cores, problem.arrays.room.memory_mb),
    )
