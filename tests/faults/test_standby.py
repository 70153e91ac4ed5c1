"""A standby is killed, and takes over from what is killed, while a graph is changed for another."""

from __future__ import annotations

import os
import signal
import time
from functools import partial
from pathlib import Path

import psutil
import pytest

from airflow_dagsched.switch.log.signs_files import place_order
from airflow_dagsched.switch.log.standbys import find_standby, list_standbys
from airflow_dagsched.switch.places import EpochPlaces
from airflow_dagsched.switch.records import Started
from tests.faults.combinations import list_states
from tests.faults.followers import TasksActor, kill_driver
from tests.faults.play import NEW_EPOCH, OLD_EPOCH, Play, asking, playing
from tests.faults.plots import STANDBY
from tests.streams.kit import Flow, wait_until
from tests.streams.test_standby import find_application
from tests.streams.test_switch import is_over

pytestmark = [pytest.mark.spark, pytest.mark.airflow, pytest.mark.faults]


class StandbyActor:
    """The application that waits."""

    def __init__(self, play: Play) -> None:
        self._play = play
        play.undo.callback(self._end)

    def _end(self) -> None:
        for folder in list_standbys(self._play.flow.places):
            kill_driver(EpochPlaces(folder))

    def find(self) -> str:
        """Its Spark application; empty: none stands by."""
        places = find_standby(self._play.flow.places)
        return "" if places is None else find_application(self._play.flow, places.folder.name)

    def go_on(self) -> None:
        """See ``Actor``: tasks see to that."""

    def settle(self) -> None:
        """See ``Actor``."""
        self._play.wait(lambda: self.find() != "")

    def kill(self) -> list[str]:
        """See ``Actor``."""
        places = find_standby(self._play.flow.places)
        return ["standby"] if places is not None and kill_driver(places) else []


class HolderActor:
    """The application that has the graphs, whoever started it for what."""

    def __init__(self, play: Play) -> None:
        self._play = play

    def list_starts(self) -> list[str]:
        """Spark's application of each start of a graph."""
        return [each.application for each in self._play.flow.read() if isinstance(each, Started)]

    def go_on(self) -> None:
        """See ``Actor``: tasks, and the standby, see to that."""

    def settle(self) -> None:
        """See ``Actor``."""

    def kill(self) -> list[str]:
        """See ``Actor``."""
        python = [each for each in self._play.flow.read() if isinstance(each, Started)][-1].x_pid
        os.killpg(os.getpgid(python), signal.SIGKILL)
        wait_until(lambda: not psutil.pid_exists(python), lambda: f"{python} is there still")
        self._play.feed.add()
        return ["driver"]


def test_a_standby_is_killed_and_takes_over_while_a_graph_is_changed(tmp_path: Path):
    flow = Flow(tmp_path)
    with playing(flow, STANDBY) as play:
        tasks, standby, holder = (
            TasksActor(play, {OLD_EPOCH: "old", NEW_EPOCH: "new"}),
            StandbyActor(play),
            HolderActor(play),
        )
        play.cast = {"tasks": tasks, "standby": standby, "driver": holder}
        flow.ask(STANDBY.old)
        play.wait_for_batches(OLD_EPOCH, 3)
        play.kill("steady", ["standby"])
        standby.settle()
        with asking(play, STANDBY.new, ("deploying",)) as holds:
            play.wait(partial(play.is_in, "deploying"))
            take_over(play, standby, holder)
            holds["deploying"].close()
        play.wait(lambda: is_over(flow) and play.story.epochs[OLD_EPOCH].stopped is not None)
        standby.settle()
        take_over(play, standby, holder)
        play.wait_for_batches(NEW_EPOCH, 2)
        assert place_order(play.locate(NEW_EPOCH), "stop", "a test", time.time(), "enough")
        play.wait(lambda: all(map(tasks.has_ended, play.story.epochs)))
    STANDBY.check(flow, play.feed)
    assert {f"standby, {who}": states for who, states in play.seen.items()} == {
        who: list_states(who) for who in ("standby, standby", "standby, driver")
    }


def take_over(play: Play, standby: StandbyActor, holder: HolderActor) -> None:
    """Kill what has the graphs, in the state that it is in: what stands by has them then."""
    waits, before = standby.find(), len(holder.list_starts())
    assert waits not in {"", *holder.list_starts()}
    play.kill(play.find_state(), ["driver"])
    play.wait(lambda: len(holder.list_starts()) > before)
    assert holder.list_starts()[before] == waits
