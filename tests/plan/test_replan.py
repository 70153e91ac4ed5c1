"""Plans made anew part-way through a run: whole, accepted by the checker, and no other than they must be."""

from __future__ import annotations

import functools
import random
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import settings as examples
from hypothesis import strategies as st
from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit, InvalidInput
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.codec import encode_value
from airflow_dagsched.model.dataflow import Block, Dataflow, Partition, Source
from airflow_dagsched.model.state import Measured, State
from airflow_dagsched.plan.checking.optimality import check_strictly
from airflow_dagsched.plan.measurements import apply_measurements
from airflow_dagsched.plan.plan_types import Group, Plan
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.replan.remaining_run import replan_run
from airflow_dagsched.plan.report.sentences import say_change
from airflow_dagsched.plan.settings import Settings
from tests.plan.drawn import clusters, dataflows, drawn, standalone


def home_of(made: Plan) -> dict[str, str]:
    return {step: group.id for group in made.groups for step in group.steps}


def all_above(made: Plan, flow: Dataflow) -> dict[str, set[str]]:
    """For each group and ordinary task those that end before it, directly or not; those above come first."""
    home = home_of(made)
    direct: dict[str, set[str]] = {}
    for src, dst in [*((channel.src, channel.dst) for channel in flow.channels), *flow.dependencies]:
        if home.get(src, src) != home.get(dst, dst):
            direct.setdefault(home.get(dst, dst), set()).add(home.get(src, src))

    @functools.cache
    def above(name: str) -> frozenset[str]:
        found = direct.get(name, set())
        return frozenset(found).union(*(above(other) for other in found))

    names = [*(group.id for group in made.groups), *(task.id for task in flow.tasks)]
    return {name: set(above(name)) for name in sorted(names, key=lambda name: len(above(name)))}


def part_way(made: Plan, flow: Dataflow, rng: random.Random) -> State:
    """Some groups finished, with all above them; some running of those that could, on workers of their own."""
    above = all_above(made, flow)
    finished: set[str] = set()
    running: dict[str, set[str]] = {}
    for group in sorted(made.groups, key=lambda group: group.start_s):
        workers = {box.worker for box in group.containers}
        if not above[group.id] & {group.id for group in made.groups} <= finished:
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


@examples(max_examples=30, deadline=None)
@given(dataflows(most=20), clusters(), st.integers(0, 2**32))
def test_before_a_run_its_bound_is_that_of_the_dataflow(flow: Dataflow, cluster: Cluster, seed: int) -> None:
    """Not of the groups so far, which the dataflow need not have: other runtimes alone may ask for others."""
    rng = random.Random(seed)
    measured = {
        step.id: Measured(runtime_s=rng.choice([0.1, 30.0, 900.0])) for step in flow.steps if rng.random() < 0.4
    }
    state = State(measured=measured)
    try:
        found = replan_run(fitting(flow, cluster), flow, cluster, state)
    except DoesNotFit:
        assume(False)
        raise
    assert check_strictly(found.plan, *apply_measurements(flow, cluster, state), state=state) == ()


@examples(max_examples=50, deadline=None)
@given(dataflows(most=30), clusters(), st.integers(0, 2**32))
def test_from_any_prefix_of_a_run(flow: Dataflow, cluster: Cluster, seed: int) -> None:
    """The checker accepts it, finished groups stay; replanning it changes nothing where nothing was stopped."""
    rng = random.Random(seed)
    made = fitting(flow, cluster)
    state = part_way(made, flow, rng)
    try:
        found = replan_run(made, flow, cluster, state)
    except DoesNotFit:
        assume(False)
        raise
    assert check_strictly(found.plan, *apply_measurements(flow, cluster, state), state=state) == ()
    left = {group.id: group.steps for group in found.plan.groups}
    assert all(left[group.id] == group.steps for group in made.groups if group.id in state.finished)
    if {change.group for change in found.changes}.isdisjoint(state.running):
        again = replan_run(found.plan, flow, cluster, state)
        assert encode_value(again.plan) == encode_value(found.plan)
        assert again.changes == ()


