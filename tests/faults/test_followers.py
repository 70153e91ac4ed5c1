"""The tasks that follow the two graphs are killed in each state of a switch, as their workers and as their triggers:
who follows next goes on, starts what is lost, and ends as it must.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

from airflow_dagsched.switch.log.signs_files import place_order
from airflow_dagsched.switch.state import State
from tests.faults.actors import FollowedDriver, FollowerActor
from tests.faults.play import NEW_EPOCH, OLD_EPOCH, Plot, play_switch, playing
from tests.faults.plots import IN_TURN, REPLAY_APART
from tests.streams.kit import Flow

pytestmark = [pytest.mark.spark, pytest.mark.airflow, pytest.mark.faults]

TASKS = ("old", "new")


def test_who_follows_is_killed_in_any_state_and_the_next_one_goes_on(tmp_path: Path):
    """Behind the fence the old graph's driver, too: nobody else starts it again."""
    seen = play_followed(tmp_path, REPLAY_APART, {"steady": TASKS, "fenced": (*TASKS, "old driver")})
    all_states: set[State] = {"steady", *REPLAY_APART.states}
    assert seen == {"old": all_states, "new": {*REPLAY_APART.states}, "old driver": {"fenced"}}


def test_with_room_for_one_graph_its_driver_is_killed_with_who_follows_in_any_state(tmp_path: Path):
    """Nobody is left then that takes the switch on: whoever follows next does, and starts what is to run."""
    all_ = ("old driver", "new driver", *TASKS)
    # Behind "requested" the fence comes at once, and what was killed there would not run yet.
    seen = play_followed(tmp_path, IN_TURN, {"steady": all_, "requested": TASKS})
    assert seen["old"] == seen["new"] == {*IN_TURN.states}
    assert seen["old driver"] == {"steady", "fenced", "retiring"}
    assert seen["new driver"] == {"steady"}


def play_followed(tmp_path: Path, plot: Plot, victims: Mapping[State, Collection[str]]) -> dict[str, set[State]]:
    """Play it with nobody but tasks to start drivers; in which states who was killed. Each task ends as it must."""
    flow = Flow(tmp_path)
    with playing(flow, plot) as play:
        old, new = FollowerActor(play, OLD_EPOCH), FollowerActor(play, NEW_EPOCH)
        drivers = {"old driver": FollowedDriver(play, OLD_EPOCH), "new driver": FollowedDriver(play, NEW_EPOCH)}
        play.cast = {"old": old, "new": new, **drivers}
        play_switch(play, plot, victims)
        assert place_order(play.locate(NEW_EPOCH), "stop", "a test", time.time(), "enough")
        play.wait(lambda: old.has_ended() and new.has_ended())
    plot.check(flow, play.feed)
    replaced, stopped = old.read_outcome(), new.read_outcome()
    assert (replaced["state"], replaced["returned"]["replaced_by"]) == ("success", NEW_EPOCH)
    assert stopped == {"state": "success", "returned": {"epoch": NEW_EPOCH}}
    return play.seen
