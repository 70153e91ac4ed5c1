"""What the author keeps apart or together, how many steps a group may have: at a parse and in plans, checked."""

from __future__ import annotations

import random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit, InvalidInput
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.plan.checking.optimality import check_strictly
from airflow_dagsched.plan.grouping.coarsest import find_groups
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.settings import Settings
from tests.plan.drawn import clusters, dataflows, drawn, standalone


def groups(edges: str, told: Settings, *, tasks: str = "", **steps: dict[str, object]) -> list[str]:
    """The groups at a parse."""
    return [" ".join(group.steps) for group in find_groups(drawn(edges, tasks=tasks, **steps), told).groups]


def test_steps_kept_apart_are_in_different_groups() -> None:
    """a ══> b ══> c, a and c apart"""
    found = find_groups(drawn("a == b; b == c"), Settings(apart=(("a", "c"),)))
    assert [group.steps for group in found.groups] == [("a", "b"), ("c",)]
    assert found.spills[0].reason == "the settings keep steps apart, or allow no more in a group"


def test_a_group_has_no_more_steps_than_told() -> None:
    """
    a ══> b ══┐
    c ══> d ══> e      chains stay in one piece
    """
    assert groups("a == b; c == d; b == e; d == e", Settings(max_steps_per_group=2)) == ["a b", "c d", "e"]


def test_steps_kept_together_take_what_is_between() -> None:
    """a ~~> b ~~> c"""
    assert groups("a ~~ b; b ~~ c", Settings()) == ["a", "b", "c"]
    assert groups("a ~~ b; b ~~ c", Settings(together=(("a", "c"),))) == ["a b c"]


def test_pools_are_not_shared() -> None:
    assert groups("a == b", Settings(), b={"pool": "night"}) == ["a", "b"]


@pytest.mark.parametrize(
    ("told", "field", "rule"),
    [
        (Settings(apart=(("a", "x"),)), r"apart\[0\]", "no step is called 'x'"),
        (Settings(together=(("a", "t"),)), r"together\[0\]", "no step is called 't'"),
        (Settings(together=(("a", "b"),), apart=(("b", "a"),)), "apart", "stay, together"),
        (Settings(together=(("a", "c"),)), "together", "ordinary task 't' stands between"),
        (Settings(together=(("a", "d"),)), "together", "cannot share an application"),
        (Settings(together=(("a", "b"),), max_steps_per_group=1), "max_steps_per_group", "2 steps repeat, or stay"),
    ],
)
def test_contradictions_are_refused(told: Settings, field: str, rule: str) -> None:
    """a ══> b, a ──> (t) ──> c; d is isolated"""
    flow = drawn("a == b; a -- t; t -- c; a == d", tasks="t", d={"isolate": True})
    with pytest.raises(InvalidInput, match=f"settings: {field}: .*{rule}"):
        find_groups(flow, told)


def told(flow: Dataflow, seed: int) -> Settings:
    """Random lists, of steps that may be so."""
    rng = random.Random(seed)
    names = [step.id for step in flow.steps]
    lists = [tuple(rng.sample(names, min(len(names), rng.randint(2, 4)))) for _ in range(2)]
    return Settings(apart=tuple(lists), max_steps_per_group=rng.choice([3, 4, 10, 1000]))


@settings(max_examples=40, deadline=None)
@given(dataflows(most=60), clusters(), st.integers(0, 2**32))
def test_plans_obey_and_the_checker_agrees(flow: Dataflow, cluster: Cluster, seed: int) -> None:
    asked = told(flow, seed)
    try:
        made = plan(flow, cluster, asked)
    except (DoesNotFit, InvalidInput):
        assume(False)
        raise
    assert check_strictly(made, flow, cluster, asked) == ()
    reordered = replace(asked, apart=tuple(reversed([tuple(reversed(names)) for names in asked.apart])))
    assert plan(flow, cluster, reordered) == made


@settings(max_examples=40, deadline=None)
@given(dataflows(most=60), st.integers(0, 2**32))
def test_a_parse_obeys(flow: Dataflow, seed: int) -> None:
    asked = told(flow, seed)
    try:
        found = find_groups(flow, asked)
    except InvalidInput:
        assume(False)
        raise
    home = {step: group.id for group in found.groups for step in group.steps}
    assert all(len({home[name] for name in names}) == len(names) for names in asked.apart)
    assert all(len(group.steps) <= asked.max_steps_per_group for group in found.groups)
    assert all(spill.reason for spill in found.spills)


def test_the_checker_reports_what_the_settings_forbid() -> None:
    flow, cluster = drawn("a == b; b == c"), standalone(4)
    made = plan(flow, cluster)
    broken = {
        "apart": Settings(apart=(("a", "b"),)),
        "steps": Settings(max_steps_per_group=2),
    }
    for rule, asked in broken.items():
        assert {violation.rule for violation in check_strictly(made, flow, cluster, asked)} == {rule, "asked"}
    cut = plan(flow, cluster, Settings(apart=(("a", "b"),)))
    rules = {violation.rule for violation in check_strictly(cut, flow, cluster, Settings(together=(("a", "b"),)))}
    assert rules == {"together", "times"}, "the bound counts the cut"


def test_the_checker_counts_spills_in_flight() -> None:
    flow = drawn("a == b", size={"a": 100 * 2**20})
    settings = Settings(apart=(("a", "b"),))
    made = plan(flow, standalone(4, spill_mb=100), settings)
    found = check_strictly(made, flow, standalone(4, spill_mb=99), settings)
    assert [violation.rule for violation in found] == ["spill_mb"]