@examples(max_examples=50, deadline=None)
@given(dataflows(most=30), clusters(), st.integers(0, 2**32))
def test_workers_that_are_gone(flow: Dataflow, cluster: Cluster, seed: int) -> None:
    """The checker accepts the plan for those that are left; running groups that lost theirs begin anew, others stay."""
    rng = random.Random(seed)
    flow = replace(flow, steps=tuple(replace(step, pinned=()) for step in flow.steps))
    made = fitting(flow, cluster)
    state = part_way(made, flow, rng)
    fewer = replace(cluster, workers=tuple(rng.sample(cluster.workers, len(cluster.workers) - 1)))
    try:
        found = replan_run(made, flow, fewer, state)
    except DoesNotFit:
        assume(False)
        raise
    assert check_strictly(found.plan, *apply_measurements(flow, fewer, state), state=state) == ()
    ran = {group.id: group.containers for group in made.groups}
    finished = [group for group in found.plan.groups if group.progress == "finished"]
    assert all(group.containers == ran[group.id] for group in finished)


@examples(max_examples=50, deadline=None)
@given(dataflows(most=40), clusters())
def test_before_a_run_begins_nothing_changes(flow: Dataflow, cluster: Cluster) -> None:
    made = fitting(flow, cluster)
    found = replan_run(made, flow, cluster, State())
    assert encode_value(found.plan) == encode_value(made)
    assert (found.changes, found.saved_s) == ((), 0.0)


SLOW = {"application": {"jars": "x"}, "runtime_s": 50.0}


def test_a_running_group_goes_on_and_its_readers_wait() -> None:
    """a ══> b on one worker: a has been running for 20 of its 58 s, b starts at 58."""
    flow = drawn("a == b", a={"runtime_s": 50.0}, b=SLOW)
    cluster = standalone(1)
    made = plan(flow, cluster)
    state = State(running=("launch_a",), elapsed_s={"launch_a": 20.0})
    found = replan_run(made, flow, cluster, state)
    assert [(group.id, group.start_s, group.end_s) for group in found.plan.groups] == [
        ("launch_a", 0.0, 58.0),
        ("launch_b", 58.0, 116.0),
    ]
    assert (found.changes, found.left_s) == ((), 116.0 - 20.0)


def test_a_group_whose_worker_is_gone_begins_again() -> None:
    flow, cluster = drawn("a", a={"runtime_s": 50.0}), standalone(1, 1)
    made = plan(flow, cluster)
    fewer = replace(cluster, workers=cluster.workers[1:])
    found = replan_run(made, flow, fewer, State(running=("launch",), elapsed_s={"launch": 20.0}))
    assert [say_change(change) for change in found.changes] == ["launch: begins again: worker w1 is gone"]
    assert found.plan.groups[0].containers[0].worker == "w2"


def test_what_was_read_is_made_anew() -> None:
    """a was cleared: b, finished, and c behind it run again."""
    flow = drawn("a == b; b == c", a=SLOW, c=SLOW)
    made = plan(flow, standalone(1))
    found = replan_run(made, flow, standalone(1), State(finished=("launch_b",)))
    assert [say_change(change) for change in found.changes] == ["launch_b: begins again: what it reads is made anew"]


def test_measured_values_move_what_is_left() -> None:
    """b took 5 s, not 50: what is left ends 45 s sooner, in the same groups."""
    flow = drawn("a == b; b == c", a=SLOW, b={"runtime_s": 50.0}, c=SLOW)
    cluster = standalone(1)
    made = plan(flow, cluster)
    state = State(finished=("launch_a",), measured={"b": Measured(runtime_s=5.0)})
    found = replan_run(made, flow, cluster, state)
    assert (found.changes, found.plan.makespan_s) == ((), made.makespan_s - 45.0)


def test_a_better_plan_is_taken_if_it_is_better_by_the_margin() -> None:
    """
    a ══> b      a plan of one application a step: 4 starts, 32 + 40 s; as one group: 8 + 40 s
    c ══> d      after a has finished, 8 + 30 s instead of 24 + 30 s
    """
    ten = {"runtime_s": 10.0}
    flow, cluster = drawn("a == b; b == c; c == d", a=ten, b=ten, c=ten, d=ten), standalone(1)
    names: dict[str, Any] = {step: {"application": {"only": step}, **ten} for step in "abcd"}
    apart = plan(drawn("a == b; b == c; c == d", **names), cluster)
    old = replace(apart, digest=plan(flow, cluster).digest)
    state = State(finished=("launch_a",))
    found = replan_run(old, flow, cluster, state)
    assert [group.steps for group in found.plan.groups] == [("a",), ("b", "c", "d")]
    assert (found.left_s, found.saved_s) == (8 + 30, 2 * 8)
    assert {say_change(change) for change in found.changes} == {
        "launch_b: new: what is left ends 16.0 s sooner, in 38.0 s instead of 54.0 s",
        "launch_c: dissolved: what is left ends 16.0 s sooner, in 38.0 s instead of 54.0 s",
        "launch_d: dissolved: what is left ends 16.0 s sooner, in 38.0 s instead of 54.0 s",
    }
    assert replan_run(old, flow, cluster, state, Settings(replan_margin=0.5)).changes == ()


