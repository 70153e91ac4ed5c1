"""When a run is asked for: a table of what the log, leases and launch tasks say, and the same over days of looks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import pytest

from airflow_dagsched.provider.streaming.need_of_run import (
    FIRST_WAIT_S,
    LONGEST_WAIT_S,
    SETTLES_S,
    Look,
    Memory,
    Need,
    find_need,
    judge_look,
)
from airflow_dagsched.switch.signs import Seen
from airflow_dagsched.switch.story import Story
from tests.switch.drawn import (
    FIRST,
    go_on,
    make_aborted,
    make_batch,
    make_epoch,
    make_fence,
    make_started,
    make_stopped,
    tell,
)

ONE = tell(*FIRST)
TWO = go_on(ONE, make_epoch(2))
BOTH = go_on(TWO, make_started(2))
FENCED = go_on(BOTH, make_batch(1, 1, 10, 20), make_batch(2, 0, kept=0, watermark=20.0), make_fence(1, 20.0))
DEFERRED = {"run 1": "deferred"}
POLL_S = 5.0


def abort(story: Story, cause: Any) -> Story:
    return go_on(story, make_aborted(2, x_cause=cause))


def stop(cause: Any) -> Story:
    return go_on(ONE, make_stopped(1, x_cause=cause))


def try_again(story: Story, cause: Any) -> Story:
    """The same code once more, as epoch 3."""
    return go_on(story, make_epoch(3, fingerprint="code 2", x_after=1), make_aborted(3, x_cause=cause))


TIMED_OUT = try_again(abort(BOTH, "time"), "time")
LOST_AFTER = try_again(abort(BOTH, "time"), "lost")


def look(
    story: Story, code: int, states: Mapping[str, str | None], now: float = 0.0, moves: int = 0, **seen: Any
) -> Look:
    return Look(story, Seen(now, **seen), f"code {code}", states, moves=moves)


MOVED = go_on(ONE, make_epoch(2, fingerprint="code 1", run_id="run 1"))
STOPPED: dict[str, Any] = {"held": {1}, "orders": {1: {"stop": ""}}}
ROWS: list[tuple[str, Story, int, Mapping[str, str | None], dict[str, Any], Need | None]] = [
    ("nothing was ever there", Story(), 1, {}, {}, "changed"),
    ("it runs and is followed", ONE, 1, DEFERRED, {"held": {1}}, None),
    ("a file with other code", ONE, 2, DEFERRED, {"held": {1}}, "changed"),
    ("that code is asked for", TWO, 2, {"run 2": "running"}, {"held": {1}}, None),
    ("that code starts", BOTH, 2, {"run 2": "deferred"}, {"held": {1, 2}}, None),
    ("back to the old code while the new one starts", BOTH, 1, DEFERRED, {"held": {1, 2}}, "changed"),
    ("back to the old code behind the fence", FENCED, 1, DEFERRED, {"held": {1, 2}}, "changed"),
    ("it fails: once is enough", abort(BOTH, "author"), 2, DEFERRED, {"held": {1}}, None),
    ("a person gave it up", abort(BOTH, "person"), 2, DEFERRED, {"held": {1}}, None),
    ("it found no executors", abort(BOTH, "time"), 2, DEFERRED, {"held": {1}}, "changed"),
    ("it took too long twice", TIMED_OUT, 2, DEFERRED, {"held": {1}}, None),
    ("it took too long twice, and its author gives it more", TIMED_OUT, 3, DEFERRED, {"held": {1}}, "changed"),
    ("it took too long, then its driver was lost", LOST_AFTER, 2, DEFERRED, {"held": {1}}, "changed"),
    ("its driver stayed away", abort(BOTH, "lost"), 2, DEFERRED, {"held": {1}}, "changed"),
    ("another one replaced it, and went", abort(BOTH, "replaced"), 2, DEFERRED, {"held": {1}}, "changed"),
    ("it fails, and its author went back", abort(BOTH, "author"), 1, DEFERRED, {"held": {1}}, None),
    ("it fails, and its author mended it", abort(BOTH, "author"), 3, DEFERRED, {"held": {1}}, "changed"),
    ("the driver is lost, its run sees to it", ONE, 1, DEFERRED, {}, None),
    ("the driver is lost, its run waits for a worker", ONE, 1, {"run 1": "queued"}, {}, None),
    ("the driver is lost, its run has another try", ONE, 1, {"run 1": "up_for_retry"}, {}, None),
    ("driver and run are lost", ONE, 1, {"run 1": "failed"}, {}, "lost"),
    ("driver and run are lost, the run is deleted", ONE, 1, {}, {}, "lost"),
    ("nobody began, and its run is lost", tell(make_epoch(1)), 1, {"run 1": "failed"}, {}, "lost"),
    ("it runs and its run is lost", ONE, 1, {"run 1": "failed"}, {"held": {1}}, "not followed"),
    ("another run follows it", ONE, 1, {"run 1": "failed", "run 9": "deferred"}, {"held": {1}}, None),
    ("only the old graph's run is there", BOTH, 2, DEFERRED, {"held": {1, 2}}, "not followed"),
    ("a person stopped it", stop("person"), 1, {"run 1": "failed"}, {}, None),
    ("a person stopped it, and there is other code", stop("person"), 2, {"run 1": "failed"}, {}, "changed"),
    ("its author's error stopped it", stop("author"), 1, {"run 1": "failed"}, {}, None),
    ("it never came to a batch, for no fault of its code", stop("lost"), 1, {"run 1": "failed"}, {}, "lost"),
    ("it is better off elsewhere", ONE, 1, DEFERRED, {"held": {1}, "moves": 1}, "moved"),
    ("it is better off elsewhere, and its run is lost", ONE, 1, {}, {"held": {1}, "moves": 1}, "not followed"),
    ("it is better off elsewhere, with other code", ONE, 2, DEFERRED, {"held": {1}, "moves": 1}, "changed"),
    ("it was better off elsewhere, and goes there", MOVED, 1, DEFERRED, {"held": {1, 2}, "moves": 1}, None),
    ("it failed there", abort(MOVED, "author"), 1, DEFERRED, {"held": {1}, "moves": 1}, None),
    ("it found no executors there", abort(MOVED, "time"), 1, DEFERRED, {"held": {1}, "moves": 1}, "moved"),
    ("a stop is ordered, and it is better off elsewhere", ONE, 1, DEFERRED, STOPPED | {"moves": 1}, None),
    ("a stop is ordered", ONE, 1, {"run 1": "failed"}, {"held": {1}, "orders": {1: {"stop": ""}}}, None),
]


@pytest.mark.parametrize(
    ("story", "code", "states", "seen", "need"), [row[1:] for row in ROWS], ids=[r[0] for r in ROWS]
)
def test_a_run_is_needed(
    story: Story, code: int, states: Mapping[str, str | None], seen: dict[str, Any], need: Need | None
) -> None:
    assert find_need(look(story, code, states, **seen)) == need


def test_a_run_that_once_followed_another_epoch_does_not_follow_this_one() -> None:
    story = tell(make_epoch(1), make_started(1, x_run_id="run 9"), *FIRST[2:])
    story = go_on(story, make_epoch(2), make_started(2))
    assert find_need(look(story, 2, {"run 9": "deferred"}, held={1, 2})) == "not followed"


def watch(story: Story, code: int, states: Mapping[str, str | None], seconds: float) -> Iterator[float]:
    """Times at which a run is asked for, if nothing ever comes of it."""
    memory, now = Memory(), 0.0
    while now <= seconds:
        need, memory = judge_look(look(story, code, states, now), memory)
        if need:
            yield now
        now += POLL_S


def test_it_asks_at_once_and_then_ever_more_rarely() -> None:
    asked = list(watch(Story(), 1, {}, 6000))
    assert asked[0] == 0.0
    gaps = [later - earlier for earlier, later in pairwise(asked)]
    assert gaps == [FIRST_WAIT_S, 2 * FIRST_WAIT_S, 4 * FIRST_WAIT_S, *[LONGEST_WAIT_S] * (len(gaps) - 3)]
    assert len(list(watch(Story(), 1, {}, 5 * 86_400))) <= 5 * 86_400 / LONGEST_WAIT_S + 4


def test_while_a_run_has_not_begun_there_is_no_other_one_soon() -> None:
    asked = list(watch(Story(), 1, {"run 1": None}, 3000))
    assert asked == [0.0, LONGEST_WAIT_S, 2 * LONGEST_WAIT_S, 3 * LONGEST_WAIT_S]


def test_a_run_that_is_about_to_ask_is_waited_for() -> None:
    """It waits for room, or until the owner has a batch; the runs of epochs that are there are no such."""
    assert list(watch(ONE, 2, {"run 1": "running", "run 2": "running"}, 900)) == [0.0, LONGEST_WAIT_S]
    assert list(watch(ONE, 2, {"run 1": "running", "run 2": "failed"}, 150)) == [0.0, FIRST_WAIT_S]


def test_a_loss_must_be_seen_for_a_while() -> None:
    """Marking a launch task failed orders the stop a moment after the task has failed."""
    assert next(watch(ONE, 1, {"run 1": "failed"}, 600)) == SETTLES_S["lost"]
    lost, well = look(ONE, 1, {}), look(ONE, 1, DEFERRED)
    _, memory = judge_look(lost, Memory())
    _, memory = judge_look(well, memory)
    assert judge_look(look(ONE, 1, {}, SETTLES_S["lost"]), memory)[0] is None


def test_long_after_the_last_one_a_run_is_asked_for_at_once_again() -> None:
    memory = Memory(runs=7, asked=0.0)
    late = 2 * LONGEST_WAIT_S
    need, memory = judge_look(look(Story(), 1, {}, late), memory)
    assert (need, memory.runs) == ("changed", 1)
    need, memory = judge_look(look(Story(), 1, {}, late + FIRST_WAIT_S), memory)
    assert (need, memory.runs) == ("changed", 2)
