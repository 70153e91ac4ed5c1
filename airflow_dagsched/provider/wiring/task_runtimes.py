"""Checks ``task_runtimes``: a misspelt task would count as one that takes no time, without a word.

Tasks and edges may be made after the dataflow, so what is not there is known once the DAG file has been read.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from airflow_dagsched.provider.spec.hints import suggest_name

if TYPE_CHECKING:
    from airflow_dagsched.provider.spec.dataflow_spec import DataflowSpec

FIELD = "task_runtimes"


def check_names(flow: DataflowSpec, tasks: Collection[str]) -> None:
    """Raises :class:`InvalidInput` for what is a step, or an id without the part of the task group.

    :param tasks: ids of all tasks of the DAG.
    """
    for name in flow.task_runtimes:
        if any(step.task_id == name for step in flow.steps.values()):
            raise flow.make_error(f"{name!r} is a step: it takes runtime_s= itself", FIELD)
        # A task that is still to be made is fine: the file is not read to its end yet.
        if name not in tasks and f"{flow.name}.{name}" in tasks:
            raise flow.make_error(f"{name!r} is no task; did you mean '{flow.name}.{name}'?", FIELD)


def check_all_above(flow: DataflowSpec) -> None:
    """Raises :class:`InvalidInput` for what no step waits for, once all edges are known."""
    ordinary = flow.graph.ordinary
    for name in flow.task_runtimes:
        if name not in ordinary:
            hint = suggest_name(name, ordinary)
            raise flow.make_error(f"no step waits for a task {name!r}{f'; {hint}' if hint else ''}", FIELD)