def test_a_plan_of_another_dataflow_is_refused() -> None:
    made = plan(drawn("a"), standalone(1))
    with pytest.raises(InvalidInput, match="digest"):
        replan_run(made, drawn("a == b"), standalone(1), State())


def test_a_state_of_another_plan_is_refused() -> None:
    made = plan(drawn("a"), standalone(1))
    with pytest.raises(InvalidInput, match=r"finished\[0\].*no 'launch_x'"):
        replan_run(made, drawn("a"), standalone(1), State(finished=("launch_x",)))


def test_elapsed_seconds_are_of_groups_of_the_plan() -> None:
    made = plan(drawn("a"), standalone(1))
    with pytest.raises(InvalidInput, match=r"elapsed_s\['launch_x'\]: the plan has no such group"):
        replan_run(made, drawn("a"), standalone(1), State(running=("launch",), elapsed_s={"launch_x": 1.0}))


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (State(finished=("launch_a",), running=("launch_a",)), r"running\[0\]: 'launch_a' has finished, too"),
        (State(finished=("launch_a",), elapsed_s={"launch_a": 1.0}), r"elapsed_s\['launch_a'\]: does not run"),
        (State(elapsed_s={"launch_b": 1.0}), r"elapsed_s\['launch_b'\]: does not run"),
    ],
)
def test_a_state_that_contradicts_itself_is_refused(state: State, said: str) -> None:
    flow = drawn("a ~~ b", a=SLOW)
    with pytest.raises(InvalidInput, match=said):
        replan_run(plan(flow, standalone(1)), flow, standalone(1), state)


def test_lists_may_name_what_has_begun() -> None:
    """b and c apart, a and b together: {a b} has finished, or runs, and {c d} is planned as before."""
    flow = drawn("a == b; b == c; c == d")
    told = Settings(apart=(("b", "c"), ("a", "d")), together=(("a", "b"), ("c", "d")))
    made = plan(flow, standalone(2), told)
    for state in (State(finished=("launch_a",)), State(running=("launch_a",))):
        found = replan_run(made, flow, standalone(2), state, told)
        assert [group.steps for group in found.plan.groups] == [("a", "b"), ("c", "d")]
        assert found.changes == ()
        assert check_strictly(found.plan, flow, standalone(2), told, state=state) == ()


def test_lists_that_changed_cut_what_is_left() -> None:
    flow = drawn("a == b; b == c", a=SLOW, c={"runtime_s": 10.0})
    made = plan(flow, standalone(2))
    told = Settings(apart=(("b", "c"),))
    state = State(finished=("launch_a",))
    found = replan_run(made, flow, standalone(2), state, told)
    assert [group.steps for group in found.plan.groups] == [("a",), ("b",), ("c",)]
    assert check_strictly(found.plan, flow, standalone(2), told, state=state) == ()


def test_a_list_that_names_no_step_is_refused() -> None:
    made = plan(drawn("a"), standalone(1))
    with pytest.raises(InvalidInput, match=r"apart\[0\]: no step is called 'x'"):
        replan_run(made, drawn("a"), standalone(1), State(finished=("launch",)), Settings(apart=(("a", "x"),)))


MIB = 2**20


