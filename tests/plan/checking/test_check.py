"""The checker finds what is broken: a valid plan is broken in every way, and each is reported by its rule."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import airflow_dagsched.plan.checking as checker
from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.state import Movement, State
from airflow_dagsched.plan.checking import check
from airflow_dagsched.plan.plan_types import Container, Driver, Group, Plan, Pruned, Times
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.problem.run import Policy
from airflow_dagsched.plan.settings import Settings
from airflow_dagsched.plan.settings_file import parse_placement_settings
from airflow_dagsched.plan.spill import Spill
from tests.plan.drawn import drawn, standalone
from tests.plan.placing import place_by

FLOW = drawn(
    "a == b; a -- t; t -- c; b == c; c ~~ d; e -- d",
    tasks="t",
    a={"parallelism": 3, "memory_mb": 800},
    d={"pinned": ("w2",)},
    e={"isolate": True},
)
"""
a ══> b ══> c ~~> d     t stands between a and c: {a}, {b c}, {d}; e is isolated
└──> (t) ──>┘     e ──> d
"""
CLUSTER = standalone(4, 4)
SETTINGS = Settings(apart=(("c", "d"),), together=(("b", "c"),))
PLAN = plan(FLOW, CLUSTER, SETTINGS)


def of(made: Plan, name: str) -> Group:
    return next(group for group in made.groups if group.id == name)


def regrouped(name: str, **fields: Any) -> Plan:
    return replace(PLAN, groups=tuple(replace(g, **fields) if g.id == name else g for g in PLAN.groups))


def reboxed(name: str, change: Callable[[Container], Container]) -> Plan:
    return regrouped(name, containers=tuple(change(box) for box in of(PLAN, name).containers))


def box(name: str, **fields: Any) -> Plan:
    return reboxed(name, lambda one: replace(one, **fields))


SPILL = PLAN.spills[0]
A, B, D, E = (of(PLAN, f"launch_{name}") for name in "abde")
FAR = {"start_s": 1000.0, "end_s": 1000.0 + D.end_s - D.start_s}

BROKEN: dict[str, tuple[Plan, str]] = {
    "another dataflow": (replace(PLAN, dataflow="other"), "identity"),
    "another digest": (replace(PLAN, digest="0" * 64), "digest"),
    "a group is lost": (replace(PLAN, groups=PLAN.groups[:-1]), "partition"),
    "a step is twice": (regrouped("launch_d", steps=("d", "c")), "partition"),
    "an unknown step": (regrouped("launch_d", steps=("d", "x")), "partition"),
    "a group without steps": (regrouped("launch_d", steps=()), "partition"),
    "two groups of one id": (replace(PLAN, groups=(*PLAN.groups, D)), "ids"),
    "a group called like a step": (regrouped("launch_d", id="d"), "ids"),
    "an isolated step has company": (
        replace(PLAN, groups=tuple(replace(E, steps=("d", "e")) if g is E else g for g in PLAN.groups if g is not D)),
        "isolate",
    ),
    "a group without a reason": (regrouped("launch_a", reason=""), "reason"),
    "a spill without a reason": (replace(PLAN, spills=(replace(SPILL, reason=""),)), "reason"),
    "pruned without a reason": (regrouped("launch_a", pruned=(Pruned(what="worker", id="w2", reason=""),)), "reason"),
    "a cut channel without a spill": (replace(PLAN, spills=()), "completable"),
    "a spill of no cut channel": (
        replace(PLAN, spills=(*PLAN.spills, Spill(src="c", dst=("d",), reason="r"))),
        "spill",
    ),
    "a spill twice": (replace(PLAN, spills=(*PLAN.spills, *PLAN.spills)), "spill"),
    "a spill of an unknown dataset": (
        replace(PLAN, spills=(*PLAN.spills, Spill(src="a", output="x", dst=(), reason="r"))),
        "spill",
    ),
    "a group does not wait for a task": (regrouped("launch_b", after=("launch_a",)), "completable"),
    "a group waits for nobody known": (regrouped("launch_b", after=("launch_a", "t", "x")), "completable"),
    "a group waits for one it takes nothing from": (regrouped("launch_b", after=(*B.after, "launch_e")), "after"),
    "a group waits for one twice": (regrouped("launch_b", after=(*B.after, *B.after)), "after"),
    "groups wait for each other": (regrouped("launch_a", after=("launch_b",)), "acyclic"),
    "steps out of order": (regrouped("launch_b", steps=("c", "b")), "order"),
    "an instance is lost": (box("launch_a", instances=(("a", 0), ("a", 1))), "instances"),
    "an instance is twice": (box("launch_a", instances=(*A.containers[0].instances, ("a", 0))), "instances"),
    "an instance too many": (box("launch_a", instances=(*A.containers[0].instances, ("a", 3))), "instances"),
    "a pruned instance runs": (
        regrouped("launch_a", pruned=(Pruned(what="instance", id="a/1", reason="empty"),)),
        "instances",
    ),
    "a pinned step elsewhere": (box("launch_d", worker="w1"), "pinned"),
    "an unknown worker": (box("launch_a", worker="w9"), "worker"),
    "more cores than the worker has": (box("launch_a", cores=5), "capacity"),
    "more memory than the worker has": (box("launch_a", memory_mb=64_001), "capacity"),
    "less memory than declared": (
        box("launch_a", memory_mb=100, required=replace(A.containers[0].required, memory_mb=100)),
        "capacity",
    ),
    "less than required": (box("launch_a", memory_mb=A.containers[0].required.memory_mb - 1), "capacity"),
    "no room for the driver": (regrouped("launch_a", driver=Driver(worker="w1", cores=2)), "capacity"),
    "unequal containers": (
        regrouped("launch_a", containers=(A.containers[0], replace(A.containers[0], id="x", instances=(), cores=1))),
        "shape",
    ),
    "groups overlap on a worker": (
        replace(
            PLAN,
            groups=tuple(
                replace(g, containers=tuple(replace(one, cores=3, worker="w1") for one in g.containers))
                if g in (A, E)
                else g
                for g in PLAN.groups
            ),
        ),
        "capacity",
    ),
    "a group starts too early": (
        regrouped("launch_b", start_s=A.end_s, end_s=A.end_s + B.end_s - B.start_s, after=B.after),
        "times",
    ),
    "a group starts before what it waits for": (regrouped("launch_d", start_s=0.0, end_s=D.time.total_s), "times"),
    "a group lasts longer than its parts": (regrouped("launch_d", time=Times(compute=1.0)), "times"),
    "steps end further apart than they run": (regrouped("launch_a", finish_spread_s=1e6), "times"),
    "the makespan is too short": (replace(PLAN, makespan_s=PLAN.makespan_s - 1), "times"),
    "the lower bound is too high": (replace(PLAN, lower_bound_s=PLAN.makespan_s + 1), "times"),
    "a group ends after the makespan": (regrouped("launch_d", **FAR), "times"),
}

STATE = drawn("s", s={"parallelism": 2, "mode": "streaming", "stateful": True, "memory_mb": 100})
"""Two instances on two workers, each with a standby on the other."""
HELD = place_by(
    plan(STATE, CLUSTER),
    STATE,
    CLUSTER,
    Policy("high_availability", parse_placement_settings(named={"num_standbys": 1}), State()),
)


def assigned(**fields: Any) -> Plan:
    assert HELD.assignment is not None
    return replace(HELD, assignment=replace(HELD.assignment, **fields))


def moving(source: str, target: str, instance: str = "s/0", reason: str = "r") -> Plan:
    one = Movement(instance=instance, from_worker=source, to_worker=target, reason=reason)
    return replace(HELD, movements=(one,))


def held(**fields: Any) -> Plan:
    group = HELD.groups[0]
    boxes = tuple(replace(one, **fields) for one in group.containers)
    return replace(HELD, groups=(replace(group, containers=boxes),))


UNASSIGNED: dict[str, tuple[Plan, str]] = {
    "copies, but no assignment": (replace(HELD, assignment=None), "assignment"),
    "movements, but no assignment": (replace(moving("w1", "w2"), assignment=None), "assignment"),
    "an instance is not assigned": (assigned(active={"s/0": "w1"}), "assignment"),
    "an instance is active elsewhere": (assigned(active={"s/0": "w2", "s/1": "w1"}), "assignment"),
    "a standby is elsewhere": (assigned(standby={"s/0": ("w1",), "s/1": ("w1",)}), "assignment"),
    "a warm-up that no container has": (assigned(warmup={"s/0": ("w2",)}), "assignment"),
    "a standby on an unknown worker": (assigned(standby={"s/0": ("w9",), "s/1": ("w1",)}), "assignment"),
    "a copy beside its active": (held(standbys=(("s", 0), ("s", 1))), "copies"),
    "a copy of no instance": (held(warmups=(("s", 7),)), "copies"),
    "copies above what is asked": (
        held(memory_mb=150, required=replace(HELD.groups[0].containers[0].required, memory_mb=150)),
        "capacity",
    ),
    "a movement to where it is": (moving("w1", "w1"), "movements"),
    "a movement to an unknown worker": (moving("w1", "w9"), "movements"),
    "a movement of nobody": (moving("w1", "w2", "t/0"), "movements"),
    "a movement without a reason": (moving("w1", "w2", reason=""), "reason"),
}


def test_a_plan_with_state_is_fine() -> None:
    assert check(HELD, STATE, CLUSTER) == ()
    assert check(moving("w9", "w1"), STATE, CLUSTER) == ()


@pytest.mark.parametrize("how", UNASSIGNED)
def test_every_way_to_break_its_assignment_is_reported(how: str) -> None:
    made, rule = UNASSIGNED[how]
    assert rule in {violation.rule for violation in check(made, STATE, CLUSTER)}


def test_a_step_without_state_has_no_copies() -> None:
    flow = replace(STATE, steps=tuple(replace(step, stateful=False) for step in STATE.steps))
    assert "copies" in {violation.rule for violation in check(HELD, flow, CLUSTER)}


def timed_task() -> Any:
    """The ordinary task declares its runtime, so that a start right behind the group above it is too early."""
    return replace(FLOW, tasks=(replace(FLOW.tasks[0], runtime_s=10.0),))


def test_the_plan_is_fine() -> None:
    assert check(PLAN, FLOW, CLUSTER, SETTINGS) == ()
    assert [group.id for group in PLAN.groups] == ["launch_a", "launch_e", "launch_b", "launch_d"]


@pytest.mark.parametrize("how", BROKEN)
def test_every_way_to_break_it_is_reported(how: str) -> None:
    made, rule = BROKEN[how]
    assert rule in {violation.rule for violation in check(made, timed_task(), CLUSTER, SETTINGS)}


def test_streaming_steps_hold_their_resources() -> None:
    flow = replace(FLOW, steps=tuple(replace(step, mode="streaming") for step in FLOW.steps))
    made = replace(PLAN, digest=plan(flow, standalone(16, 16)).digest)
    assert {violation.rule for violation in check(made, flow, CLUSTER, SETTINGS)} == {"residency"}


def test_settings_must_be_equal_within_a_group() -> None:
    flow = replace(FLOW, steps=tuple(replace(s, application={"x": 1}) if s.id == "b" else s for s in FLOW.steps))
    assert "application" in {violation.rule for violation in check(PLAN, flow, CLUSTER, SETTINGS)}


def test_what_is_free_counts() -> None:
    workers = tuple(replace(worker, free=replace(worker.free, cores=0)) for worker in CLUSTER.workers)
    found = check(PLAN, FLOW, replace(CLUSTER, workers=workers), SETTINGS)
    assert {violation.rule for violation in found} == {"capacity"}
    assert str(found[0]) == "capacity: w1: cores held 3 at 0 s with group 'launch_a', free 0"


def test_a_plan_of_nonsense_is_reported_not_raised() -> None:
    nonsense = Plan(
        dataflow="?",
        digest="?",
        groups=(Group(id="g", steps=("x", "x"), after=("g",), reason="r"),),
        spills=(Spill(src="x", dst=("y",), reason="r"),),
    )
    cluster = Cluster(manager="standalone", workers=(Worker(id="w", host="h", cores=1, memory_mb=1),))
    assert {"identity", "partition", "acyclic", "spill"} <= {one.rule for one in check(nonsense, FLOW, cluster)}


def test_the_checker_shares_no_code_with_the_passes() -> None:
    """Its own folder, the model, the values of plan and settings are all it imports of the package."""
    values = ("airflow_dagsched.plan.plan_types", "airflow_dagsched.plan.settings")
    allowed = ("airflow_dagsched.plan.checking", "airflow_dagsched.model", *values)
    files = list(Path(checker.__file__).parent.rglob("*.py"))
    nodes = (node for file in files for node in ast.walk(ast.parse(file.read_text())))
    found = {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    ours = {name for name in found if name.startswith("airflow_dagsched")}
    assert ours
    assert [name for name in ours if not name.startswith(allowed)] == []
    assert {"airflow_dagsched.model.graph", "airflow_dagsched.model.order"}.isdisjoint(ours)
