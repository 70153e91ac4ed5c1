"""From facts to the plan of a run, by all passes of the planner."""

from __future__ import annotations

from collections.abc import Callable

from airflow_dagsched.launch.planning.facts import Facts
from airflow_dagsched.launch.planning.planned import Planned, plan_with
from airflow_dagsched.plan.plan_types import Plan
from airflow_dagsched.plan.planner import plan


def plan_run(facts: Facts, planner: Callable[..., Plan] = plan) -> Planned:
    """The plan of a whole run; raises ``InvalidInput`` and ``DoesNotFit`` as ``plan``.

    :param planner: another one that takes the same, such as the exact mode's.
    """
    return plan_with(facts, planner)
