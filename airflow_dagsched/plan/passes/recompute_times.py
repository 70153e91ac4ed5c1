"""Times of a plan whose containers have moved: a group that computes longer in them puts off all that starts after it.

planned    [ a ][ b ]          a has fewer cores than it was planned with: what started at its end or later
           [ c ]               starts that much later, what ran beside it (c) stays. So nothing that was apart
placed     [  a  ][ b ]        in time comes together, and what waits for others still starts after them.
           [ c ]
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from airflow_dagsched.model.graph import Graph
from airflow_dagsched.model.units import DIGITS
from airflow_dagsched.plan.costing.list_schedule import CorePool, GroupSchedule, schedule_in_slots
from airflow_dagsched.plan.needs import resolve_task_runtime
from airflow_dagsched.plan.plan_types import Group, Plan
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.settings import Settings


def recompute_times(plan: Plan, problem: Problem) -> Plan:
    """The plan with the times that its batch groups take in the containers they have, and its makespan."""
    groups = list(plan.groups)
    for at, group in enumerate(plan.groups):
        # A resident group takes as long as its longest step, wherever it is.
        if group.residency == "slots" and group.containers:
            # On the list as it has become: earlier groups may have put this one off.
            groups = _replace_times(groups, at, problem)
    return retime_plan(plan, groups, problem.declared, problem.settings)


def retime_plan(plan: Plan, groups: Sequence[Group], graph: Graph, settings: Settings) -> Plan:
    """The plan with these groups, and with the makespan, bound and gap that follow."""
    makespan = round(_find_last_end(groups, graph, settings), DIGITS)
    # The bound is of all instances; without those that were trimmed the plan may end sooner.
    bound = min(plan.lower_bound_s, makespan)
    gap = round(makespan / bound - 1, DIGITS) if bound else 0.0
    return replace(plan, groups=tuple(groups), makespan_s=makespan, lower_bound_s=bound, gap=gap)


def _list_running(group: Group, problem: Problem) -> list[int]:
    nodes = map(problem.graph.index.__getitem__, group.steps)
    return [node for node in nodes if node not in problem.exclusions.idle_steps]


def _schedule_in_containers(group: Group, nodes: Sequence[int], problem: Problem) -> GroupSchedule:
    containers, steps = group.containers, [problem.graph.steps[node] for node in nodes]
    lanes = [
        sum(
            container.cores // step.cores
            for container in containers
            if not step.pinned or container.worker in step.pinned
        )
        for step in steps
    ]
    pool = CorePool(sum(container.cores for container in containers), lanes)
    return schedule_in_slots(nodes, problem, group.slots, pool)


def _replace_times(groups: list[Group], at: int, problem: Problem) -> list[Group]:
    """All groups, the one at ``at`` timed in the containers it has; what is after it is put off, never drawn in."""
    group, nodes = groups[at], _list_running(groups[at], problem)
    schedule = _schedule_in_containers(group, nodes, problem)
    compute = round(schedule.compute_s, DIGITS)
    # Negative where it computes sooner: the group ends earlier, but nobody is drawn in, for others may have the room.
    late = round(compute - group.time.compute, DIGITS)
    changed = replace(
        group,
        end_s=round(group.end_s + late, DIGITS),
        finish_spread_s=round(schedule.spread_s, DIGITS),
        begins=schedule.name_begins([problem.graph.ids[node] for node in nodes]),
        time=replace(group.time, compute=compute),
    )
    found = groups if late <= 0 else [_put_off(other, group.end_s, late) for other in groups]
    return [changed if other.id == group.id else other for other in found]


def _put_off(group: Group, end_s: float, late: float) -> Group:
    if group.start_s < end_s:
        return group
    # All by the same amount: so what was apart in time stays apart, and capacity holds without a look at it.
    return replace(group, start_s=round(group.start_s + late, DIGITS), end_s=round(group.end_s + late, DIGITS))


def _find_last_end(groups: Sequence[Group], graph: Graph, settings: Settings) -> float:
    """Of the groups, and of the ordinary tasks as early as these can end."""
    ends = {step: group.end_s for group in groups for step in group.steps}
    tasks = {graph.index[task.id]: task for task in graph.dataflow.tasks}
    end = [ends.get(name, 0.0) for name in graph.ids]
    for node in graph.order:
        if node in tasks:
            # In topological order: whatever is above the task has handed its end down already.
            end[node] += resolve_task_runtime(tasks[node], settings)
        for after in graph.successors[node]:
            if after in tasks:
                end[after] = max(end[after], end[node])
    return max([*end, *(group.end_s for group in groups)], default=0.0)
