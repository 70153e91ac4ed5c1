"""Whether some steps fit the cluster as one application, whoever is on it now."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.launch.planning.facts import Facts, narrow_to_steps, remove_pins
from airflow_dagsched.launch.planning.plan_run import plan_run
from airflow_dagsched.model.cluster import make_idle


def find_refusal(facts: Facts, steps: Iterable[str]) -> DoesNotFit | None:
    """Why ``steps`` cannot be one application on the idle cluster, on whichever workers; None: they can."""
    part = remove_pins(narrow_to_steps(facts, steps))
    try:
        plan_run(replace(part, cluster=make_idle(facts.cluster)))
    except DoesNotFit as refused:
        return refused
    return None
