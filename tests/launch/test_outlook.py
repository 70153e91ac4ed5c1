"""What is left of a run, and until when, told as each of its launches begins.

a ══> b ══> c     an application each: 8 s to start, then 50 s       planned: a until 58, b 116, c 174
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from airflow_dagsched.launch.history.forecast import Ahead, Outlook, Run, derive_state, forecast_run
from airflow_dagsched.launch.planning.facts import Facts
from airflow_dagsched.launch.protocol.events import Failure, StepDone
from airflow_dagsched.launch.protocol.feed import Feed
from airflow_dagsched.launch.protocol.identity import TryId
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.codec import decode_json, encode_value
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.state import Measured, State
from airflow_dagsched.plan.grouping.coarsest import Grouped, find_groups
from airflow_dagsched.plan.problem.run import FixedGroup
from tests.plan.drawn import dataflows, drawn, standalone

NOW = 1_000_000.0
CHAIN = drawn("a == b; b == c", **{name: {"runtime_s": 50.0, "isolate": True} for name in "abc"})
DIAMOND = drawn("a == b; a == c; b == d; c == d", **{name: {"runtime_s": 50.0, "isolate": True} for name in "abcd"})


def groups_of(flow: Dataflow) -> Sequence[Grouped]:
    return find_groups(flow).groups


def run_of(flow: Dataflow, cluster: Cluster, at_s: float = 0.0, started: str = "r") -> Run:
    groups = groups_of(flow)
    fixed = tuple(FixedGroup(one.id, one.steps, one.reason) for one in groups)
    return Run(Facts(dataflow=flow, cluster=cluster, groups=fixed), groups, started, NOW + at_s)


def feed(*steps: str, final: bool = True, began: float = 0.0, clears: int = 0, size: int | None = None) -> Feed:
    """Of a launch task whose steps ended well."""
    done = {name: StepDone(name, "success", bytes=size, sizes={} if size is None else {"": size}) for name in steps}
    return Feed("n", TryId("r", clears), final=final, steps=done, began=NOW + began)


def state_at(flow: Dataflow, mine: str, at_s: float = 0.0, known: State | None = None, **feeds: Feed) -> State:
    return derive_state(mine, groups_of(flow), feeds, known or State(), this_round=TryId("r").round, now=NOW + at_s)


def told(found: Ahead) -> list[str]:
    return list(found.lines())


def test_the_first_launch_says_how_long_the_run_takes() -> None:
    found = forecast_run(run_of(CHAIN, standalone(1)), state_at(CHAIN, "launch_a"), None)
    assert told(found) == ["what is left ends in 174 s, as planned: launch_a, launch_b, launch_c"]
    assert found.outlook.ends == NOW + 174


def test_the_next_one_says_how_late_it_is() -> None:
    """a took 78 s, not 58: b and c are left, and end after 78 + 2 x 58 s"""
    first = forecast_run(run_of(CHAIN, standalone(1)), state_at(CHAIN, "launch_a"), None)
    state = state_at(CHAIN, "launch_b", 78.0, launch_a=feed("a"))
    found = forecast_run(run_of(CHAIN, standalone(1), 78.0), state, first.outlook)
    assert told(found) == ["what is left ends in 116 s, 20 s later than planned: launch_b, launch_c"]
    assert found.outlook.ends == first.outlook.ends


def test_what_was_measured_meanwhile_counts() -> None:
    """By the history c takes 5 s by now, not 50, and so the run ends 45 s sooner."""
    first = forecast_run(run_of(CHAIN, standalone(1)), state_at(CHAIN, "launch_a"), None)
    known = State(measured={"c": Measured(runtime_s=5.0)})
    state = state_at(CHAIN, "launch_b", 58.0, known, launch_a=feed("a"))
    found = forecast_run(run_of(CHAIN, standalone(1), 58.0), state, first.outlook)
    assert told(found)[0] == "what is left ends in 71 s, 45 s sooner than planned: launch_b, launch_c"


def test_a_group_beside_it_goes_on() -> None:
    """b began 20 s before c does, on workers of their own: it has 38 s left, c 58, d comes behind both"""
    cluster = standalone(1, 1)
    first = forecast_run(run_of(DIAMOND, cluster), state_at(DIAMOND, "launch_a"), None)
    feeds = {"launch_a": feed("a"), "launch_b": feed(final=False, began=58.0)}
    state = state_at(DIAMOND, "launch_c", 78.0, **feeds)
    assert (state.finished, state.running, state.elapsed_s) == (
        ("launch_a",),
        ("launch_b", "launch_c"),
        {"launch_b": 20.0},
    )
    found = forecast_run(run_of(DIAMOND, cluster, 78.0), state, first.outlook)
    assert found.left == ("launch_b", "launch_c", "launch_d")


def test_fewer_workers_are_told_of() -> None:
    """b and c were to run side by side; the worker that one of them was to have is gone."""
    first = forecast_run(run_of(DIAMOND, standalone(1, 1)), state_at(DIAMOND, "launch_a"), None)
    fewer = replace(standalone(1, 1), workers=standalone(1, 1).workers[:1])
    found = forecast_run(
        run_of(DIAMOND, fewer, 58.0), state_at(DIAMOND, "launch_b", 58.0, launch_a=feed("a")), first.outlook
    )
    late, changed = told(found)
    assert late == "what is left ends in 174 s, 58 s later than planned: launch_b, launch_c, launch_d"
    assert changed == "expected otherwise than before: launch_c moved"


def test_feeds_that_say_little() -> None:
    """What it waits for is over; of another round, or with a failed step, nothing is known of what is beside it."""
    failed = StepDone("b", "failed", failure=Failure("author", "no"))
    red = Feed("n", TryId("r"), final=True, steps={"b": failed})
    for beside in (red, feed("b", clears=1)):
        state = state_at(DIAMOND, "launch_c", launch_b=beside)
        assert (state.finished, state.running) == (("launch_a",), ("launch_c",))


def test_what_has_ended_well_and_is_tried_again_has_finished() -> None:
    """A state says one of the two; else it would be refused."""
    state = state_at(CHAIN, "launch_b", launch_a=feed("a"), launch_b=feed("b"))
    assert (state.finished, state.running, state.elapsed_s) == (("launch_a", "launch_b"), (), {})
    assert forecast_run(run_of(CHAIN, standalone(1)), state, None).left == ("launch_c",)


def test_bytes_of_this_run_count_for_its_readers() -> None:
    known = State(measured={"a": Measured(runtime_s=3.0, bytes=1)})
    state = state_at(CHAIN, "launch_b", known=known, launch_a=feed("a", size=7))
    assert state.measured["a"] == Measured(runtime_s=3.0, bytes=1, stored={"": 7})


def test_after_a_clear_it_is_another_run() -> None:
    first = forecast_run(run_of(CHAIN, standalone(1)), state_at(CHAIN, "launch_a"), None)
    found = forecast_run(run_of(CHAIN, standalone(1), 500.0, "again"), state_at(CHAIN, "launch_a"), first.outlook)
    assert told(found)[0].startswith("what is left ends in 174 s, as planned: ")


@settings(max_examples=10, deadline=None)
@given(dataflows(most=12), st.integers(0, 2**32))
def test_from_launch_to_launch(flow: Dataflow, seed: int) -> None:
    """Launch by launch until all is over, through the file each time: the groups stay, and fewer are left."""
    rng = random.Random(seed)
    cluster = standalone(64, 64)
    flow = replace(flow, steps=tuple(replace(step, pinned=(), isolate=rng.random() < 0.5) for step in flow.steps))
    groups, last, over = groups_of(flow), None, dict[str, Feed]()
    for at, group in enumerate(groups):
        state = derive_state(group.id, groups, over, State(), this_round=TryId("r").round, now=NOW + at)
        found = forecast_run(run_of(flow, cluster, at), state, last)
        last = decode_json(Outlook, encode_value(found.outlook), "file")
        assert {one.id: set(one.steps) for one in last.plan.groups} == {one.id: set(one.steps) for one in groups}
        assert set(found.left) == {one.id for one in groups[at:]} - set(state.finished)
        over[group.id] = feed(*group.steps)
