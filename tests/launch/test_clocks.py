"""When a try began, by one clock: a worker's may be wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_dagsched.launch.protocol.clocks import APART_S, compare_clocks, compute_begin
from airflow_dagsched.launch.protocol.events import StepDone
from airflow_dagsched.launch.protocol.feed import TOLERANCE_S, End, Feed, Wait, decide_verdict

GREEN = StepDone("s", "success")
MOMENTS = st.floats(1.0, 1e9)


@given(MOMENTS, st.floats(0.0, 1e6), st.floats(0.0, 1e6), st.floats(TOLERANCE_S + 0.1, 1e6), st.booleans())
def test_a_mirror_cleared_after_the_try_began_is_not_green_by_it(
    made: float, queued: float, waited: float, later: float, answers: bool
) -> None:
    """Whatever the worker's clock shows: it is not asked."""
    began = compute_begin(made, made + queued, made + queued + waited if answers else None)
    cleared = made + queued + waited + later
    said = Feed("n", began=began, final=True).add([GREEN])
    found = decide_verdict("success", said, "s", cleared, "launch")
    assert isinstance(found, End)
    assert (found.state, "cleared alone" in found.reason) == ("failed", True)
    assert decide_verdict("up_for_retry", said, "s", cleared, "launch") == Wait()


@given(MOMENTS, st.floats(0.0, 60.0), st.floats(0.0, 1e6), st.booleans(), st.booleans())
def test_each_mirror_believes_the_try_after_its_clear(
    made: float, clear_s: float, waited: float, was_over: bool, answers: bool
) -> None:
    """A clear of thousands of tasks takes its time. It starts a run that was over anew, and a server tells the time in
    whole seconds.
    """
    mirror = made + clear_s
    started = mirror if was_over else made - 100.0
    server = float(int(mirror + waited)) if answers else None
    if was_over or answers or clear_s <= TOLERANCE_S:
        said = Feed("n", began=compute_begin(made, started, server)).add([GREEN])
        assert decide_verdict("running", said, "s", mirror, "launch") == End("success", "", GREEN)


def test_nothing_but_the_making_may_be_known() -> None:
    assert compute_begin(5.0, None, None) == 5.0


@pytest.mark.parametrize(("ahead", "word"), [(60.0, "60 s ahead of"), (-60.0, "60 s behind"), (APART_S, ""), (0.0, "")])
def test_clocks_that_differ_are_said(ahead: float, word: str) -> None:
    said = compare_clocks(1000.0, 1000.0 + ahead)
    assert word in said
    assert bool(said) is bool(word)