def test_spills_that_are_there_take_their_room() -> None:
    """
    a ══> d      room for 150 MiB, each spill has 100: what a wrote stays until d has ended,
    b ══> c      so b, which could start at once, starts behind d
    """
    names: dict[str, Any] = {name: {"runtime_s": 10.0, "application": {"only": name}} for name in "abcd"}
    flow = drawn("a == d; b == c", size={"a": 100 * MIB, "b": 100 * MIB}, **names)
    cluster = standalone(4, spill_mb=150)
    made = plan(flow, cluster)
    assert made.groups[0].id == "launch_a"
    state = State(finished=("launch_a",))
    found = replan_run(made, flow, cluster, state)
    start = {group.id: group.start_s for group in found.plan.groups}
    end = {group.id: group.end_s for group in found.plan.groups}
    assert start["launch_b"] >= end["launch_d"]
    assert check_strictly(found.plan, flow, cluster, state=state) == ()


def test_a_spill_larger_than_its_room_is_there_all_the_same() -> None:
    """a was to spill 50 MiB, and did 200, of 100: b, which spills nothing, may still read it."""
    flow = drawn("a == b", size={"a": 50 * MIB}, a=SLOW)
    cluster = standalone(4, spill_mb=100)
    state = State(finished=("launch_a",), measured={"a": Measured(bytes=200 * MIB)})
    found = replan_run(plan(flow, cluster), flow, cluster, state)
    assert check_strictly(found.plan, *apply_measurements(flow, cluster, state), state=state) == ()


def test_an_ordinary_task_that_was_quick() -> None:
    """a ─> t ─> b, t of 10 minutes: as soon as it has finished, b can start; only the state says so."""
    flow = drawn("a -- t; t -- b", tasks="t")
    flow = replace(flow, tasks=(replace(flow.tasks[0], runtime_s=600.0),))
    made = plan(flow, standalone(2))
    state = State(finished=("launch_a", "t"))
    found = replan_run(made, flow, standalone(2), state)
    assert found.left_s == found.plan.groups[1].time.total_s == 9.0
    assert check_strictly(found.plan, flow, standalone(2), state=state) == ()
    assert "'t' ends at" in str(check_strictly(found.plan, flow, standalone(2))[0])


def test_a_running_group_has_left_what_it_has_left() -> None:
    """a, of 58 s, has been running for 5 s, and b, planned for 508 s, has finished already: 53 s are left."""
    flow = drawn("a; b", a={"runtime_s": 50.0, "isolate": True}, b={"runtime_s": 500.0})
    made = plan(flow, standalone(2))
    state = State(finished=("launch_b",), running=("launch_a",), elapsed_s={"launch_a": 5.0})
    found = replan_run(made, flow, standalone(2), state)
    assert found.left_s == 53.0
    assert check_strictly(found.plan, flow, standalone(2), state=state) == ()


def test_a_plan_that_is_not_whole_is_refused() -> None:
    made = plan(drawn("a == b"), standalone(1))
    torn = replace(made, groups=(replace(made.groups[0], steps=("a",)),))
    with pytest.raises(InvalidInput, match="step 'b' is in 0 of them"):
        replan_run(torn, drawn("a == b"), standalone(1), State())


def told(flow: Dataflow, rng: random.Random) -> Settings:
    """Some steps apart, some together, few in a group, few groups side by side; or not."""
    names = [step.id for step in flow.steps]
    pairs = [tuple(rng.sample(names, min(2, len(names)))) for _ in range(2)]
    return Settings(
        apart=tuple(pairs[:1]) if rng.random() < 0.5 else (),
        together=tuple(pairs[1:]) if rng.random() < 0.5 else (),
        max_steps_per_group=rng.choice([3, 6, 1_000_000]),
        applications=rng.choice([0, 0, 1, 2]),
    )


def sooner_or_later(made: Plan, flow: Dataflow, cluster: Cluster, rng: random.Random) -> State:
    """The run at some moment, with a pace of its own for every group and task; what ended was measured."""
    pace = {name: rng.choice([0.2, 1.0, 3.0]) for name in [*home_of(made).values(), *(task.id for task in flow.tasks)]}
    lasts = {group.id: group.time.total_s for group in made.groups} | {task.id: task.runtime_s for task in flow.tasks}
    planned = {group.id: group.start_s for group in made.groups}
    starts: dict[str, float] = {}
    ends: dict[str, float] = {}
    for name, above in all_above(made, flow).items():
        starts[name] = max([planned.get(name, 0.0) * rng.choice([0.5, 1.0]), *(ends[other] for other in above)])
        ends[name] = starts[name] + lasts[name] * pace[name]
    now = rng.uniform(0.0, max(ends.values()) * 1.1)
    groups = {group.id: group for group in made.groups}
    running = beside_each_other([groups[name] for name in groups if starts[name] <= now < ends[name]], cluster)
    finished = [name for name in ends if ends[name] <= now]
    measured = {
        step: Measured(runtime_s=rng.choice([None, 0.1, 300.0]), bytes=rng.choice([None, 0, 3 * 10**8]))
        for name in finished
        for step in (groups[name].steps if name in groups else ())
        if rng.random() < 0.5
    }
    elapsed = {name: now - starts[name] for name in running if rng.random() < 0.8}
    return State(finished=tuple(finished), running=tuple(running), measured=measured, elapsed_s=elapsed)


