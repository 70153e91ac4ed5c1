"""Twister2's BatchTaskScheduler: one or many graphs, joined by the names of receptors and collectors."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_dagsched.errors import DoesNotFit, InvalidInput
from airflow_dagsched.placement.reproductions.twister2 import round_robin
from airflow_dagsched.placement.reproductions.twister2.connected_dataflows import Part
from airflow_dagsched.placement.request import Request
from airflow_dagsched.placement.values import TaskSchedulePlan


def make_schedule(parts: Sequence[Part], requests: Sequence[Request]) -> tuple[TaskSchedulePlan, ...]:
    """A plan for each part; all but one graph by itself are checked for dependencies."""
    if len(parts) > 1:
        _check_names(parts)
        for part, request in zip(parts, requests, strict=True):
            _check_children(part, request)
    return tuple(round_robin.place_streaming(request) for request in requests)


def _check_names(parts: Sequence[Part]) -> None:
    """Equal parallelism of a name's two ends; a task that is both is a receptor; of several the last counts."""
    # Twister2's maps are static, so names live on from call to call: that is left out.
    received: dict[str, int] = {}
    collected: dict[str, int] = {}
    for part in parts:
        counts = {step.id: step.parallelism for step in part.dataflow.steps}
        received.update((name, counts[step]) for step, name in part.receptors.items())
        collected.update((name, counts[step]) for step, name in part.collectors.items() if step not in part.receptors)
    for name in sorted(received.keys() & collected.keys()):
        if received[name] != collected[name]:
            rule = f"{name!r} is received by {received[name]} and collected by {collected[name]} instances"
            raise InvalidInput("dataflows", "receptors", rule)


def _check_children(part: Part, request: Request) -> None:
    """A receptor's own children that collect must have its parallelism."""
    for step in request.steps:
        for src in sorted({channel.src for channel in step.inputs}):
            above = request.steps[src]
            joined = above.id in part.receptors and step.id in part.collectors
            if joined and above.parallelism != step.parallelism:
                what = f"step {step.id!r}, collector below receptor {above.id!r}"
                raise DoesNotFit(what, "parallelism", step.parallelism, above.parallelism, "instances")
