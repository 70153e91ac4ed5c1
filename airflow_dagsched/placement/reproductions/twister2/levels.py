"""Twister2's level parser: a task may come twice, or before what it waits for.

A -> B, C    B -> D    C -> D, E     gives [A] [B C] [D] [D E]
"""

from __future__ import annotations

from collections.abc import Iterator

from airflow_dagsched.placement.request import Request, StepRequest


def list_batches(request: Request) -> Iterator[list[StepRequest]]:
    """In order: a source and then its children, an inner task's children unless all are taken, a leaf if missing."""
    children = _list_children(request)
    taken: set[int] = set()
    for step in request.steps:
        if step.number not in taken and (not step.inputs or not children[step.number]):
            taken.add(step.number)
            yield [step]
        # All children if any is new: on a join a step comes twice, under two ids.
        fresh = children[step.number]
        if any(child.number not in taken for child in fresh):
            taken.update(child.number for child in fresh)
            yield fresh


def _list_children(request: Request) -> list[list[StepRequest]]:
    children: list[list[StepRequest]] = [[] for _ in request.steps]
    for step in request.steps:
        for src in sorted({channel.src for channel in step.inputs}):
            children[src].append(step)
    return children