def beside_each_other(groups: list[Group], cluster: Cluster) -> list[str]:
    """Those that the workers have room for at once."""
    free = {worker.id: (worker.cores, worker.memory_mb) for worker in cluster.workers}
    found = []
    for group in groups:
        after = dict(free)
        for box in group.containers:
            cores, memory = after[box.worker]
            after[box.worker] = cores - box.cores, memory - box.memory_mb
        if all(min(room) >= 0 for room in after.values()):
            found.append(group.id)
            free = after
    return found


def shuffled(flow: Dataflow, cluster: Cluster, state: State, rng: random.Random) -> tuple[Dataflow, Cluster, State]:
    """The same facts in another order."""
    parts = {
        name: tuple(rng.sample(part, len(part)))
        for name, part in (
            ("steps", flow.steps),
            ("channels", flow.channels),
            ("tasks", flow.tasks),
            ("dependencies", flow.dependencies),
        )
    }
    workers = tuple(rng.sample(cluster.workers, len(cluster.workers)))
    begun = {"finished": state.finished[::-1], "running": state.running[::-1]}
    return replace(flow, **parts), replace(cluster, workers=workers), replace(state, **begun)


@examples(max_examples=60, deadline=None)
@given(dataflows(most=14), clusters(), st.integers(0, 2**32))
def test_at_any_moment_of_any_run(flow: Dataflow, cluster: Cluster, seed: int) -> None:
    """Lists, room for spills, quick and slow tasks, lost and new workers: sound, the same again, and then at rest."""
    rng = random.Random(seed)
    flow = replace(flow, steps=tuple(replace(step, pinned=()) for step in flow.steps))
    cluster = replace(cluster, spill_mb=rng.choice([None, 150, 400]))
    settings = told(flow, rng)
    try:
        made = plan(flow, cluster, settings)
    except (DoesNotFit, InvalidInput):  # lists may contradict each other, or the dataflow
        assume(False)
        raise
    state = sooner_or_later(made, flow, cluster, rng)
    now = replace(cluster, workers=cluster.workers[rng.choice([0, 0, 1]) :])
    try:
        found = replan_run(made, flow, now, state, settings)
    except DoesNotFit:
        assume(False)
        raise
    assert (
        check_strictly(found.plan, *apply_measurements(flow, now, state, settings=settings), settings, state=state)
        == ()
    )
    assert encode_value(replan_run(made, *shuffled(flow, now, state, rng), settings).plan) == encode_value(found.plan)
    stays = [group.id for group in found.plan.groups if group.progress == "running"]
    elapsed_s = {name: seconds for name, seconds in state.elapsed_s.items() if name in stays}
    again = replan_run(found.plan, flow, now, replace(state, running=tuple(stays), elapsed_s=elapsed_s), settings)
    assert again.changes == ()


def test_what_has_finished_was_pinned_to_a_worker_that_is_gone() -> None:
    """a ══> b, a pinned to w1, which is gone: a is over, and b is on w2."""
    flow = drawn("a == b", a={**SLOW, "pinned": ("w1",)})
    made = plan(flow, standalone(4, 4))
    fewer = replace(standalone(4, 4), workers=standalone(4, 4).workers[1:])
    state = State(finished=("launch_a",))
    found = replan_run(made, flow, fewer, state)
    assert [(group.progress, group.containers[0].worker) for group in found.plan.groups] == [
        ("finished", "w1"),
        ("planned", "w2"),
    ]
    assert check_strictly(found.plan, flow, fewer, state=state) == ()
    elsewhere = replace(
        found.plan.groups[0], containers=tuple(replace(box, worker="w2") for box in found.plan.groups[0].containers)
    )
    moved = replace(found.plan, groups=(elsewhere, found.plan.groups[1]))
    assert [str(one) for one in check_strictly(moved, flow, fewer, state=state)] == [
        "pinned: a: is on 'w2', pinned to w1"
    ]


