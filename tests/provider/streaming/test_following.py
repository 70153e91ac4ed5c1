"""Following an epoch for weeks: what a trigger makes of log, leases and time."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection
from pathlib import Path

import pytest

from airflow_dagsched.provider.streaming import following
from airflow_dagsched.provider.streaming.following import (
    OTHERS_S,
    OWN_S,
    POLLS,
    TORN_S,
    Followed,
    Look,
    wait_for_verdict,
)
from airflow_dagsched.provider.streaming.trigger import SETTLED_S, StreamTrigger, find_rest, make_event
from airflow_dagsched.provider.streaming.verdicts import End, Lost, Verdict, judge_epoch
from airflow_dagsched.switch.advising.advice import Wanted
from airflow_dagsched.switch.log.signs_files import place_order, write_ended
from airflow_dagsched.switch.signs import Ended
from airflow_dagsched.switch.story import Story
from tests.provider.streaming.flows import Flow
from tests.switch.drawn import (
    make_aborted,
    make_batch,
    make_current,
    make_drained,
    make_epoch,
    make_fence,
    make_started,
    make_stopped,
    tell,
)

RUNNING = (make_epoch(1), make_started(1), make_batch(1, 0), make_current(1))
SWITCHED = (
    *RUNNING, make_epoch(2), make_started(2), make_batch(2, 0, kept=0), make_fence(1, 40.0),
    make_batch(1, 1, watermark=40.0), make_drained(1),
)  # fmt: skip


def open_look(flow: Flow) -> Look:
    return Look.open(Followed(str(flow.places.folder), 900, 1800, 21_600), flow.clock)


def look_for_long(look: Look, flow: Flow, epochs: Collection[int]) -> dict[int, Verdict]:
    """The verdicts, when what is to be started has been so for as long as its application might need."""
    assert look.look(epochs) == {}
    flow.now += OWN_S
    return look.look(epochs)


def make_running(tmp_path: Path) -> Flow:
    flow = Flow(tmp_path)
    flow.ask(1)
    flow.run_batch(1)
    assert flow.settle().owner == 1
    return flow


@pytest.mark.parametrize(
    ("story", "epoch", "state", "said"),
    [
        (tell(*RUNNING), 1, "", ""),
        (Story(), 1, "failed", "not in the stream's log"),
        (tell(*RUNNING, make_stopped(1, reason="by hand", x_cause="person")), 1, "success", "by hand"),
        (tell(*RUNNING, make_stopped(1, reason="step 'out' fails", x_cause="author")), 1, "failed", "step 'out' fails"),
        (tell(*RUNNING, make_stopped(1, reason="never came", x_cause="lost")), 1, "failed", "never came"),
        (tell(*RUNNING, make_epoch(2), make_aborted(2)), 2, "failed", "no executors"),
        (tell(*RUNNING, make_epoch(2), make_aborted(2)), 1, "", ""),
        (tell(*SWITCHED, make_stopped(1)), 1, "", ""),
        (tell(*SWITCHED, make_stopped(1), make_current(2)), 1, "success", "replaced by epoch 2 at window 1970-01-01"),
        (tell(*SWITCHED, make_stopped(1), make_current(2)), 2, "", ""),
    ],
)  # fmt: skip
def test_how_an_epoch_ends_is_in_the_log(story: Story, epoch: int, state: str, said: str):
    end = judge_epoch(story, epoch)
    assert (end.state if end else "") == state
    assert said in (end.reason if end else "")


def test_a_good_end_needs_no_worker_and_a_bad_one_uses_no_retry():
    good = make_event(End("success", "", {"replaced_by": 2}), 1)
    assert (type(good).__name__, good.xcoms) == ("TaskSuccessEvent", {"return_value": {"replaced_by": 2}})
    assert make_event(End("failed", "why"), 1).payload == {"event": "ended", "reason": "why"}
    assert make_event(Lost(3), 4).payload == {"event": "lost", "epoch": 3, "follows": 4}


@pytest.mark.parametrize(
    ("verdict", "followed_s", "rest_s"),
    [
        (Lost(1), 0.0, SETTLED_S),
        (Lost(1), 5.0, SETTLED_S - 5.0),
        (End("failed", "why"), 0.0, SETTLED_S),
        (Lost(1), SETTLED_S, 0.0),
        (Lost(1), 1e6, 0.0),
        (End("success", ""), 0.0, 0.0),
    ],
)
def test_a_task_gets_a_worker_again_when_the_scheduler_knows_that_it_was_deferred(
    verdict: Verdict, followed_s: float, rest_s: float
):
    assert find_rest(make_event(verdict, 1), followed_s) == rest_s


def test_a_lost_driver_is_told_when_its_time_has_come(tmp_path: Path):
    flow = make_running(tmp_path)
    look = open_look(flow)
    assert look.look([1]) == {}
    flow.kill(1)
    assert look_for_long(look, flow, [1]) == {1: Lost(1)}
    flow.dies = True
    flow.settle()
    assert look.look([1]) == {}, "it was started just now"
    flow.now += 1
    assert look_for_long(look, flow, [1]) == {1: Lost(1)}


def test_a_graph_that_its_application_starts_again_needs_no_worker(tmp_path: Path):
    flow = make_running(tmp_path)
    look = open_look(flow)
    for _ in range(3):
        flow.kill(1)
        assert look.look([1]) == {}
        flow.now += 0.5 * OWN_S
        flow.set_lease(1, flow.now + 20)
        assert look.look([1]) == {}, "it works, and was not lost for long"
        flow.now += OWN_S


def test_a_graph_that_had_to_wait_for_room_is_started_once_it_is_the_owner(tmp_path: Path):
    flow = make_running(tmp_path)
    flow.run_batch(1, first=10, last=20, x_newest={"in": 31.0})
    flow.executor.step(Wanted("code 2", "run 2", f"{2:08x}", {"out": ("in",)}, window=10.0, overlap="sequential"))
    look = open_look(flow)
    assert look.look([1, 2]) == {}
    flow.run_batch(1, watermark=50.0)
    flow.kill(1)
    for record in (make_drained(1), make_stopped(1), make_current(2)):
        flow.add(record)
    assert look_for_long(look, flow, [2]) == {2: Lost(2)}
    flow.settle()
    assert flow.started == [f"{1:08x}", f"{2:08x}"]


def test_a_graph_that_a_state_is_handed_on_to_is_started_before_it_is_the_owner(tmp_path: Path):
    """It has waited for that in a driver: its task has no worker, and nobody else ends the old one's moves."""
    flow = make_running(tmp_path)
    flow.run_batch(1, first=10, last=20, x_newest={"in": 31.0})
    flow.executor.step(Wanted("code 2", "run 2", f"{2:08x}", {"out": ("in",)}, window=10.0, channel="carry"))
    look = open_look(flow)
    assert look.look([2]) == {}
    flow.add(make_fence(1, 20))
    flow.kill(1)
    assert look_for_long(look, flow, [2]) == {2: Lost(2)}


