"""A lower bound is no more than can be derived; what the plan was compared with takes what it can take.

told      0 ──────── bound ───────── makespan        fine
forged    0 ──────────────────────── bound           whatever its reason says: refused
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import settings as examples
from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.plan.checking.optimality import check_strictly
from airflow_dagsched.plan.plan_types import Plan
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.settings import DEFAULTS, Settings
from tests.plan.drawn import clusters, dataflows, drawn, standalone

PER_STEP = "one application per step"


def each(names: Iterable[str], **fields: Any) -> dict[str, Any]:
    """Steps of equal fields."""
    return {name: dict(fields) for name in names}


def told(made: Plan, flow: Dataflow, cluster: Cluster, settings: Settings = DEFAULTS) -> list[str]:
    return [str(one) for one in check_strictly(made, flow, cluster, settings)]


def bounded(made: Plan, seconds: float) -> Plan:
    return replace(made, lower_bound_s=seconds, gap=made.makespan_s / seconds - 1)


@examples(max_examples=30, deadline=None)
@given(dataflows(most=12), clusters())
def test_a_bound_that_is_the_makespan_without_a_proof_is_refused(flow: Dataflow, cluster: Cluster) -> None:
    """Of few steps every head and tail is looked at: the check's own bound is exact."""
    try:
        made = plan(flow, cluster)
    except DoesNotFit:
        assume(False)
        raise
    assume(made.gap > 0.001)
    assert told(made, flow, cluster) == []
    forged = told(bounded(made, made.makespan_s), flow, cluster)
    assert any("but nothing gives more than" in text for text in forged)


def test_a_path_counts_starts_and_rows_where_no_group_can_be_shared() -> None:
    """Each edge of it is cut.

    a ══> b ──> (t) ──> c      8 + a 10 + [write 1, start 8, read 1] + b 10 + t 60 + 8 + c 10
    """
    flow = drawn("a == b; b -- t; t -- c", tasks="t", size={"a": 200 * 2**20}, **each("abc", runtime_s=10))
    flow = replace(flow, tasks=(replace(flow.tasks[0], runtime_s=60.0),))
    cluster, settings = standalone(4), Settings(apart=(("a", "b"),))
    made = plan(flow, cluster, settings)
    assert made.lower_bound_s == 8 + 10 + 10 + 10 + 60 + 8 + 10
    assert told(made, flow, cluster, settings) == []
    early = replace(made, lower_bound_s=106.0, gap=116 / 106 - 1)
    assert told(early, flow, cluster, settings) == ["times: lower_bound_s: is 106 s, but the path take 116 s"]


def test_steps_that_repeat_count_as_one_on_a_path() -> None:
    """
    a ══> b ══> c ══> d     b and c are a loop: the longer of them counts, whichever edge leads in or out
          ^─────┘
    """
    loop = {"repeat": True, "runtime_s": 10}
    flow = drawn(
        "a == b; b == c; c -- b; b == d", a={"runtime_s": 5}, b=loop, c=loop | {"runtime_s": 20}, d={"runtime_s": 5}
    )
    made = plan(flow, standalone(4))
    assert made.lower_bound_s == 8 + 5 + 20 + 5
    assert told(made, flow, standalone(4)) == []
    assert told(bounded(made, 42.0), flow, standalone(4)) != []


def test_a_crowd_is_no_larger_than_told() -> None:
    """Five steps on four cores: some core has two of them, 20 + 20 s at least."""
    flow, cluster = drawn("", **each("abcde", runtime_s=30)), standalone(4)
    made = plan(flow, cluster)
    assert made.lower_bound_reason.startswith("the longest steps are more than 4 cores")
    assert made.lower_bound_s == 8 + 30 + 30
    assert told(made, flow, cluster) == []
    late = replace(made, makespan_s=100.0)
    assert any("nothing gives more than 68 s" in text for text in told(bounded(late, 70.0), flow, cluster))


def test_an_area_is_looked_at_between_all_heads_and_tails() -> None:
    """What is between two steps takes all cores.

    a ──> b1 .. b4 ──> c       two cores: 8 + a 30 + 4 * 25 / 2 + c 30; all core-seconds alone give less
    """
    names = [f"b{at}" for at in range(1, 5)]
    edges = "; ".join(f"a == {name}; {name} == c" for name in names)
    flow = drawn(edges, **each("ac", runtime_s=30), **each(names, runtime_s=25))
    made = plan(flow, standalone(2))
    assert made.lower_bound_reason == "the steps need 160 core-seconds of 2 cores"
    assert made.lower_bound_s == 8 + 30 + 4 * 25 / 2 + 30
    assert told(made, flow, standalone(2)) == []
    late = bounded(replace(made, makespan_s=200.0), 119.0)
    assert any("nothing gives more than 118 s" in text for text in told(late, flow, standalone(2)))


def test_memory_bounds_where_each_instance_has_its_own() -> None:
    """Eight streams of 10 GiB, padded 11, for 8 + 100 s: 88 GiB in 64."""
    streams = each((f"s{at}" for at in range(8)), mode="streaming", runtime_s=100, memory_mb=10_240)
    flow, cluster = drawn("", **streams), standalone(64, memory_mb=65_536)
    made = plan(flow, cluster)
    assert made.lower_bound_reason.startswith("the steps need their memory")
    assert told(made, flow, cluster) == []
    assert any("but nothing gives more than" in text for text in told(bounded(made, made.makespan_s), flow, cluster))


FLOW = drawn(
    "a == b; a == c; b == d; c ~~ d",
    size={"a": 10**9, "b": 10**8, "c": 10**9},
    **each("abcd", runtime_s=20, parallelism=3),
)
"""
a ══> b ══> d       per step: four groups, which spill a's and b's datasets
└───> c ~~~~^
"""


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"groups": 5}, "takes 5 groups, one application per step takes 4"),
        ({"spilled_bytes": 10**9}, "spills 1000000000 bytes, so many groups spill 1100000000"),
        ({"spilled_bytes": 2 * 10**9}, "takes 2000000000 spilled_bytes, one application per step takes 1100000000"),
        ({"makespan_s": 60.0}, "at least"),
        ({"makespan_s": 6000.0}, "at most"),
        ({"core_seconds": 100.0}, "at least"),
    ],
)
def test_one_application_per_step_takes_what_it_takes(fields: dict[str, Any], rule: str) -> None:
    cluster = standalone(2, 2)
    made = plan(FLOW, cluster)
    assert told(made, FLOW, cluster) == []
    per_step = next(one for one in made.compared if one.what == PER_STEP)
    others = tuple(replace(one, **fields) if one is per_step else one for one in made.compared)
    forged = told(replace(made, compared=others), FLOW, cluster)
    assert any(text.startswith(f"compared: {PER_STEP}") and rule in text for text in forged), forged


def test_one_group_spills_nothing() -> None:
    cluster = standalone(2, 2)
    made = plan(FLOW, cluster)
    forged = tuple(replace(one, spilled_bytes=1) if one.groups == 1 else one for one in made.compared)
    assert any(
        "spills 1 bytes, but has one group" in text for text in told(replace(made, compared=forged), FLOW, cluster)
    )