@pytest.mark.parametrize("progress", ["finished", "running"])
def test_a_worker_that_a_begun_group_left_out_is_gone(progress: str) -> None:
    """a's rows are on h1: a was planned without w2, and has begun on w1; then w2 is gone."""
    blocks = (Block(bytes=1000 * MIB, hosts=("h1",)),)
    day = Partition(key={"day": "1"}, bytes=1000 * MIB, blocks=blocks)
    flow = drawn("a ~~ b", a={**SLOW, "sources": (Source(path="/rows", partitions=(day,)),)})
    made = plan(flow, standalone(8, 8))
    assert [(entry.what, entry.id) for entry in made.groups[0].pruned] == [("worker", "w2")]
    state = State(**{progress: ("launch_a",)})
    found = replan_run(made, flow, standalone(8), state)
    assert found.plan.groups[0].pruned == made.groups[0].pruned
    assert check_strictly(found.plan, flow, standalone(8), state=state) == ()
    unknown = check_strictly(made, flow, standalone(8))
    assert "pruned: w2: is left out of 'launch_a', but is no worker of the cluster" in map(str, unknown)


def test_what_runs_counts_as_an_application() -> None:
    """a runs since 5 of its 58 s: b and c, each an application, wait for it where one, or two, may run."""
    flow, cluster = drawn("a; b; c", **{name: {**SLOW, "isolate": True} for name in "abc"}), standalone(8)
    state = State(running=("launch_a",), elapsed_s={"launch_a": 5.0})
    for most, starts in ((1, [0.0, 58.0, 116.0]), (2, [0.0, 58.0, 58.0]), (3, [0.0, 5.0, 5.0]), (0, [0.0, 5.0, 5.0])):
        told = Settings(applications=most)
        found = replan_run(plan(flow, cluster, told), flow, cluster, state, told)
        assert sorted(group.start_s for group in found.plan.groups) == starts
        assert check_strictly(found.plan, flow, cluster, told, state=state) == ()


def test_what_runs_goes_on_when_fewer_may() -> None:
    """a and b run, and by now only one may: c waits for both."""
    flow, cluster = drawn("a; b; c", **{name: {**SLOW, "isolate": True} for name in "abc"}), standalone(8)
    state = State(running=("launch_a", "launch_b"), elapsed_s={"launch_a": 5.0, "launch_b": 5.0})
    found = replan_run(plan(flow, cluster), flow, cluster, state, Settings(applications=1))
    assert [group.start_s for group in found.plan.groups] == [0.0, 0.0, 58.0]
    assert check_strictly(found.plan, flow, cluster, Settings(applications=1), state=state) == ()


def test_what_is_stopped_says_no_more_that_a_task_has_ended() -> None:
    """t ─> a: a runs, so t of 60 s has ended; a begins again, and the state does not say that t has."""
    flow = drawn("t -- a", tasks="t", a={"runtime_s": 50.0})
    flow = replace(flow, tasks=(replace(flow.tasks[0], runtime_s=60.0),))
    made = plan(flow, standalone(4, 4))
    fewer = replace(standalone(4, 4), workers=standalone(4, 4).workers[1:])
    for finished, start_s in (((), 60.0), (("t",), 0.0)):
        state = State(finished=finished, running=("launch",))
        found = replan_run(made, flow, fewer, state)
        assert found.plan.groups[0].start_s == start_s
        assert check_strictly(found.plan, flow, fewer, state=state) == ()


def test_a_moment_between_two_microseconds() -> None:
    """What is told to the microsecond is so from the start: planned again from the result, it is the same plan."""
    flow = drawn("a; b == c", a=SLOW, b={"runtime_s": 10 / 3}, c={"application": {"jars": "y"}})
    cluster = standalone(2)
    state = State(running=("launch_a",), elapsed_s={"launch_a": 12.40224072082943})
    found = replan_run(plan(flow, cluster), flow, cluster, state)
    assert encode_value(replan_run(found.plan, flow, cluster, state).plan) == encode_value(found.plan)