def test_what_nobody_starts_is_started_by_whoever_follows_another(tmp_path: Path):
    flow = make_running(tmp_path)
    look = open_look(flow)
    flow.run_batch(1, first=10, last=20, x_newest={"in": 31.0})
    flow.ask(2)
    flow.kill(1)
    for passed, found in ((0, {}), (OTHERS_S, {2: Lost(1)})):
        flow.now += passed
        flow.set_lease(2, flow.now + 20)
        assert look.look([2]) == found


def test_a_stream_ordered_to_stop_ends_well_once_its_driver_is_gone(tmp_path: Path):
    """Nobody but the trigger is left to say so."""
    flow = make_running(tmp_path)
    place_order(flow.locate(1), "stop", "someone", flow.now, "enough")
    look = open_look(flow)
    assert look.look([1]) == {}
    flow.kill(1)
    look.look([1])
    assert look.look([1])[1] == End("success", "epoch 1 was stopped: ordered: enough", {"epoch": 1})


def test_a_crash_loop_ends_with_the_author_s_error(tmp_path: Path):
    flow = make_running(tmp_path)
    look, flow.dies = open_look(flow), True
    flow.kill(1)
    for _ in range(100):
        flow.now += 1
        verdict = look.look([1]).get(1)
        if isinstance(verdict, End):
            break
        if verdict is not None:
            flow.executor.step()
            write_ended(flow.locate(1), Ended(1, "author", flow.now, "out", "KeyError: 'user'"))
    assert verdict == End("failed", "epoch 1 was stopped: step 'out' fails: KeyError: 'user'", {"epoch": 1})
    assert len(flow.started) == 1 + 5


