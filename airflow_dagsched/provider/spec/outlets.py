"""What steps write, as Airflow's assets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from airflow.sdk import Asset

from airflow_dagsched.provider.spec.dataflow_spec import AuthoredStep


def list_outlets(steps: Iterable[AuthoredStep]) -> list[Any]:
    """The assets that ``steps`` write."""
    outlets: list[Any] = []
    for step in steps:
        if step.declared.writes is not None:
            outlets.append(Asset(name=step.declared.writes.location, uri=step.declared.writes.uri))
        outlets += step.outlets
    return outlets
