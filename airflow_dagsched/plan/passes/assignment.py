"""The plan's assignment: what the policy said of the state of each group, together."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TypeVar

from msgspec.structs import replace

from airflow_dagsched.model.state import Assignment, Movement, State
from airflow_dagsched.placement.values import AssignmentPlan, name_instance
from airflow_dagsched.plan.plan_types import Group, Plan
from airflow_dagsched.plan.reasons.placement import HandedOver
from airflow_dagsched.plan.report.sentences import say_placement

Held = TypeVar("Held")


def join_assignments(made: Plan, parts: Sequence[AssignmentPlan]) -> Plan:
    """The plan with the assignments of its groups; without any it has none."""
    if not parts:
        return made
    found = [part.assignment for part in parts]
    return replace(
        made,
        assignment=Assignment(
            active=_join_held(one.active for one in found),
            standby=_join_held(one.standby for one in found),
            warmup=_join_held(one.warmup for one in found),
            moved=_join_held(one.moved for one in found),
        ),
        movements=tuple(moving for part in parts for moving in part.movements),
        follow_up=any(part.follow_up for part in parts),
    )


def _join_held(parts: Iterable[dict[str, Held]]) -> dict[str, Held]:
    return {instance: held for part in parts for instance, held in part.items()}


def drop_instances(made: Plan, names: Collection[str]) -> Plan:
    """The plan with an assignment that knows nothing of the instances ``names``, nor of copies of their state."""
    told = made.assignment
    if told is None or not names:
        return made
    return replace(
        made,
        assignment=Assignment(
            active=_drop_held(told.active, names),
            standby=_drop_held(told.standby, names),
            warmup=_drop_held(told.warmup, names),
            moved=_drop_held(told.moved, names),
        ),
        movements=tuple(moving for moving in made.movements if moving.instance not in names),
    )


def _drop_held(role: dict[str, Held], names: Collection[str]) -> dict[str, Held]:
    return {instance: held for instance, held in role.items() if instance not in names}


def assign_as_sized(group: Group, state: State) -> AssignmentPlan:
    """The assignment of a group that keeps the planner's containers: no copies, whatever was before."""
    active = {name_instance(*one): box.worker for box in group.containers for one in box.instances}
    return AssignmentPlan(Assignment(active=active), tuple(_list_hand_overs(active, state.previous)))


def _list_hand_overs(active: dict[str, str], before: Assignment | None) -> Iterator[Movement]:
    for instance, worker in active.items():
        # An instance that is new has nothing to be handed over.
        source = before.active.get(instance, worker) if before else worker
        if source != worker:
            reason = say_placement(HandedOver(source, worker))
            yield Movement(instance=instance, from_worker=source, to_worker=worker, reason=reason)
