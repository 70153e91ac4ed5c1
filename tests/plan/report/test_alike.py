"""Groups that are alike are shown once, with a count; nothing else is hidden, and the plan itself has them all.

load ══> s0 ... s997, each isolated ══> join        page: load, the 998, join
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.codec import decode_json, encode_value
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.plan.plan_types import Group, Plan, Pruned
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.report.alike import LEAST, collapse_groups, collapse_spills
from airflow_dagsched.plan.report.page import explain_plan
from airflow_dagsched.plan.report.picture import draw_dot, draw_svg
from tests.plan.drawn import clusters, dataflows, drawn, standalone
from tests.plan.test_planner import planned

MANY = 998


def fan(count: int, *, isolate: bool) -> Dataflow:
    names = [f"s{at}" for at in range(count)]
    edges = "; ".join(f"load == {name}; {name} == join" for name in names)
    return drawn(edges, load={"runtime_s": 60}, **{name: {"isolate": isolate, "runtime_s": 40} for name in names})


def test_a_thousand_alike_groups_have_a_short_page() -> None:
    made = plan(fan(MANY, isolate=True), standalone(*[16] * 8))
    text = explain_plan(made)
    assert len(made.groups) == len(decode_json(Plan, encode_value(made), "").groups) == MANY + 2
    assert f"\n{MANY} applications like this: launch_s0, launch_s1, launch_s2 and {MANY - 3} more\n" in text
    assert f"launch_s0 x {MANY} " in text
    assert len(text.splitlines()) <= 60
    assert draw_svg(made).count("<g>") == draw_dot(made).count("[label=") == 3


def test_long_groups_have_short_pages_too() -> None:
    made = plan(fan(MANY, isolate=False), standalone(*[16] * 8))
    assert len(explain_plan(made).splitlines()) <= 120


CHAINS = drawn(
    "; ".join(f"a{at} == b{at}" for at in range(4)),
    **{f"a{at}": {"runtime_s": 30, "application": {"spark.x": "1"}} for at in range(4)},
    **{f"b{at}": {"runtime_s": 30, "isolate": True} for at in range(4)},
)


def split_steps(flow: Dataflow) -> Plan:
    """One application per step."""
    return plan(replace(flow, steps=tuple(replace(step, isolate=True) for step in flow.steps)), standalone(16))


def test_groups_that_wait_for_alike_groups_are_alike() -> None:
    shown = collapse_groups(split_steps(CHAINS).groups)
    assert [[group.id for group in one.groups] for one in shown] == [
        [f"launch_{letter}{at}" for at in range(4)] for letter in "ab"
    ]
    assert [len(spills) for spills in collapse_spills(split_steps(CHAINS))] == [4]


CHANGES: dict[str, Callable[[Group], Group]] = {
    "waits for something else": lambda group: replace(group, after=("t",)),
    "is larger": lambda group: replace(
        group, containers=tuple(replace(box, memory_mb=9 * box.memory_mb) for box in group.containers)
    ),
    "is much longer": lambda group: replace(group, end_s=group.start_s + 3 * (group.end_s - group.start_s)),
    "is there for another reason": lambda group: replace(group, reason="isolated by its mother"),
    "leaves something out": lambda group: replace(group, pruned=(Pruned(what="worker", id="w9", reason="far"),)),
    "has begun": lambda group: replace(group, progress="running"),
}


@pytest.mark.parametrize("how", CHANGES)
def test_what_is_not_alike_is_shown(how: str) -> None:
    groups = split_steps(CHAINS).groups
    changed = (CHANGES[how](groups[0]), *groups[1:])
    assert len(collapse_groups(changed)[0].groups) == 1
    assert len(collapse_groups(changed)[1].groups) == 3


@settings(max_examples=10, deadline=None)
@given(dataflows(most=40), clusters())
def test_each_group_and_spill_is_counted_once(flow: Dataflow, cluster: Cluster) -> None:
    made = planned(flow, cluster)
    shown = collapse_groups(made.groups)
    assert Counter(group.id for one in shown for group in one.groups) == Counter(group.id for group in made.groups)
    assert all(len(one.groups) == 1 or len(one.groups) >= LEAST for one in shown)
    order = {group.id: at for at, group in enumerate(made.groups)}
    assert [order[one.first.id] for one in shown] == sorted(order[one.first.id] for one in shown)
    spills = [spill for spills in collapse_spills(made) for spill in spills]
    assert Counter(map(repr, spills)) == Counter(map(repr, made.spills))
    assert all(len({len(group.steps) for group in one.groups}) == 1 for one in shown)
