"""What an instance takes, from turns that shared cores; and who ran the job of fused steps."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_dagsched.launch.history.attribute_durations import Turn, compute_alone_s, list_turns
from airflow_dagsched.launch.protocol.events import StepDone
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.settings import Settings
from tests.launch.test_gate import Modelled, groups
from tests.plan.drawn import standalone


def test_a_turn_alone_took_what_it_took() -> None:
    assert compute_alone_s([Turn("a", 2.0, 5.0, 1), Turn("b", 6.0, 7.0, 8)], cores=8) == {"a": 3.0, "b": 1.0}


def test_who_comes_later_takes_what_is_left() -> None:
    """
    a ▐████████▌       0 to 4, on the core it has had from the start
    c     ▐███▌        2 to 6: 2 s on the core that is left, 2 s on that or on a's
    c         ▐███▌
    """
    found = compute_alone_s([Turn("a", 0.0, 4.0, 1), Turn("c", 2.0, 6.0, 2)], cores=2)
    assert found == pytest.approx({"a": 4, "c": 2})


def test_who_begins_beside_a_last_wave_is_not_slowed_by_it() -> None:
    """
    a a a      3 instances of 1 s on 2 cores
    a a c c    c has the core that a leaves in its second wave
    """
    found = compute_alone_s([Turn("a", 0.0, 2.0, 3), Turn("c", 1.0, 3.0, 1)], cores=2)
    assert found == pytest.approx({"a": 1, "c": 2})


def test_a_step_wider_than_the_cluster_ran_in_waves() -> None:
    """8 instances on 2 cores for 12 s: 3 s each, four at a core; 5 on 2 are three waves, the last with a core idle."""
    assert compute_alone_s([Turn("a", 0.0, 12.0, 8)], cores=2) == pytest.approx({"a": 3.0})
    assert compute_alone_s([Turn("a", 0.0, 12.0, 5)], cores=2) == pytest.approx({"a": 4.0})
    assert compute_alone_s([Turn("a", 0.0, 12.0, 1_000_000)], cores=2) == pytest.approx({"a": 12.0 / 500_000})


@given(
    st.lists(st.tuples(st.integers(0, 100), st.integers(0, 50), st.integers(1, 9)), min_size=1, max_size=12),
    st.integers(1, 8),
)
def test_an_instance_takes_no_longer_than_the_turn_and_no_less_than_on_one_core(
    drawn: list[tuple[int, int, int]], cores: int
) -> None:
    found = [Turn(str(at), begin, begin + length, wide) for at, (begin, length, wide) in enumerate(drawn)]
    alone = compute_alone_s(found, cores)
    for turn in found:
        lasted = turn.end_s - turn.begin_s
        assert 0 <= alone[turn.step] <= lasted
        assert turn.cores > 1 or alone[turn.step] == lasted


@settings(max_examples=100, deadline=None)
@given(groups())
def test_what_is_learnt_of_a_plan_that_was_kept_is_the_plan(facts: tuple[Dataflow, int, int]) -> None:
    """Steps that began and ended when they were to are learnt as they were declared: so the next plan is the same."""
    flow, cores, slots = facts
    told = Settings(slots=slots, together=(tuple(step.id for step in flow.steps),))
    group = plan(flow, standalone(cores), told).groups[0]
    kept = Modelled(flow, group)
    kept.play()
    turns = [Turn(name, kept.begun[name], kept.ended[name], kept.steps[name].parallelism) for name in group.steps]
    learnt = compute_alone_s(turns, kept.cores)
    assert learnt == pytest.approx({step.id: step.runtime_s for step in flow.steps}, rel=1e-6)


def test_the_turn_of_a_job_is_that_of_its_last_step() -> None:
    """
    a ──> b ──> c (9 s with a, b)      b was executed again by d's job
          └───> d (4 s with b)
    """
    ends = [
        StepDone("a", "success", seconds=9.0, fused=("b", "c")),
        StepDone("b", "success", seconds=9.0, fused=("a", "c")),
        StepDone("c", "success", seconds=9.0, fused=("a", "b")),
        StepDone("d", "success", seconds=4.0, fused=("b",)),
    ]
    begun = {"a": 1.0, "b": 1.1, "c": 1.2, "d": 1.3}
    assert list_turns(ends, begun, {"c": 2}) == (Turn("c", 1.2, 10.2, 2), Turn("d", 1.3, 5.3, 1))
