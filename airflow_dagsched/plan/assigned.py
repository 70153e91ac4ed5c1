"""The plan's assignment: what the policy said of the state of each group, together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from msgspec.structs import replace

from airflow_dagsched.model.state import Assignment, State
from airflow_dagsched.placement.values import Assigned, instance_id
from airflow_dagsched.plan.values import Group, Movement, Plan

Held = TypeVar("Held")


def with_assigned(made: Plan, parts: Sequence[Assigned]) -> Plan:
    """The plan with the assignments of its groups; without any it has none."""
    if not parts:
        return made
    found = [part.assignment for part in parts]
    return replace(
        made,
        assignment=Assignment(
            active=_joined(one.active for one in found),
            standby=_joined(one.standby for one in found),
            warmup=_joined(one.warmup for one in found),
            moved=_joined(one.moved for one in found),
        ),
        movements=tuple(moving for part in parts for moving in part.movements),
        follow_up=any(part.follow_up for part in parts),
    )


def _joined(parts: Iterable[dict[str, Held]]) -> dict[str, Held]:
    return {instance: held for part in parts for instance, held in part.items()}


def as_sized(group: Group, state: State) -> Assigned:
    """The assignment of a group that keeps the planner's containers: no copies, whatever was before."""
    active = {instance_id(*one): box.worker for box in group.containers for one in box.instances}
    return Assigned(Assignment(active=active), tuple(_hand_overs(active, state.previous)))


def _hand_overs(active: dict[str, str], before: Assignment | None) -> Iterator[Movement]:
    for instance, worker in active.items():
        source = before.active.get(instance, worker) if before else worker
        if source != worker:
            reason = f"hand-over: {source} gives it up, {worker} takes it, since there is no room to level state"
            yield Movement(instance=instance, from_worker=source, to_worker=worker, reason=reason)
