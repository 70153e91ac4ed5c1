"""Repeat blocks: steps that run again and again, as one composite step."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from airflow_dagsched.provider.authoring.dataflow import SparkDataflow
    from airflow_dagsched.provider.authoring.steps import StepMirror


class RepeatBlock(Struct, frozen=True):
    """Steps that run again and again, one composite step."""

    id: str
    steps: tuple[StepMirror, ...]
    until: Callable[..., Any] | None
    max_iterations: int
    feedback: Mapping[str, StepMirror]


def make_repeat_block(
    flow: SparkDataflow,
    steps: Sequence[Any],
    until: Callable[..., Any] | None,
    max_iterations: int,
    feedback: Mapping[str, Any],
) -> RepeatBlock:
    """The block of ``steps`` of ``flow``; raises :class:`InvalidInput` where they can be none."""
    members = tuple(_find_member(flow, step) for step in steps)
    if not isinstance(max_iterations, int) or max_iterations < 1 or not members:
        raise flow.make_error("repeat needs steps and max_iterations of at least 1", "repeat")
    _check_in_no_repeat(flow, members)
    back = {name: _find_member(flow, step) for name, step in feedback.items()}
    _check_feedback(flow, members, back)
    return RepeatBlock(flow.step_id(members[0].task_id), members, until, max_iterations, back)


def _find_member(flow: SparkDataflow, value: Any) -> StepMirror:
    """The step of ``flow`` that ``value`` is, or is what it returns."""
    mirror = getattr(value, "operator", value)
    task_id = getattr(mirror, "task_id", None)
    member = None if task_id is None else flow.steps.get(flow.step_id(task_id))
    if member is None or member is not mirror:
        raise flow.make_error(f"{task_id or value!r} is not a step of this dataflow", "repeat")
    return member


def _check_in_no_repeat(flow: SparkDataflow, members: Sequence[StepMirror]) -> None:
    blocks, seen = flow.blocks(), set()
    for step in members:
        step_id = flow.step_id(step.task_id)
        if step_id in blocks or step_id in seen:
            raise flow.make_error(f"step {step.task_id!r} can be in one repeat, once", "repeat")
        seen.add(step_id)


def _check_feedback(flow: SparkDataflow, members: Sequence[StepMirror], back: Mapping[str, StepMirror]) -> None:
    """Each key names a parameter of a member, each value is a member; without any, the first step takes rows."""
    from airflow_dagsched.provider.spec.dataflow_graph import find_first_input

    by_id = {flow.step_id(step.task_id): step for step in members}
    for name, origin in back.items():
        owner, _, parameter = name.rpartition(".")
        if owner not in by_id or not _has_parameter(by_id[owner], parameter):
            known = ", ".join(sorted(f"{own}.{each}" for own, member in by_id.items() for each in member.arguments))
            raise flow.make_error(f"feedback {name!r} is no parameter of its steps; they have {known}", "repeat")
        if flow.step_id(origin.task_id) not in by_id:
            raise flow.make_error(f"feedback {name!r} comes from {origin.task_id!r}, which is not repeated", "repeat")
    if not back and find_first_input(flow, members[0]) is None:
        raise members[0].make_error("the first step takes no rows to feed back; say which with feedback=", "repeat")


def _has_parameter(step: StepMirror, parameter: str) -> bool:
    """Whether ``step`` has ``parameter``: the first iteration may leave one with a default out."""
    if step.function is None or parameter in step.arguments:
        return parameter in step.arguments
    parameters = inspect.signature(step.function).parameters
    return parameter in parameters or any(each.kind is each.VAR_KEYWORD for each in parameters.values())
