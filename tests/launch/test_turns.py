"""Turns that shared cores, as if each had had them for itself; and who ran the job of fused steps."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_dagsched.launch.history.attribute_durations import Turn, compute_alone_s, list_turns
from airflow_dagsched.launch.protocol.events import StepDone


def test_a_turn_alone_took_what_it_took() -> None:
    assert compute_alone_s([Turn("a", 2.0, 5.0, 1), Turn("b", 6.0, 7.0, 8)], cores=8) == {"a": 3.0, "b": 1.0}


def test_three_cores_wanted_of_two() -> None:
    """
    a ▐████████▌       0 to 4: 2 s alone, 2 s at two thirds
    c     ▐████████▌   2 to 6: 2 s at two thirds, 2 s alone with its two cores
    """
    found = compute_alone_s([Turn("a", 0.0, 4.0, 1), Turn("c", 2.0, 6.0, 2)], cores=2)
    assert found == pytest.approx({"a": 2 + 2 * 2 / 3, "c": 2 * 2 / 3 + 2})


def test_a_step_wider_than_the_cluster_ran_in_waves() -> None:
    """8 instances on 2 cores for 12 s: 3 s each, four at a core."""
    assert compute_alone_s([Turn("a", 0.0, 12.0, 8)], cores=2) == {"a": 3.0}


@given(
    st.lists(st.tuples(st.integers(0, 100), st.integers(0, 50), st.integers(1, 9)), min_size=1, max_size=12),
    st.integers(1, 8),
)
def test_no_more_work_than_cores(drawn: list[tuple[int, int, int]], cores: int) -> None:
    """A turn is never longer alone; all together did no more core-seconds than there were while one of them ran."""
    found = [Turn(str(at), begin, begin + length, wide) for at, (begin, length, wide) in enumerate(drawn)]
    alone = compute_alone_s(found, cores)
    assert all(0 <= alone[turn.step] <= turn.end_s - turn.begin_s + 1e-9 for turn in found)
    moments = sorted({moment for turn in found for moment in (turn.begin_s, turn.end_s)})
    busy = sum(
        (after - before) * min(cores, sum(turn.cores for turn in found if turn.begin_s <= before < turn.end_s))
        for before, after in pairwise(moments)
    )
    assert sum(alone[turn.step] * turn.cores for turn in found) == pytest.approx(busy)


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
