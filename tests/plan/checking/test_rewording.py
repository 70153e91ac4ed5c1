"""No verdict depends on the text of a reason: plans are told in other words, sound and broken ones.

a plan ──check──> verdicts        the same
  └──all its texts replaced──check──> verdicts
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as examples
from msgspec.structs import replace

from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.plan.checking.optimality import check_strictly
from airflow_dagsched.plan.plan_types import Group, Plan
from airflow_dagsched.plan.settings import Settings
from tests.plan.checking.test_check import BROKEN, CLUSTER, FLOW, SETTINGS, STATE, UNASSIGNED
from tests.plan.checking.test_mutations import GROUPS, PLANS, TOLD, fitting
from tests.plan.drawn import clusters, dataflows

WORDS = "the longest path is of no matter"
"""Begins as a reason that a checker once went by."""


def reword(value: Any, field: str = "reason") -> Any:
    """With another text where it has one."""
    return replace(value, **{field: WORDS}) if getattr(value, field) else value


def reword_group(group: Group) -> Group:
    for field in ("reason", "hosts", "placement"):
        group = reword(group, field)
    return replace(group, pruned=tuple(map(reword, group.pruned)), unpruned=tuple(map(reword, group.unpruned)))


def reword_plan(plan: Plan) -> Plan:
    """Every text that says why; ids, amounts and codes stay."""
    plan = reword(plan, "lower_bound_reason")
    return replace(
        plan,
        compared=tuple(reword(entry, "what") for entry in plan.compared),
        asked=(WORDS,) * len(plan.asked),
        groups=tuple(map(reword_group, plan.groups)),
        spills=tuple(map(reword, plan.spills)),
        movements=tuple(map(reword, plan.movements)),
    )


def verdicts(*args: Any, **kwargs: Any) -> list[tuple[str, str]]:
    """Rules and what breaks them; the kinds of a comparison are texts themselves."""
    found = check_strictly(*args, **kwargs)
    return sorted((one.rule, "" if one.rule == "compared" else one.subject) for one in found)


@pytest.mark.parametrize("how", BROKEN)
def test_broken_plans_in_other_words(how: str) -> None:
    plan, _ = BROKEN[how]
    assert verdicts(reword_plan(plan), FLOW, CLUSTER, SETTINGS) == verdicts(plan, FLOW, CLUSTER, SETTINGS)


@pytest.mark.parametrize("how", UNASSIGNED)
def test_broken_assignments_in_other_words(how: str) -> None:
    plan, _ = UNASSIGNED[how]
    assert verdicts(reword_plan(plan), STATE, CLUSTER) == verdicts(plan, STATE, CLUSTER)


@examples(max_examples=15, deadline=None)
@given(dataflows(most=25), clusters(), TOLD)
def test_random_plans_in_other_words(flow: Dataflow, cluster: Cluster, settings: Settings) -> None:
    """As they are, with a bound that is the makespan, and with each thing changed that makes them wrong."""
    plan = fitting(flow, cluster, settings)
    assert verdicts(reword_plan(plan), flow, cluster, settings) == []
    changed = [change(plan) for change in PLANS.values()] if plan.groups else []
    changed += [replace(plan, groups=tuple(map(change, plan.groups))) for change in GROUPS.values()]
    changed += [replace(plan, lower_bound_s=plan.makespan_s, gap=0.0)]
    for broken in changed:
        assert verdicts(reword_plan(broken), flow, cluster, settings) == verdicts(broken, flow, cluster, settings)
