"""Repeat blocks: steps that run again and again, as one composite step."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from airflow_dagsched.provider.authoring.read_dataflow import DeclaredFlow, Mirrors, replace_rows
from airflow_dagsched.provider.authoring.steps import StepMirror
from airflow_dagsched.provider.spec.dataflow_graph import find_first_input
from airflow_dagsched.provider.spec.dataflow_spec import RepeatBlock


def make_repeat_block(
    flow: DeclaredFlow,
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
    return RepeatBlock(members[0], members, until, max_iterations, back)


def _find_member(flow: DeclaredFlow, value: Any) -> str:
    """Id of the step of ``flow`` that ``value`` is, or is the return value of."""
    mirror = getattr(value, "operator", value)  # what a step's call returns knows its operator
    member = next((name for name, each in flow.mirrors.items() if each is mirror), None)
    if member is None:
        raise flow.make_error(f"{getattr(mirror, 'task_id', None) or value!r} is not a step of this dataflow", "repeat")
    return member


def _check_in_no_repeat(flow: DeclaredFlow, members: Sequence[str]) -> None:
    taken = {name for block in flow.repeats for name in block.steps}
    for name in members:
        if name in taken:
            raise flow.make_error(f"step {flow.mirrors[name].task_id!r} can be in one repeat, once", "repeat")
        taken.add(name)


def _check_feedback(flow: DeclaredFlow, members: Sequence[str], back: Mapping[str, str]) -> None:
    """Each key names a parameter of a member, each value is a member; without any, the first step takes rows."""
    mirrors: Mirrors = {name: flow.mirrors[name] for name in members}
    for name, origin in back.items():
        owner, _, parameter = name.rpartition(".")
        if owner not in mirrors or not _has_parameter(mirrors[owner], parameter):
            known = ", ".join(sorted(f"{own}.{each}" for own, member in mirrors.items() for each in member.arguments))
            raise flow.make_error(f"feedback {name!r} is no parameter of its steps; they have {known}", "repeat")
        if origin not in mirrors:
            came_from = flow.mirrors[origin].task_id
            raise flow.make_error(f"feedback {name!r} comes from {came_from!r}, which is not repeated", "repeat")
    # With no word on feedback the last output goes to the first rows that the first step takes: there must be some.
    first = mirrors[members[0]]
    if not back and find_first_input(replace_rows(first.arguments, flow.mirrors)) is None:
        raise first.make_error("the first step takes no rows to feed back; say which with feedback=", "repeat")


def _has_parameter(step: StepMirror, parameter: str) -> bool:
    """Whether ``step`` has ``parameter``: the first iteration may leave one with a default out."""
    if step.function is None or parameter in step.arguments:
        return parameter in step.arguments
    parameters = inspect.signature(step.function).parameters
    return parameter in parameters or any(each.kind is each.VAR_KEYWORD for each in parameters.values())
