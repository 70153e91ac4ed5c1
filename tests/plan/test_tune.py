"""Plan files: what they would change, and when they are of the dataflow."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import settings as examples
from msgspec.structs import replace

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.plan.grouping.coarsest import Grouped
from airflow_dagsched.plan.planned_groups import load_planned_groups
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.regrouping import list_regrouped
from tests.plan.drawn import dataflows, drawn, standalone


def grouped(**groups: str) -> list[Grouped]:
    return [Grouped(name, tuple(steps), (), "") for name, steps in groups.items()]


def test_what_changes() -> None:
    """b and c come together, d is new, e is gone."""
    before = grouped(a="ax", b="b", c="c", e="e")
    after = grouped(a="ax", b="bc", d="d")
    assert list_regrouped(before, after) == ("~ b: +c", "+ d: d", "- c", "- e")
    assert list_regrouped(before, before) == ()


@examples(max_examples=25, deadline=None)
@given(dataflows(most=40))
def test_the_planners_own_groups_are_adopted(flow: Dataflow) -> None:
    flow = replace(flow, steps=tuple(replace(step, pinned=()) for step in flow.steps))
    made = plan(flow, standalone(16))
    found = load_planned_groups(made, flow)
    assert [(one.id, one.steps, one.after) for one in found.groups] == [(g.id, g.steps, g.after) for g in made.groups]
    assert found.spills == made.spills


def test_a_plan_of_other_steps_is_stale() -> None:
    with pytest.raises(InvalidInput, match="has changed since it was tuned"):
        load_planned_groups(plan(drawn("a == b"), standalone(2)), drawn("a == b; b == c"))


def test_measured_values_make_no_plan_stale() -> None:
    load_planned_groups(plan(drawn("a == b", a={"runtime_s": 9}), standalone(2)), drawn("a == b"))


def test_a_plan_written_by_hand_must_keep_the_rules() -> None:
    """b was put into another group, and a's rows into no spill."""
    flow = drawn("a == b")
    made = plan(flow, standalone(2))
    (group,) = made.groups
    apart = (replace(group, id="one", steps=("a",)), replace(group, id="other", steps=("b",)))
    with pytest.raises(InvalidInput, match="pipelined to 'b' in another group, and no spill"):
        load_planned_groups(replace(made, groups=apart), flow)
