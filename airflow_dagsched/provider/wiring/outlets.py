"""What steps write, as Airflow's assets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset

if TYPE_CHECKING:
    from airflow_dagsched.provider.authoring.dataflow import SparkDataflow


def list_outlets(flow: SparkDataflow, steps: Sequence[str]) -> list[Any]:
    """The assets that ``steps`` write."""
    found: list[Any] = []
    for name in steps:
        step = flow.steps[name]
        if step.declared.writes is not None:
            found.append(Asset(name=step.declared.writes.location, uri=step.declared.writes.uri))
        found += step.step_outlets
    return found
