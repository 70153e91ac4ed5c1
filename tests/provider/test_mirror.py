"""What mirrors see of their launch task, look by look."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_dagsched.launch.protocol.events import StepDone
from airflow_dagsched.launch.protocol.feed import Feed
from airflow_dagsched.launch.protocol.identity import TryId
from airflow_dagsched.launch.protocol.wire import encode_plain
from airflow_dagsched.provider.mirrors.mirror import View, update_view

FIRST, CLEARED, RETRIED = TryId("r", 0, 1), TryId("r", 1, 2), TryId("r", 1, 3)
AGAIN = TryId("s", 0, 1)
"""Of a run that was deleted and made again."""


def says(of: TryId, *steps: str) -> Any:
    """The raw feed of a try whose nonce is its own."""
    return encode_plain(Feed(str(of), of).add([StepDone(step, "success") for step in steps]))


def shown(*looks: tuple[str | None, Any]) -> tuple[str, ...] | None:
    """Steps that are done after these looks: at state and feed; None where there is no feed to believe."""
    view = View()
    for state, raw in looks:
        view = update_view(view, state, raw)
    return None if view.feed is None else tuple(view.feed.steps)


def test_a_feed_that_was_there_before_the_try_began_is_not_believed() -> None:
    waiting = ("queued", says(FIRST, "a"))
    assert shown(waiting, waiting, ("running", says(FIRST, "a"))) is None
    assert shown(waiting, waiting, ("running", says(CLEARED, "b"))) == ("b",)


def test_a_try_that_begins_while_a_look_is_taken_is_heard() -> None:
    """Its state was asked before it began, its first word read after: that word is no earlier try's."""
    assert shown(("queued", says(FIRST)), ("running", says(FIRST, "a"))) == ("a",)
    waiting = ("queued", says(FIRST, "a"))
    assert shown(waiting, ("queued", says(CLEARED)), ("running", says(CLEARED, "b"))) == ("b",)


@pytest.mark.parametrize("state", [None, "scheduled", "queued", "restarting"])
def test_a_feed_that_was_there_when_the_launch_task_was_cleared_is_not_believed(state: str | None) -> None:
    """Whatever the clear made of its state; until the worker of the next try has wiped it."""
    old = says(FIRST, "a")
    assert shown(("running", old), (state, old), ("running", old)) is None


def test_a_try_that_wakes_is_not_heard_after_a_later_one() -> None:
    """
    try 1   a ┄┄┄ frozen ┄┄┄┄┄┄┄┄┄┄ a, b
    try 2             c                       c is what there is
    """
    for earlier, later in ((FIRST, CLEARED), (CLEARED, RETRIED), (RETRIED, AGAIN)):
        woken = ("running", says(earlier, "a", "b"))
        assert shown(("running", says(earlier, "a")), ("running", says(later, "c")), woken) == ("c",)
        assert shown(("running", says(later, "c")), ("running", None), woken) is None


def test_a_retry_takes_over() -> None:
    assert shown(("running", says(CLEARED, "a")), ("up_for_retry", says(CLEARED, "a")), ("running", None)) is None
    assert shown(("running", says(CLEARED, "a")), ("running", says(RETRIED))) == ()


@pytest.mark.parametrize("raw", ["text", {"steps": {"a": {"unknown": 1}}}, {"steps": "none"}])
def test_a_feed_of_another_version_is_none(raw: Any) -> None:
    """A mirror that stumbled over it would wait for ever: its launch task's end is not seen then."""
    assert shown(("running", raw)) is None
    assert update_view(View(), "failed", raw).state == "failed"
