"""Tasks that follow the graphs are killed in each state of a switch, with drivers or without: the next ones go on,
start what is lost, and end as they must. Nothing is deferred for ever.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from airflow_dagsched.switch.log.signs_files import place_order
from airflow_dagsched.switch.state import State
from tests.faults.combinations import list_states
from tests.faults.followers import FollowedDriver, TasksActor
from tests.faults.play import (
    NEW_EPOCH,
    OLD_EPOCH,
    THIRD_EPOCH,
    Actor,
    Play,
    Plot,
    Victims,
    play_given_up,
    play_switch,
    playing,
)
from tests.faults.plots import IN_TURN, REPLAY_APART
from tests.streams.kit import Flow

pytestmark = [pytest.mark.spark, pytest.mark.airflow, pytest.mark.faults]

TASKS, EVERYBODY = ("tasks",), ("old driver", "new driver", "tasks")
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
        tasks = TasksActor(play, {})
        play.cast = make_cast(play, tasks, OLD_EPOCH, NEW_EPOCH)
        play_switch(play, victims)
        if gives_up:
            play.cast = make_cast(play, tasks, NEW_EPOCH, THIRD_EPOCH)
            play_given_up(play, victims)
        assert place_order(play.locate(NEW_EPOCH), "stop", "a test", time.time(), "enough")
        play.wait(lambda: all(map(tasks.has_ended, play.story.epochs)))
    plot.check(flow, play.feed)
    replaced, stopped = tasks.read_outcome(OLD_EPOCH), tasks.read_outcome(NEW_EPOCH)
    assert (replaced["state"], replaced["returned"]["replaced_by"]) == ("success", NEW_EPOCH)
    assert stopped == {"state": "success", "returned": {"epoch": NEW_EPOCH}}
    assert not gives_up or tasks.read_outcome(THIRD_EPOCH)["state"] == "failed"
    return play.seen


def make_cast(play: Play, tasks: TasksActor, old: int, new: int) -> dict[str, Actor]:
    """Of a switch from one epoch to another."""
    tasks.roles = {old: "old", new: "new"}
    drivers = (FollowedDriver(play, "old driver", old), FollowedDriver(play, "new driver", new))
    return {"old driver": drivers[0], "new driver": drivers[1], "tasks": tasks}
