"""What the chosen grouping takes as it was placed: what a page says is compared is what the plan holds."""

from __future__ import annotations

from msgspec.structs import replace

from airflow_dagsched.model.ranges import MOST_PLANNED
from airflow_dagsched.model.units import DIGITS
from airflow_dagsched.plan.costing.evaluator import HOUR_S, expect_seconds
from airflow_dagsched.plan.plan_types import Plan
from airflow_dagsched.plan.settings import Settings


def compare_placed(plan: Plan, settings: Settings) -> Plan:
    """The plan, its first comparison with the seconds and core-seconds of its groups as they were placed.

    The others stay as they were sized: nobody has placed them.
    """
    if not plan.compared:
        return plan
    chosen, *others = plan.compared
    rate = settings.failures_per_hour / HOUR_S
    held = sum(
        sum(box.cores for box in group.containers) * expect_seconds(group.time.total_s, rate) for group in plan.groups
    )
    # With failures to expect it was compared with repeats, which the plan's own times are without.
    makespan_s = max(chosen.makespan_s, plan.makespan_s) if rate else plan.makespan_s
    told = replace(
        chosen, makespan_s=min(makespan_s, MOST_PLANNED), core_seconds=min(round(held, DIGITS), MOST_PLANNED)
    )
    return replace(plan, compared=(told, *others))