def test_weeks_of_lost_drivers_leave_no_more_files_than_days(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Each is started again; what lies there is bounded, and so is what the trigger remembers."""
    # No power cut is looked at here, and a busy disk would take minutes for all of them.
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    flow = make_running(tmp_path)
    look, counted = open_look(flow), []
    for turn in range(1000):
        flow.now += 60
        flow.run_batch(1)
        flow.kill(1)
        assert look_for_long(look, flow, [1]) == {1: Lost(1)}
        flow.executor.step()
        assert look.look([1]) == {}
        assert len(flow.started) == turn + 2, "a batch came of the last start: no waiting"
        counted.append(sum(1 for each in tmp_path.rglob("*") if each.is_file()) if turn % 250 == 249 else 0)
    assert max(counted) < 1000, "2,000 records were written"
    assert max(counted[500:]) <= max(counted[:500])
    assert len(look.since) <= 1
    assert len(look.executor.log.story.epochs[1].queries["out"].candidates) < 5


def test_a_log_that_stays_torn_is_told_to_a_person_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """Not at once: it may be read from a disk that just comes back."""
    flow = make_running(tmp_path)
    monkeypatch.setattr(following, "POLL_S", 0.001)
    torn = flow.places.log / "0000000002.json"
    torn.write_text("{")
    plain, looks = Look.look, []

    def look(self: Look, epochs: tuple[int, ...]) -> dict[int, Lost | End]:
        looks.append(flow.now)
        flow.now += TORN_S / 10
        return plain(self, epochs)

    monkeypatch.setattr(Look, "look", look)
    opened = open_look(flow)
    monkeypatch.setattr(Look, "open", lambda followed: opened)
    end = asyncio.run(wait_for_verdict(Followed(str(flow.places.folder), 900, 1800, 21_600), 1))
    assert isinstance(end, End)
    assert (end.state, str(torn) in end.reason) == ("failed", True)
    assert looks[-1] - looks[0] == TORN_S
    assert len([each for each in caplog.records if "cannot look" in each.getMessage()]) == 1
    assert POLLS == {}


def test_one_look_serves_all_who_follow_a_flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Two runs of a flow, one replaced by the other; a torn log ends nobody, and nothing is left of them."""
    flow = make_running(tmp_path)
    flow.now = 4_000_000_000.0  # leases hold by the machine's own clock, too
    flow.set_lease(1, flow.now)
    monkeypatch.setattr(following, "POLL_S", 0.001)
    followed, looks = Followed(str(flow.places.folder), 900, 1800, 21_600), []
    plain = Look.look

    def look(self: Look, epochs: tuple[int, ...]) -> dict[int, Lost | End]:
        looks.append(sorted(epochs))
        if len(looks) < 3:
            raise OSError("away")
        if len(looks) == 10:
            flow.add(make_stopped(1, reason="enough", x_cause="person", at=flow.now))
        return plain(self, epochs)

    monkeypatch.setattr(Look, "look", look)

    async def follow() -> list[End | Lost]:
        return await asyncio.gather(*(wait_for_verdict(followed, 1) for _ in range(3)))

    ends = asyncio.run(follow())
    assert {each.state for each in ends if isinstance(each, End)} == {"success"}
    assert len(looks) >= 10
    assert POLLS == {}


def test_a_trigger_is_made_anew_from_what_airflow_stores():
    trigger = StreamTrigger("/work/streams/dag/flow", 3, 900, 1800, 21_600)
    path, arguments = trigger.serialize()
    assert path == f"{StreamTrigger.__module__}.StreamTrigger"
    again = StreamTrigger(**arguments)
    assert (again.followed, again.epoch) == (trigger.followed, trigger.epoch)
