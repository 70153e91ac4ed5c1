"""The task group that steps are made in, as steps see it: a step registers there, and says when its edges change."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from airflow.sdk import TaskGroup

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator

    from airflow_dagsched.provider.spec.dataflow_spec import FlowSettings


class StepGroup(TaskGroup):
    """Holds steps; what it makes of them is none of their business."""

    declared: FlowSettings

    @abstractmethod
    def add_step(self, step: Any) -> None:
        """Take in a step made inside this group."""

    @abstractmethod
    def step_id(self, task_id: str) -> str:
        """Id of a step inside the dataflow."""

    @abstractmethod
    def note_new_edge(self) -> None:
        """An edge to a step was made."""


def find_enclosing_group(step: BaseOperator, refuse: Any) -> StepGroup:
    """The group ``step`` was made in; raises what ``refuse`` makes of a rule, outside of one."""
    group = step.task_group
    # Steps may stand in plain task groups inside the dataflow's.
    while group is not None and not isinstance(group, StepGroup):
        group = group.parent_group
    if group is None:
        raise refuse("a Spark step must be made inside `with SparkDataflow(...)`")
    # How many copies there are is known when the task group is expanded, in a run: no plan can be made for that.
    mapped = next(step.iter_mapped_task_groups(), None)
    if mapped is not None:
        raise refuse(
            f"is inside the mapped task group {mapped.group_id!r}: mapped steps cannot be shown, write a loop with "
            ".override(task_id=...)"
        )
    return group
