"""Colors: steps of different colors cannot share a launch: settings, pool or the author keep them apart."""

from __future__ import annotations

import msgspec

from airflow_dagsched.model.dataflow import Step
from airflow_dagsched.model.graph import Graph

TASK = -1
"""The color of an ordinary task: none."""


def assign_colors(graph: Graph) -> list[int]:
    """For each node its color, a number; steps of one loop have one color."""
    isolated = {graph.loop[node] for node, step in enumerate(graph.steps) if step.isolate}
    known: dict[tuple[int, bytes, str], int] = {}
    colors = []
    for node, step in enumerate(graph.steps):
        first = graph.loop[node]
        # An isolated step has a color of its own; ``TASK`` is no step's number, so all others share that part of the
        # key.
        key = (first if first in isolated else TASK, _encode_settings(step), step.pool)
        colors.append(known.setdefault(key, len(known)))
    return colors + [TASK] * (len(graph.ids) - len(graph.steps))


def _encode_settings(step: Step) -> bytes:
    # As JSON: True and 1 are equal in Python and different settings in Spark; and a dict has no hash.
    return msgspec.json.encode(step.application, order="sorted") if step.application else b""
