"""Groups that are fixed before: the planner sizes, places and orders them, and chooses no others."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from airflow_dagsched.errors import DoesNotFit, InvalidInput
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.plan.checking.optimality import check_strictly
from airflow_dagsched.plan.grouping.coarsest import find_groups
from airflow_dagsched.plan.plan_types import Plan
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.problem.run import FixedGroup, Run
from airflow_dagsched.plan.settings import DEFAULTS, Settings
from tests.plan.drawn import clusters, dataflows, drawn, standalone


def fixed(flow: Dataflow, cluster: Cluster, told: Settings = DEFAULTS, **groups: str) -> Plan:
    """The plan with these groups: ``x="a b"``."""
    named = tuple(FixedGroup(name, tuple(steps.split()), f"why {name}") for name, steps in groups.items())
    return plan(flow, cluster, told, run=Run(groups=named))


def test_groups_are_as_they_were_fixed() -> None:
    """a ══> b ══> c: the planner alone would make one application of it."""
    made = fixed(drawn("a == b; b == c"), standalone(4), first="a", rest="b c")
    assert [(group.id, group.steps, group.reason) for group in made.groups] == [
        ("first", ("a",), "why first"),
        ("rest", ("b", "c"), "why rest"),
    ]
    (spill,) = made.spills
    assert (spill.src, spill.dst, spill.reason) == ("a", ("b",), "its reader is in another launch task")


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ({"x": "a"}, "step 'b' must be in exactly one"),
        ({"x": "a b", "y": "b"}, "step 'b' must be in exactly one"),
        ({"x": "a b z"}, "step 'z' must be in exactly one"),
    ],
)
def test_each_step_is_in_one_of_them(groups: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        fixed(drawn("a == b"), standalone(4), **groups)


def test_what_the_author_keeps_apart_or_together_is_no_group() -> None:
    with pytest.raises(InvalidInput, match="x: its author, or the settings, keep its steps apart"):
        fixed(drawn("a == b", a={"isolate": True}), standalone(4), x="a b")
    with pytest.raises(InvalidInput, match="stay together are in different ones"):
        fixed(drawn("a == b"), standalone(4), Settings(together=(("a", "b"),)), x="a", y="b")


def test_groups_that_wait_for_each_other_are_none() -> None:
    with pytest.raises(InvalidInput, match="wait for each other"):
        fixed(drawn("a == b; b == c"), standalone(4), x="a c", y="b")


def test_a_group_that_does_not_fit_is_told() -> None:
    with pytest.raises(DoesNotFit):
        fixed(drawn("a; b", a={"memory_mb": 3000}), standalone(4, memory_mb=2000), x="a", y="b")


@given(dataflows(30), clusters())
@settings(max_examples=40, deadline=None)
def test_what_a_parse_finds_can_be_planned_as_it_is(flow: Dataflow, cluster: Cluster) -> None:
    found = find_groups(flow)
    named = tuple(FixedGroup(one.id, one.steps, one.reason) for one in found.groups)
    made = plan(flow, cluster, run=Run(groups=named))
    assert {(one.id, frozenset(one.steps), one.after, one.reason) for one in made.groups} == {
        (one.id, frozenset(one.steps), one.after, one.reason) for one in found.groups
    }
    assert check_strictly(made, flow, cluster) == ()
