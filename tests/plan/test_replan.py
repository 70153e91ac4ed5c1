"""Plans made anew part-way through a run: whole, accepted by the checker, and no other than they must be."""

from __future__ import annotations

import functools
import random

import pytest
from hypothesis import assume, given
from hypothesis import settings as examples
from hypothesis import strategies as st
from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit, InvalidInput
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.codec import encode
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.state import Measured, State
from airflow_dagsched.plan.check import check
from airflow_dagsched.plan.informed import informed
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.replan import replan
from airflow_dagsched.plan.settings import Settings
from airflow_dagsched.plan.values import Plan
from tests.plan.drawn import clusters, dataflows, drawn, standalone


def all_above(made: Plan, flow: Dataflow) -> dict[str, set[str]]:
    """For each group the groups and ordinary tasks that end before it, directly or not."""
    home = {step: group.id for group in made.groups for step in group.steps}
    direct: dict[str, set[str]] = {}
    for src, dst in [*((channel.src, channel.dst) for channel in flow.channels), *flow.dependencies]:
        if home.get(src, src) != home.get(dst, dst):
            direct.setdefault(home.get(dst, dst), set()).add(home.get(src, src))

    @functools.cache
    def above(name: str) -> frozenset[str]:
        found = direct.get(name, set())
        return frozenset(found).union(*(above(other) for other in found))

    return {group.id: set(above(group.id)) for group in made.groups}


def part_way(made: Plan, flow: Dataflow, rng: random.Random) -> State:
    """Some groups finished, with all above them; some running of those that could, on workers of their own."""
    above = all_above(made, flow)
    finished: set[str] = set()
    running: dict[str, set[str]] = {}
    for group in sorted(made.groups, key=lambda group: group.start_s):
        workers = {box.worker for box in group.containers}
        if not above[group.id] & above.keys() <= finished:
            continue
        if rng.random() < 0.7:
            finished |= {group.id, *above[group.id]}
        elif rng.random() < 0.7 and workers.isdisjoint(set().union(*running.values())):
            running[group.id] = workers
            finished |= above[group.id]
    measured = {
        step: Measured(runtime_s=rng.choice([0.1, 30.0, 900.0]), memory_mb=rng.choice([None, 50, 1500]))
        for group in made.groups
        for step in group.steps
        if rng.random() < 0.3
    }
    elapsed = {name: rng.choice([0.0, 5.0, 1e4]) for name in running}
    return State(finished=tuple(sorted(finished)), running=tuple(running), measured=measured, elapsed_s=elapsed)


def fitting(flow: Dataflow, cluster: Cluster) -> Plan:
    try:
        return plan(flow, cluster)
    except DoesNotFit:
        assume(False)
        raise


@examples(max_examples=100, deadline=None)
@given(dataflows(most=30), clusters(), st.integers(0, 2**32))
def test_from_any_prefix_of_a_run(flow: Dataflow, cluster: Cluster, seed: int) -> None:
    """The checker accepts it, finished groups stay; replanning it changes nothing where nothing was stopped."""
    rng = random.Random(seed)
    made = fitting(flow, cluster)
    state = part_way(made, flow, rng)
    try:
        found = replan(made, flow, cluster, state)
    except DoesNotFit:
        assume(False)
        raise
    assert check(found.plan, *informed(flow, cluster, state), state=state) == ()
    left = {group.id: group.steps for group in found.plan.groups}
    assert all(left[group.id] == group.steps for group in made.groups if group.id in state.finished)
    if {change.group for change in found.changes}.isdisjoint(state.running):
        again = replan(found.plan, flow, cluster, state)
        assert encode(again.plan) == encode(found.plan)
        assert again.changes == ()


@examples(max_examples=50, deadline=None)
@given(dataflows(most=30), clusters(), st.integers(0, 2**32))
def test_workers_that_are_gone(flow: Dataflow, cluster: Cluster, seed: int) -> None:
    """The checker accepts the plan for those that are left, and running groups that lost theirs begin again."""
    rng = random.Random(seed)
    flow = replace(flow, steps=tuple(replace(step, pinned=()) for step in flow.steps))
    made = fitting(flow, cluster)
    state = part_way(made, flow, rng)
    fewer = replace(cluster, workers=tuple(rng.sample(cluster.workers, len(cluster.workers) - 1)))
    try:
        found = replan(made, flow, fewer, state)
    except DoesNotFit:
        assume(False)
        raise
    assert check(found.plan, *informed(flow, fewer, state), state=state) == ()


