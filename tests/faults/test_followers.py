"""Tasks that follow the two graphs are killed in each state of a switch, with drivers or without: the next one goes on,
starts what is lost, and ends as it must. Nothing is deferred for ever.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from airflow_dagsched.switch.log.signs_files import place_order
from airflow_dagsched.switch.state import State
from tests.faults.combinations import list_states
from tests.faults.followers import FollowerActor, make_cast
from tests.faults.play import (
    NEW_EPOCH,
    OLD_EPOCH,
    THIRD_EPOCH,
    Plot,
    Victims,
    play_given_up,
    play_switch,
    playing,
)
from tests.faults.plots import IN_TURN, REPLAY_APART
from tests.streams.kit import Flow

pytestmark = [pytest.mark.spark, pytest.mark.airflow, pytest.mark.faults]

TASKS = ("old", "new")
EVERYBODY = ("old driver", "new driver", *TASKS)
WITH_TASK = ("replay, trigger of old", "replay, trigger of new", "replay, worker of new")


def test_who_follows_is_killed_in_any_state_and_the_next_one_goes_on(tmp_path: Path):
    seen = play_followed(tmp_path, REPLAY_APART, {"steady": TASKS}, gives_up=True)
    assert {f"replay, {who}": states for who, states in seen.items()} == {who: list_states(who) for who in WITH_TASK}


def test_all_who_advance_a_switch_are_killed_at_once_in_any_state(tmp_path: Path):
    """Nobody is left then that takes it on: whoever follows next does, and starts what is to run."""
    seen = play_followed(tmp_path, REPLAY_APART, {"steady": EVERYBODY}, gives_up=True)
    assert seen["trigger of old"] == list_states("replay, executors")
    assert seen["new driver"] >= {"deploying", "catching_up", "fenced"}
    assert seen["old driver"] >= {"steady", "requested", "deploying"}


def test_with_room_for_one_graph_all_who_advance_a_switch_are_killed_at_once_in_any_state(tmp_path: Path):
    # Behind "requested" the fence comes at once, and what was killed there would not run yet.
    seen = play_followed(tmp_path, IN_TURN, {"steady": EVERYBODY, "requested": TASKS})
    assert seen["trigger of old"] | seen["trigger of new"] == list_states("sequential, executors")
    assert seen["old driver"] == list_states("sequential, old driver")
    assert seen["new driver"] == list_states("sequential, new driver")


def play_followed(tmp_path: Path, plot: Plot, victims: Victims, *, gives_up: bool = False) -> dict[str, set[State]]:
    """Play it with nobody but tasks to start drivers; in which states who was killed. Each task ends as it must.

    :param gives_up: a third graph is, in the end.
    """
    flow = Flow(tmp_path)
    with playing(flow, plot) as play:
        old, new, third = (FollowerActor(play, epoch) for epoch in (OLD_EPOCH, NEW_EPOCH, THIRD_EPOCH))
        play.cast = make_cast(play, {"old": old, "new": new})
        play_switch(play, victims)
        if gives_up:
            play.wait(old.has_ended)
            play.cast = make_cast(play, {"old": new, "new": third})
            play_given_up(play, victims)
        assert place_order(play.locate(NEW_EPOCH), "stop", "a test", time.time(), "enough")
        tasks = [old, new, third] if gives_up else [old, new]
        play.wait(lambda: all(each.has_ended() for each in tasks))
    plot.check(flow, play.feed)
    replaced, stopped = old.read_outcome(), new.read_outcome()
    assert (replaced["state"], replaced["returned"]["replaced_by"]) == ("success", NEW_EPOCH)
    assert stopped == {"state": "success", "returned": {"epoch": NEW_EPOCH}}
    assert not gives_up or third.read_outcome()["state"] == "failed"
    return play.seen
