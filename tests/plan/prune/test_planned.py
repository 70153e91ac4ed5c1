"""Pruning as a part of planning: what is left out is not asked for, and takes no time."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.codec import encode_value
from airflow_dagsched.model.dataflow import Block, Channel, Dataflow, Partition, Source
from airflow_dagsched.model.state import State
from airflow_dagsched.plan.checking import check
from airflow_dagsched.plan.checking.optimality import check_strictly
from airflow_dagsched.plan.draft import Draft
from airflow_dagsched.plan.passes.apply_policy import apply_policy
from airflow_dagsched.plan.passes.choose_holders import FAR
from airflow_dagsched.plan.passes.exclusions import exclude_pruned
from airflow_dagsched.plan.passes.prune_inputs import prune_inputs
from airflow_dagsched.plan.passes.schedule_groups import schedule_groups
from airflow_dagsched.plan.passes.select_groups import select_groups
from airflow_dagsched.plan.plan_types import Group, Plan, Pruned
from airflow_dagsched.plan.planner import PASSES, plan, run_passes
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.problem.run import Policy, Run
from airflow_dagsched.plan.pruning import PruningInput
from airflow_dagsched.plan.reasons.pruning import DatasetWithoutRows, NoInput
from airflow_dagsched.plan.report.page import explain_plan
from airflow_dagsched.plan.settings import Settings
from airflow_dagsched.plan.settings_file import parse_placement_settings
from tests.plan.drawn import dataflows, drawn, standalone

MIB = 2**20
IDLE: dict[str, Any] = {"works_without_input": False}
OFF = PruningInput(mode=False)


def days(*hosts: str, where: str | None = "day = 1", size: int = 10 * MIB) -> tuple[Source, ...]:
    """Day 1 is on the first host, day 2 on the second, and so on."""
    partitions = (
        Partition(key={"day": day}, bytes=size, blocks=(Block(bytes=size, hosts=(host,)),))
        for day, host in enumerate(hosts, 1)
    )
    return (Source(path="/t", where=where, partitions=tuple(partitions)),)


def sound(flow: Dataflow, cluster: Cluster, asked: PruningInput = PruningInput(), **more: Any) -> Plan:  # noqa: B008
    made = plan(flow, cluster, run=Run(pruning_input=asked, **more))
    assert check_strictly(made, flow, cluster) == ()
    return made


def workers(group: Group) -> list[str]:
    return [box.worker for box in group.containers]


def test_only_the_holder_of_the_day_gets_executors() -> None:
    """read (4 instances, day 1 of 1 MiB on w2: one split) ══> sum (4)     unpruned: four at once, anywhere"""
    flow = drawn("a == b", a={"sources": days("h2", "h1", "h3", size=MIB), "parallelism": 4}, b={"parallelism": 4})
    (group,) = sound(flow, standalone(4, 4, 4)).groups
    assert workers(group) == ["w2"]
    assert sorted(box.instances for box in group.containers) == [
        (("a", 0), ("b", 0), ("b", 1), ("b", 2), ("b", 3)),
    ]


def test_a_scan_asks_for_as_many_cores_as_it_has_splits() -> None:
    """16 instances of 100 s; of day 1 there are 10 MiB, three splits of 4 at most."""
    flow = drawn("a", a={"sources": days("h1", "h1", size=10 * MIB), "parallelism": 16, "runtime_s": 100})
    (whole,) = sound(flow, standalone(8, 8), OFF).groups
    (group,) = sound(flow, standalone(8, 8)).groups
    assert sum(box.cores for box in whole.containers) == 16
    assert sum(box.cores for box in group.containers) == 3


def test_what_is_compared_is_what_is_left() -> None:
    """12 instances of 10 s, rows for 3: 3 cores for 8 + 10 s; with failures to expect, too."""
    flow = drawn("a", a={"sources": days("h1", size=10 * MIB), "parallelism": 12, "runtime_s": 10})
    made = sound(flow, standalone(12, 12))
    assert (made.compared[0].makespan_s, made.compared[0].core_seconds) == (18.0, 54.0)
    stale = replace(made, compared=(replace(made.compared[0], core_seconds=216.0), *made.compared[1:]))
    assert [one.rule for one in check_strictly(stale, flow, standalone(12, 12))] == ["compared"]
    failing = Settings(failures_per_hour=10)
    whole, left = (
        plan(flow, standalone(12, 12), failing, run=Run(pruning_input=PruningInput(mode=mode))).compared[0]
        for mode in (False, "auto")
    )
    assert left.core_seconds < whole.core_seconds / 3


@pytest.mark.parametrize("name", [None, "round_robin"])
def test_what_is_compared_is_what_trimming_left(name: str | None) -> None:
    flow, cluster = _one_to_four(), standalone(4, 4)
    made = sound(flow, cluster, policy=by_policy(name))
    held = sum(sum(box.cores for box in group.containers) * group.time.total_s for group in made.groups)
    assert made.compared[0].core_seconds == pytest.approx(held)


def test_a_group_with_nothing_left_takes_nothing() -> None:
    """(no such day) ──> a ══> b ──> (t) ──> c      a and b are a group of their own, which is not started"""
    flow = drawn("a == b; b -- t; t -- c", tasks="t", a={"sources": days("h1", where="day = 9"), **IDLE}, b=IDLE)
    made = sound(flow, standalone(4))
    first, second = made.groups
    assert (first.containers, first.end_s) == ((), first.start_s)
    assert [one.id for one in first.pruned if one.what == "step"] == ["a", "b"]
    assert second.containers
    assert made.makespan_s < sound(flow, standalone(4), OFF).makespan_s


def test_nothing_at_all_is_left() -> None:
    made = sound(drawn("a == b", a={"sources": days("h1", where="day = 9"), **IDLE}, b=IDLE), standalone(4))
    assert (made.makespan_s, made.lower_bound_s, made.groups[0].containers) == (0.0, 0.0, ())


def test_what_waited_behind_a_pruned_step_still_waits() -> None:
    """a (10 s) ══> b (no input of its own) ══> c (10 s), which counts: 8 to start, then a, then c"""
    flow = drawn(
        "a == b; b == c", a={"runtime_s": 10}, b={"sources": days("h1", where="day = 9"), **IDLE}, c={"runtime_s": 10}
    )
    made = sound(flow, standalone(4))
    assert [one.id for one in made.groups[0].pruned if one.what == "step"] == ["b"]
    assert made.makespan_s == 28.0


def test_holders_that_are_too_small_widen_the_set() -> None:
    """a has its cores on w1, b its memory on w2; a container of both sizes is on w3 only, which holds nothing."""
    flow = drawn(
        "a == b",
        a={"sources": days("h1", "h2", where="day < 9"), "cores": 4, "memory_mb": 1000},
        b={"cores": 1, "memory_mb": 5000},
    )
    cluster = replace(standalone(4, 1, 8), workers=_with_memory(standalone(4, 1, 8), 3000, 8000, 9000))
    (group,) = sound(flow, cluster).groups
    assert workers(group) == ["w3"]
    (kept,) = (one.reason for one in group.unpruned if one.what == "worker")
    assert kept.startswith("does not fit on the workers that hold the data")


def test_a_holder_is_not_left_out_where_that_costs_time() -> None:
    """Three blocks of two replicas, w2 holds one of each: on its core three waves, on the three holders one."""
    blocks = [("h1", "h3"), ("h2", "h3"), ("h1", "h3")]
    partitions = (
        Partition(key={"day": day}, bytes=128 * MIB, blocks=(Block(bytes=128 * MIB, hosts=hosts),))
        for day, hosts in enumerate(blocks, 1)
    )
    source = Source(path="/t", partitions=tuple(partitions))
    flow = drawn("a", a={"sources": (source,), "parallelism": 3, "runtime_s": 10})
    made = sound(flow, standalone(1, 1, 1, 8))
    (group,) = made.groups
    assert (made.makespan_s, workers(group)) == (18.0, ["w1", "w2", "w3"])
    assert [one.id for one in group.pruned] == ["w4"]


def test_all_workers_stay_where_the_holders_are_too_few() -> None:
    """8 instances of 10 s, the day is on w1, of one core: 88 s there, 18 on w2, of eight."""
    flow = drawn("a", a={"sources": days("h1", size=8 * 128 * MIB), "parallelism": 8, "runtime_s": 10})
    made = sound(flow, standalone(1, 8))
    (group,) = made.groups
    assert (made.makespan_s, {*workers(group)}, group.pruned) == (18.0, {"w2"}, ())
    (kept,) = (one.reason for one in group.unpruned if one.what == "worker")
    assert kept == ("on the fewest that hold the data the run takes 88.0 s and 88 core-seconds, on any 18.0 s and 144")


def test_groups_on_few_holders_do_not_wait_for_each_other() -> None:
    """Of two groups alone each is as soon on w1; together the second would wait there for the first."""
    read = {"sources": days("h1"), "runtime_s": 10, "isolate": True}
    made = sound(drawn("a; b", a=read, b=read), standalone(1, 1))
    assert made.makespan_s == 18.0
    assert sorted(worker for group in made.groups for worker in workers(group)) == ["w1", "w2"]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(dataflows(most=8), st.integers(0, 2**32), st.lists(st.integers(1, 4), min_size=2, max_size=4))
def test_leaving_workers_out_costs_little_time(flow: Dataflow, seed: int, cores: list[int]) -> None:
    """Beside the same plan, with partitions, steps and instances left out alike, on all workers, far ones, too."""
    rng = random.Random(seed)
    flow = replace(flow, steps=tuple(replace(step, **_source(rng)) for step in flow.steps))
    cluster = standalone(*(4 * one for one in cores))
    problem = Problem.of(flow, cluster, Settings(), Run())
    selected = select_groups(Draft.empty(problem, ""))
    pruned = prune_inputs(selected)
    anywhere = [
        replace(group, pruned=tuple(one for one in group.pruned if one.what != "worker"))
        for group in pruned.plan.groups
    ]
    whole = exclude_pruned(selected.replace_groups(anywhere))
    assert schedule_groups(pruned).plan.makespan_s <= (1 + FAR) * schedule_groups(whole).plan.makespan_s


def test_a_little_sooner_is_no_reason_to_read_from_afar() -> None:
    """2 instances of 1 s: 10 s on w1, which holds the data and has one core, 9 s with w2, which holds none."""
    made = sound(drawn("a", a={"sources": days("h1", size=2 * 128 * MIB), "parallelism": 2}), standalone(1, 8))
    assert (made.makespan_s, workers(made.groups[0])) == (10.0, ["w1"])


def test_steps_alike_go_each_where_its_day_is() -> None:
    """a reads day 1 on w1, b day 2 on w2; else they are alike, each in a group of its own"""
    flow = drawn(
        "a; b",
        a={"sources": days("h1", "h2"), "isolate": True},
        b={"sources": days("h1", "h2", where="day = 2"), "isolate": True},
    )
    assert [workers(group) for group in sound(flow, standalone(4, 4, 4)).groups] == [["w1"], ["w2"]]


def _with_memory(cluster: Cluster, *memory_mb: int) -> tuple[Worker, ...]:
    return tuple(replace(worker, memory_mb=size) for worker, size in zip(cluster.workers, memory_mb, strict=True))


def test_without_sources_nothing_is_said() -> None:
    (group,) = sound(drawn("a == b"), standalone(4, 4)).groups
    assert (group.pruned, group.unpruned, group.partitions) == ((), (), {})


def test_what_was_told_to_have_nothing_to_do() -> None:
    """At a launch, of one group: what others left is known there."""
    told = PruningInput(idle={"a": NoInput((DatasetWithoutRows("x/"),))})
    (group,) = sound(drawn("a == b", a=IDLE), standalone(4), told).groups
    assert group.pruned == (Pruned(what="step", id="a", reason="no work without input: x/ has no rows"),)
    assert [box.instances for box in group.containers] == [(("b", 0),)]


def test_an_instance_without_rows_goes_after_placement() -> None:
    """Both workers hold a needed day, c is pinned to the third: no rows of a come to it."""
    flow = drawn(
        "a == c",
        a={"sources": days("h1", "h2", where="day < 9"), "parallelism": 2, **IDLE},
        c={"pinned": ("w3",), "parallelism": 2},
    )
    sound(flow, standalone(1, 1, 2))


POLICIES = ("round_robin", "first_fit", "data_locality", "cheapest", "high_availability", "auto")


def by_policy(name: str | None, **said: Any) -> Policy | None:
    return Policy(name, parse_placement_settings(named=said), State()) if name else None


@pytest.mark.parametrize("name", [None, "round_robin", "high_availability"])
def test_times_and_assignment_are_of_the_instances_that_are_left(name: str | None) -> None:
    """w1 [a/0 b b]   w2 [c/0 b b]     b gets its rows from the a beside it: on w2 none. Waves on a core: a, b, b; c"""
    flow = _one_to_four()
    made = sound(flow, standalone(1, 1), policy=by_policy(name))
    (group,) = made.groups
    held = {f"{step}/{index}": box.worker for box in group.containers for step, index in box.instances}
    assert (len(held), group.time.compute) == (4, 20.0)
    assert made.assignment is None or made.assignment.active == held


def test_copies_of_the_state_of_instances_that_went_go_too() -> None:
    """w1 [a/0 b/0 b/2 (b/1 b/3)]   w2 [c/0 b/1 b/3 (b/0 b/2)]     without those on w2: nothing to stand by for on w1"""
    made = sound(_one_to_four(), standalone(2, 2), policy=by_policy("high_availability", num_standbys=1))
    assert [box.standbys for group in made.groups for box in group.containers] == [(), (("b", 0), ("b", 2))]
    assert made.assignment is not None
    assert made.assignment.standby == {"b/0": ("w2",), "b/2": ("w2",)}


def _one_to_four() -> Dataflow:
    """a hands its rows to those of the four b that are on its worker; c reads what both workers hold."""
    state = {"stateful": True, "state_mb": 10}
    read = {"sources": days("h1", "h2", where=None)}
    flow = drawn("a; b; c", a={"runtime_s": 10}, b={**IDLE, **state, "parallelism": 4, "runtime_s": 10}, c=read)
    return replace(flow, channels=(Channel(src="a", dst="b", routing="forward"),))


@pytest.mark.parametrize("name", [None, *POLICIES])
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(dataflows(most=12), st.integers(0, 2**32))
def test_what_a_policy_placed_and_pruning_trimmed_is_sound(name: str | None, flow: Dataflow, seed: int) -> None:
    """Rows stay on their worker, so instances elsewhere go; some steps keep state, with and without copies."""
    rng = random.Random(seed)
    steps = (
        replace(
            step,
            **_source(rng),
            works_without_input=rng.random() < 0.3,
            stateful=rng.random() < 0.5,
            state_mb=rng.choice([0, 50]),
        )
        for step in flow.steps
    )
    channels = (replace(channel, routing="forward") for channel in flow.channels)
    flow, cluster = replace(flow, steps=tuple(steps), channels=tuple(channels)), standalone(*rng.choices([4, 8], k=4))
    made = plan(flow, cluster, run=Run(policy=by_policy(name, num_standbys=rng.choice([0, 1]))))
    assert check(made, flow, cluster) == ()


@pytest.mark.parametrize("name", ["round_robin", "first_fit", "data_locality", "cheapest"])
def test_a_policy_places_what_is_left(name: str) -> None:
    """Day 1 is on w2; a reads, b has nothing to do; as wide as each other: two applications would save nothing."""
    flow = drawn("a; b", a={"sources": days("h2", "h1"), "parallelism": 4}, b={**IDLE, "parallelism": 4})
    policy = Policy(name, parse_placement_settings(), State())
    (group,) = sound(flow, standalone(4, 4, 4), PruningInput(idle={"b": NoInput(())}), policy=policy).groups
    assert workers(group) == ["w2"]


def test_why_is_explained() -> None:
    flow = drawn("a == b", a={"sources": days("h2", "h1", "h3"), **IDLE}, b={"sources": days("h1", where=None)})
    text = explain_plan(sound(flow, standalone(4, 4, 4)))
    assert "pruned   2 partitions (a/day=2, a/day=3): no match for day = 1" in text
    assert "pruned   worker w3: all that the group needs is on w1, w2" in text


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(dataflows(most=30), st.integers(0, 2**32), st.sampled_from(["auto", "analysed", "declared", False]))
def test_every_pruned_plan_is_sound_and_the_same_for_any_order(flow: Dataflow, seed: int, mode: Any) -> None:
    rng = random.Random(seed)
    cluster = standalone(*rng.choices([4, 8, 64], k=4), 64)
    steps = [replace(step, **_source(rng), works_without_input=rng.random() < 0.3) for step in flow.steps]
    flow = replace(flow, steps=tuple(steps))
    made = sound(flow, cluster, PruningInput(mode=mode))
    rng.shuffle(steps)
    turned = tuple(replace(step, sources=_turned(step.sources)) for step in steps)
    other = replace(flow, steps=turned, channels=flow.channels[::-1])
    assert encode_value(
        plan(other, replace(cluster, workers=cluster.workers[::-1]), run=Run(PruningInput(mode=mode)))
    ) == encode_value(made)


def _source(rng: random.Random) -> dict[str, Any]:
    if rng.random() < 0.4:
        return {}
    where = rng.choice([None, "day = 1", "day = 1", "day = 9", "day > 1"])
    hosts = rng.sample(["h1", "h2", "h3", "h4", "h5"], rng.randint(1, 4))
    return {"sources": days(*hosts, where=where, size=rng.choice([0, MIB, 300 * MIB]))}


def _turned(sources: tuple[Source, ...]) -> tuple[Source, ...]:
    return tuple(replace(source, partitions=source.partitions[::-1]) for source in sources)


def empty(draft: Draft) -> Draft:
    """A policy that forgets everything."""
    return draft.replace_groups([replace(group, containers=()) for group in draft.plan.groups])


def test_a_group_may_not_vanish() -> None:
    flow = drawn("a", a={"sources": days("h1")})
    passes = [empty if apply_pass is apply_policy else apply_pass for apply_pass in PASSES]
    made = run_passes(passes, flow, Problem.of(flow, standalone(4)))
    assert {one.rule for one in check_strictly(made, flow, standalone(4))} >= {"instances"}