@examples(max_examples=50, deadline=None)
@given(dataflows(most=40), clusters())
def test_before_a_run_begins_nothing_changes(flow: Dataflow, cluster: Cluster) -> None:
    made = fitting(flow, cluster)
    found = replan(made, flow, cluster, State())
    assert encode(found.plan) == encode(made)
    assert (found.changes, found.saved_s) == ((), 0.0)


SLOW = {"application": {"jars": "x"}, "runtime_s": 50.0}


def test_a_running_group_goes_on_and_its_readers_wait() -> None:
    """a ══> b on one worker: a has been running for 20 of its 58 s, b starts at 58."""
    flow = drawn("a == b", a={"runtime_s": 50.0}, b=SLOW)
    cluster = standalone(1)
    made = plan(flow, cluster)
    state = State(running=("launch_a",), elapsed_s={"launch_a": 20.0})
    found = replan(made, flow, cluster, state)
    assert [(group.id, group.start_s, group.end_s) for group in found.plan.groups] == [
        ("launch_a", 0.0, 58.0),
        ("launch_b", 58.0, 116.0),
    ]
    assert (found.changes, found.left_s) == ((), 116.0 - 20.0)


def test_a_group_whose_worker_is_gone_begins_again() -> None:
    flow, cluster = drawn("a", a={"runtime_s": 50.0}), standalone(1, 1)
    made = plan(flow, cluster)
    fewer = replace(cluster, workers=cluster.workers[1:])
    found = replan(made, flow, fewer, State(running=("launch",), elapsed_s={"launch": 20.0}))
    assert [str(change) for change in found.changes] == ["launch: begins again: worker w1 is gone"]
    assert found.plan.groups[0].containers[0].worker == "w2"


def test_what_was_read_is_made_anew() -> None:
    """a was cleared: b, finished, and c behind it run again."""
    flow = drawn("a == b; b == c", a=SLOW, c=SLOW)
    made = plan(flow, standalone(1))
    found = replan(made, flow, standalone(1), State(finished=("launch_b",)))
    assert [str(change) for change in found.changes] == ["launch_b: begins again: what it reads is made anew"]


def test_measured_values_move_what_is_left() -> None:
    """b took 5 s, not 50: what is left ends 45 s sooner, in the same groups."""
    flow = drawn("a == b; b == c", a=SLOW, b={"runtime_s": 50.0}, c=SLOW)
    cluster = standalone(1)
    made = plan(flow, cluster)
    state = State(finished=("launch_a",), measured={"b": Measured(runtime_s=5.0)})
    found = replan(made, flow, cluster, state)
    assert (found.changes, found.plan.makespan_s) == ((), made.makespan_s - 45.0)


def test_a_better_plan_is_taken_if_it_is_better_by_the_margin() -> None:
    """
    a ══> b      a plan of one application a step: 4 starts, 32 + 40 s; as one group: 8 + 40 s
    c ══> d      after a has finished, 8 + 30 s instead of 24 + 30 s
    """
    ten = {"runtime_s": 10.0}
    flow, cluster = drawn("a == b; b == c; c == d", a=ten, b=ten, c=ten, d=ten), standalone(1)
    names = {step: {"application": {"only": step}, **ten} for step in "abcd"}
    apart = plan(drawn("a == b; b == c; c == d", **names), cluster)
    old = replace(apart, digest=plan(flow, cluster).digest)
    state = State(finished=("launch_a",))
    found = replan(old, flow, cluster, state)
    assert [group.steps for group in found.plan.groups] == [("a",), ("b", "c", "d")]
    assert (found.left_s, found.saved_s) == (8 + 30, 2 * 8)
    assert {str(change) for change in found.changes} == {
        "launch_b: new: what is left ends 16.0 s sooner, in 38.0 s instead of 54.0 s",
        "launch_c: dissolved: what is left ends 16.0 s sooner, in 38.0 s instead of 54.0 s",
        "launch_d: dissolved: what is left ends 16.0 s sooner, in 38.0 s instead of 54.0 s",
    }
    assert replan(old, flow, cluster, state, Settings(replan_margin=0.5)).changes == ()


def test_a_plan_of_another_dataflow_is_refused() -> None:
    made = plan(drawn("a"), standalone(1))
    with pytest.raises(InvalidInput, match="digest"):
        replan(made, drawn("a == b"), standalone(1), State())


def test_a_state_of_another_plan_is_refused() -> None:
    made = plan(drawn("a"), standalone(1))
    with pytest.raises(InvalidInput, match=r"finished\[0\].*no 'launch_x'"):
        replan(made, drawn("a"), standalone(1), State(finished=("launch_x",)))
