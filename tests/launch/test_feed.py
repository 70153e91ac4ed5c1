"""The mirrors' verdict table, row by row, and the feed it reads."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_dagsched.launch.protocol.events import Failure, StepDone, StepLog, StepRunning
from airflow_dagsched.launch.protocol.feed import (
    FINISHED,
    LOG_LINES,
    TOLERANCE_S,
    End,
    Feed,
    StepLines,
    Wait,
    decide_elsewhere,
    decide_verdict,
    list_xcoms,
)
from airflow_dagsched.launch.protocol.wire import decode_dataclass, encode_plain

NOT_STARTED = (None, "scheduled", "queued", "restarting")
BUSY = ("running", "up_for_retry")


FIRST, AGAIN = 1000.0, 2000.0
"""When a mirror was made with its run, and when a clear made it anew."""


def feed(*ends: StepDone, began: float = FIRST) -> Feed:
    return Feed("n", began=began).add(ends)


GREEN = StepDone("s", "success", rows=3)
RED = StepDone("s", "failed", failure=Failure("author", "no such column"))
GREY = StepDone("s", "skipped", reason="skipped by 'branch'")


@pytest.mark.parametrize("state", NOT_STARTED)
@pytest.mark.parametrize("end", [GREEN, RED, GREY])
def test_waits_while_the_launch_task_has_not_started(state: str | None, end: StepDone) -> None:
    """Whatever the feed says, it is an earlier try's."""
    assert decide_verdict(state, feed(end), "s", FIRST, "launch") == Wait()


@pytest.mark.parametrize("state", BUSY)
def test_while_running_only_good_ends_count(state: str) -> None:
    """A failed step may be mended by the next try."""
    assert decide_verdict(state, feed(GREEN), "s", FIRST, "launch") == End("success", "", GREEN)
    assert decide_verdict(state, feed(GREY), "s", FIRST, "launch") == End("skipped", GREY.reason, GREY)
    assert decide_verdict(state, feed(RED), "s", FIRST, "launch") == Wait()
    assert decide_verdict(state, feed(), "s", FIRST, "launch") == Wait()


@pytest.mark.parametrize("state", [*BUSY, "success"])
@pytest.mark.parametrize("wanted", ["success", "skipped"])
def test_a_pruned_step_says_why_and_ends_as_wanted(state: str, wanted: Literal["success", "skipped"]) -> None:
    done = StepDone("s", "pruned", reason="no work without input")
    end = decide_verdict(state, replace(feed(done), pruned=wanted), "s", FIRST, "launch")
    assert end == End(wanted, "pruned: no work without input", done)
    assert list_xcoms(done)["return_value"]["pruned"] == "no work without input"


@pytest.mark.parametrize("state", sorted(FINISHED))
def test_no_mirror_hangs_once_the_launch_task_ended(state: str) -> None:
    """Every mirror ends, whatever the feed holds or lacks."""
    for known in (None, feed(), feed(GREEN), feed(RED), feed(GREY)):
        assert isinstance(decide_verdict(state, known, "s", FIRST, "launch"), End)


def test_a_lost_launch_task_turns_open_mirrors_red() -> None:
    end = decide_verdict("failed", feed(), "s", FIRST, "f.launch")
    assert isinstance(end, End)
    assert (end.state, "'f.launch' ended as failed" in end.reason) == ("failed", True)


def test_a_skipped_launch_task_is_never_green() -> None:
    assert decide_verdict("skipped", None, "s", FIRST, "launch").state == "skipped"  # type: ignore[union-attr]
    assert decide_verdict("upstream_failed", None, "s", FIRST, "launch").state == "failed"  # type: ignore[union-attr]


def test_a_mirror_cleared_alone_says_what_to_clear() -> None:
    """The feed is of the first round, the mirror of the second: nothing ran since."""
    end = decide_verdict("success", feed(GREEN), "s", AGAIN, "f.launch")
    assert isinstance(end, End)
    assert (end.state, "clear 'f.launch' with it" in end.reason) == ("failed", True)
    assert decide_verdict("success", feed(GREEN, began=AGAIN), "s", AGAIN, "f.launch") == End("success", "", GREEN)


def test_feed_survives_xcom() -> None:
    """Encode, decode: the same feed."""
    full = feed(GREEN, RED).add([StepLog("s", ("a", "b")), StepRunning("t")])
    assert decode_dataclass(Feed, encode_plain(full)) == full


def test_lines_are_bounded_and_numbered() -> None:
    """250 lines: the last 100 stay, and a reader that saw 200 gets 50."""
    lines = StepLines().add(str(n) for n in range(250))
    assert (lines.first, len(lines.lines)) == (250 - LOG_LINES, LOG_LINES)
    assert lines.since(200) == tuple(str(n) for n in range(200, 250))


