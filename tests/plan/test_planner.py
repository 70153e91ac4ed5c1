"""Whole plans: random ones are accepted by the checker, hold what they must, and do not depend on order."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit, InvalidInput
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.codec import check_value, decode_json, digest_dataflow, encode_value
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.plan.checking.optimality import check_strictly
from airflow_dagsched.plan.plan_types import Plan
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.settings import DEFAULTS, Settings
from tests.plan.drawn import clusters, dataflows, drawn, standalone


def planned(flow: Dataflow, cluster: Cluster, settings: Settings = DEFAULTS) -> Plan:
    """The plan; an example that does not fit tells nothing."""
    try:
        return plan(flow, cluster, settings)
    except DoesNotFit:
        assume(False)
        raise


def streaming(flow: Dataflow, names: set[str]) -> Dataflow:
    steps = (replace(step, mode="streaming") if step.id in names else step for step in flow.steps)
    return replace(flow, steps=tuple(steps))


@settings(max_examples=60, deadline=None)
@given(dataflows(), clusters())
def test_the_checker_accepts_every_plan(flow: Dataflow, cluster: Cluster) -> None:
    """It ends no sooner than its bound, says why, and is read back as it was written."""
    made = planned(flow, cluster)
    assert check_strictly(made, flow, cluster) == ()
    assert made.lower_bound_s <= made.makespan_s
    assert made.makespan_s >= max((group.end_s for group in made.groups), default=0.0)
    assert all(group.reason for group in made.groups)
    assert all(spill.reason for spill in made.spills)
    assert decode_json(Plan, encode_value(made), "plan") == check_value(Plan, made, "plan") == made


@settings(max_examples=40, deadline=None)
@given(dataflows(most=15), clusters(), st.integers(0, 2**32))
def test_the_checker_accepts_plans_of_streaming_dataflows(flow: Dataflow, cluster: Cluster, seed: int) -> None:
    rng = random.Random(seed)
    flow = streaming(flow, {step.id for step in flow.steps if rng.random() < 0.3})
    made = planned(flow, cluster)
    assert check_strictly(made, flow, cluster) == ()
    assert made.lower_bound_s <= made.makespan_s


@settings(max_examples=30, deadline=None)
@given(dataflows(), clusters(), st.sampled_from([1, 2, 7, 64]), st.sampled_from([1, 4, 32]))
def test_nothing_is_lost_or_twice_or_over_capacity(flow: Dataflow, cluster: Cluster, slots: int, cores: int) -> None:
    made = planned(flow, cluster, Settings(slots=slots, container_cores=cores))
    wanted = Counter((step.id, index) for step in flow.steps for index in range(step.parallelism))
    assert Counter(one for group in made.groups for box in group.containers for one in box.instances) == wanted
    for group in made.groups:
        held: Counter[tuple[str, str]] = Counter()
        for box in group.containers:
            held[box.worker, "cores"] += box.cores
            held[box.worker, "memory_mb"] += box.memory_mb
        assert all(held[worker.id, "cores"] <= worker.cores for worker in cluster.workers)
        assert all(held[worker.id, "memory_mb"] <= worker.memory_mb for worker in cluster.workers)


def shuffled(rng: random.Random, value: Any) -> Any:
    """The same dataflow or cluster with its arrays in another order."""
    arrays = {name: getattr(value, name) for name in value.__struct_fields__ if isinstance(getattr(value, name), tuple)}
    return replace(value, **{name: tuple(rng.sample(items, len(items))) for name, items in arrays.items()})


@settings(max_examples=25, deadline=None)
@given(dataflows(), clusters(), st.integers(0, 2**32))
def test_equal_inputs_in_any_order_give_the_same_bytes(flow: Dataflow, cluster: Cluster, seed: int) -> None:
    rng = random.Random(seed)
    made = encode_value(planned(flow, cluster))
    assert encode_value(plan(shuffled(rng, flow), shuffled(rng, cluster))) == made


@settings(max_examples=50, deadline=None)
@given(dataflows(most=40), clusters(), st.sampled_from([0.001, 1e6]))
def test_a_wrong_runtime_makes_wrong_times_only(flow: Dataflow, cluster: Cluster, factor: float) -> None:
    """Of the dataflow as it is, a plan made with wrong runtimes breaks no rule but those of times, shares and slots."""
    wrong = replace(flow, steps=tuple(replace(step, runtime_s=(step.runtime_s or 1) * factor) for step in flow.steps))
    assert {violation.rule for violation in check_strictly(planned(wrong, cluster), flow, cluster)} <= {
        "times",
        "compared",
        "work",
        "slots",
    }


def test_times_follow_from_the_declarations() -> None:
    """
    a (10 s) ══> b (20 s)     start 8 + 10 + write 200 MiB at 100 MiB/s
    └──> (t, 60 s) ──> b      t, then start 8 + read 2 + 20
    """
    flow = drawn("a == b; a -- t; t -- b", tasks="t", size={"a": 200 * 2**20}, a={"runtime_s": 10}, b={"runtime_s": 20})
    flow = replace(flow, tasks=tuple(replace(task, runtime_s=60.0) for task in flow.tasks))
    made = plan(flow, standalone(2, spill_mb_s=100.0))
    assert [(group.start_s, group.end_s) for group in made.groups] == [(0.0, 8 + 10 + 2), (20 + 60, 80 + 8 + 2 + 20)]
    assert (made.makespan_s, made.lower_bound_s) == (110.0, 8 + 10 + 60 + 8 + 20)


def test_steps_side_by_side_end_apart() -> None:
    """
    a (10 s) ──> b (30 s)    10 + 30 on one slot, c (25 s) beside them: ends 10, 40 and 25
    c (25 s)
    """
    flow = drawn("a == b; c == b", a={"runtime_s": 10}, b={"runtime_s": 30}, c={"runtime_s": 25})
    group = plan(flow, standalone(4)).groups[0]
    assert (group.slots, group.time.compute, group.finish_spread_s) == (2, 25 + 30, 55 - 10)
    assert group.begins == {"a": 0.0, "c": 0.0, "b": 25.0}


def test_a_plan_says_when_each_step_begins() -> None:
    """
    2 cores    c c c c c c    c (30 s) first, a and b (15 s each) one after the other beside it: 30 s.
               a a a b b b    With a and b first, c would begin at 15 s and all end at 45 s.
    """
    flow = drawn("a; b; c", a={"runtime_s": 15}, b={"runtime_s": 15}, c={"runtime_s": 30})
    group = plan(flow, standalone(2), Settings(slots=2)).groups[0]
    assert (group.steps, group.slots, group.time.compute) == (("c", "a", "b"), 2, 30.0)
    assert group.begins == {"c": 0.0, "a": 0.0, "b": 15.0}
    # On one core each waits for the one before; alone, or resident, there is nothing to tell.
    assert plan(flow, standalone(1)).groups[0].begins == {"c": 0.0, "a": 30.0, "b": 45.0}
    assert plan(drawn("a"), standalone(1)).groups[0].begins == {}
    streams = drawn("a == b", a={"mode": "streaming"}, b={"mode": "streaming"})
    assert plan(streams, standalone(2)).groups[0].begins == {}


def test_groups_without_room_wait_for_it() -> None:
    """Two groups of other settings, one worker with room for one: 8 + 1 s each, one after another."""
    made = plan(drawn("a; b", b={"application": {"jars": "x"}}), standalone(1))
    assert [(group.id, group.start_s) for group in made.groups] == [("launch_a", 0.0), ("launch_b", 9.0)]
    assert made.makespan_s == 2 * 9


def test_a_dataflow_without_steps_has_an_empty_plan() -> None:
    made = plan(Dataflow(name="empty"), standalone(1))
    assert (made.groups, made.makespan_s, made.lower_bound_s) == ((), 0.0, 0.0)


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(InvalidInput, match="slots"):
        plan(drawn("a"), standalone(1), Settings(slots=0))


def test_the_digest_is_of_what_the_author_declares() -> None:
    flow = drawn("a == b", a={"memory_mb": 5})
    measured = drawn("a == b", size={"a": 9}, a={"memory_mb": 7, "runtime_s": 3})
    assert digest_dataflow(flow) == digest_dataflow(measured)
    assert digest_dataflow(flow) != digest_dataflow(drawn("a == b", a={"cores": 2}))
    assert digest_dataflow(flow) != digest_dataflow(drawn("a ~~ b"))


def test_no_container_is_empty_where_steps_are_pinned() -> None:
    """a, three instances of four cores each, may be on w1 only: a second container on w2 would hold nothing."""
    flow = drawn("a; b", a={"parallelism": 3, "cores": 4, "pinned": ("w1",)}, b={"cores": 4})
    told = Settings(together=(("a", "b"),))
    made = plan(flow, standalone(8, 8), told)
    assert check_strictly(made, flow, standalone(8, 8), told) == ()
    assert [box.worker for box in made.groups[0].containers] == ["w1", "w1", "w2"]
