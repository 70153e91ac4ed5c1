"""Twister2's level parser: a task may come twice, or before what it waits for.

A -> B, C    B -> D    C -> D, E     gives [A] [B C] [D] [D E]
A -> D, B    B -> D                  gives [A] [D B]: children stand as their edges were drawn
"""

from __future__ import annotations

from collections.abc import Iterator

from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.placement.request import Request, StepRequest

Children = list[list[StepRequest]]
"""Of each step, by its number: those that read from it."""


def list_batches(request: Request, children: Children) -> Iterator[list[StepRequest]]:
    """In order: a source and then its children, an inner task's children unless all are taken, a leaf if missing."""
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


def list_children(request: Request, dataflow: Dataflow) -> Children:
    """In the order of the dataflow's channels, which a request does not keep: equal dataflows make equal requests."""
    steps = {step.id: step for step in request.steps}
    children: Children = [[] for _ in request.steps]
    for src, dst in dict.fromkeys((channel.src, channel.dst) for channel in dataflow.channels):
        if src != dst:
            children[steps[src].number].append(steps[dst])
    return children