def test_xcoms_of_a_plain_value_and_of_rows() -> None:
    assert list_xcoms(StepDone("s", "success", value=7))["return_value"] == 7
    named = list_xcoms(StepDone("s", "success", rows=2, path="/a", datasets={"good": "/g", "": "/a"}))
    assert named["return_value"] == {"path": "/a", "rows": 2, "seconds": None, "metrics": {}}
    assert named["good"]["path"] == "/g"


def test_files_with_some_of_the_rows_are_handed_to_nobody() -> None:
    """A folder of the author's own that is called so is a table."""
    told = list_xcoms(StepDone("s", "success", rows=9, path="/a-some", datasets={"": "/a-some", "good": "/g"}))
    assert (told["return_value"]["path"], told["return_value"]["rows"], told["good"]["path"]) == (None, 9, "/g")
    assert list_xcoms(StepDone("s", "success", path="/awe-some"))["return_value"]["path"] == "/awe-some"


def test_a_final_feed_is_not_believed_while_the_launch_task_runs() -> None:
    """It may be an earlier try's, which the worker wipes some seconds after it began; between tries it counts."""
    last_word = replace(feed(GREEN), final=True)
    assert decide_verdict("running", last_word, "s", FIRST, "launch") == Wait()
    assert decide_verdict("up_for_retry", last_word, "s", FIRST, "launch") == End("success", "", GREEN)


@pytest.mark.parametrize("state", [*NOT_STARTED, *BUSY])
def test_a_feed_older_than_the_clear_is_not_believed(state: str) -> None:
    """The worker wipes the old feed only some seconds after the launch task runs again."""
    assert decide_verdict(state, feed(GREEN), "s", AGAIN, "launch") == Wait()


ENDS = st.lists(st.sampled_from([GREEN, RED, GREY]), max_size=1)
STATES = st.sampled_from([*NOT_STARTED, *BUSY, "deferred", "up_for_reschedule", *sorted(FINISHED)])
SECONDS = st.floats(1.0, 1e9)


@given(STATES, ENDS, st.booleans(), SECONDS, st.floats(TOLERANCE_S + 0.01, 1e6))
def test_a_cleared_mirror_never_ends_well_by_what_was_said_before(
    state: str | None, ends: list[StepDone], final: bool, began: float, later: float
) -> None:
    """Whatever state the clear leaves the launch task in: while it runs, restarts, waits, or is over."""
    found = decide_verdict(state, replace(feed(*ends, began=began), final=final), "s", began + later, "launch")
    assert found == Wait() or (isinstance(found, End) and found.state == "failed" and state in FINISHED)


@given(ENDS, SECONDS, st.floats(0.0, 1e6), st.floats(0.0, TOLERANCE_S / 2))
def test_a_mirror_believes_each_try_after_its_making(
    ends: list[StepDone], made: float, later: float, behind: float
) -> None:
    """The clear made the launch task before the mirror, and the worker's clock is a little behind, or neither."""
    for began in (made + later, made - behind):
        said = feed(*ends, began=began)
        assert decide_verdict("success", said, "s", made, "launch") == decide_verdict(
            "success", said, "s", 0.0, "launch"
        )
        assert decide_verdict("running", said, "s", made, "launch") == decide_verdict(
            "running", said, "s", 0.0, "launch"
        )


@given(STATES, ENDS, SECONDS, SECONDS)
def test_the_verdict_is_final_once_the_launch_task_is_over(
    state: str | None, ends: list[StepDone], began: float, made: float
) -> None:
    found = decide_verdict(state, feed(*ends, began=began), "s", made, "launch")
    assert isinstance(found, End) or state not in FINISHED


@pytest.mark.parametrize("state", [*NOT_STARTED, *BUSY, *sorted(FINISHED)])
@pytest.mark.parametrize("end", [GREEN, GREY, RED])
def test_another_launch_task_that_may_run_the_step(state: str | None, end: StepDone) -> None:
    """Its good ends count as the step's own launch task's do; it never turns a mirror red."""
    mine = decide_verdict(state, feed(end), "s", FIRST, "launch")
    good = isinstance(mine, End) and end is not RED
    assert decide_elsewhere(state, feed(end), "s", FIRST) == (mine if good else Wait())


@pytest.mark.parametrize("state", [None, "running", *sorted(FINISHED)])
def test_another_launch_task_without_a_word_on_the_step(state: str | None) -> None:
    """Of another round, of another step, or none."""
    for said in (
        feed(GREEN, began=FIRST),
        feed(GREEN, began=AGAIN - TOLERANCE_S / 2),
        feed(replace(GREEN, step="t"), began=AGAIN),
        None,
    ):
        assert decide_elsewhere(state, said, "s", AGAIN) == Wait()
