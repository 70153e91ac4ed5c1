"""Times of a plan whose containers have moved: a group that computes longer in them puts off all that starts after it.

planned    [ a ][ b ]          a has fewer cores than it was planned with: what started at its end or later
           [ c ]               starts that much later, what ran beside it (c) stays. So nothing that was apart
placed     [  a  ][ b ]        in time comes together, and what waits for others still starts after them.
           [ c ]
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from airflow_dagsched.plan.cost import DIGITS
from airflow_dagsched.plan.given import Given
from airflow_dagsched.plan.inside import Inside, Pool, in_slots
from airflow_dagsched.plan.needs import task_runtime_of
from airflow_dagsched.plan.values import Group, Plan


def timed(made: Plan, given: Given) -> Plan:
    """The plan with the times that its batch groups take in the containers they have, and its makespan."""
    groups = list(made.groups)
    for at, group in enumerate(made.groups):
        if group.residency == "slots" and group.containers:
            groups = _with_inside(groups, at, _inside(group, given))
    makespan = round(_last_end(groups, given), DIGITS)
    bound = min(made.lower_bound_s, makespan)
    gap = round(makespan / bound - 1, DIGITS) if bound else 0.0
    return replace(made, groups=tuple(groups), makespan_s=makespan, lower_bound_s=bound, gap=gap)


def _inside(group: Group, given: Given) -> Inside:
    nodes = [given.graph.index[name] for name in group.steps if given.graph.index[name] not in given.left.idle]
    boxes, steps = group.containers, [given.graph.steps[node] for node in nodes]
    lanes = [
        sum(box.cores // step.cores for box in boxes if not step.pinned or box.worker in step.pinned) for step in steps
    ]
    pool = Pool(sum(box.cores for box in boxes), lanes)
    return in_slots(nodes, given, group.slots, pool)


def _with_inside(groups: list[Group], at: int, inside: Inside) -> list[Group]:
    """All groups, the one at ``at`` computing as ``inside`` says; what is after it is put off, never drawn in."""
    group, compute = groups[at], round(inside.compute_s, DIGITS)
    late = round(compute - group.time.compute, DIGITS)
    changed = replace(
        group,
        end_s=round(group.end_s + late, DIGITS),
        finish_spread_s=round(inside.spread_s, DIGITS),
        time=replace(group.time, compute=compute),
    )
    found = groups if late <= 0 else [_put_off(other, group.end_s, late) for other in groups]
    return [changed if other.id == group.id else other for other in found]


def _put_off(group: Group, end_s: float, late: float) -> Group:
    if group.start_s < end_s:
        return group
    return replace(group, start_s=round(group.start_s + late, DIGITS), end_s=round(group.end_s + late, DIGITS))


def _last_end(groups: Sequence[Group], given: Given) -> float:
    """Of the groups, and of the ordinary tasks as early as these can end."""
    graph, ends = given.declared, {step: group.end_s for group in groups for step in group.steps}
    tasks = {graph.index[task.id]: task for task in graph.dataflow.tasks}
    end = [ends.get(name, 0.0) for name in graph.ids]
    for node in graph.order:
        if node in tasks:
            end[node] += task_runtime_of(tasks[node], given.settings)
        for after in graph.successors[node]:
            if after in tasks:
                end[after] = max(end[after], end[node])
    return max([*end, *(group.end_s for group in groups)], default=0.0)
