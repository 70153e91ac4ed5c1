"""Drivers are killed in each state of a switch, of the old graph, the new one, both, or one of both: the same table."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

from airflow_dagsched.switch.state import State
from tests.faults.combinations import list_met, list_states
from tests.faults.drivers import DriverActor
from tests.faults.play import NEW_EPOCH, OLD_EPOCH, THIRD_EPOCH, Plot, play_given_up, play_switch, playing
from tests.faults.plots import CARRY_APART, REPLAY, REPLAY_APART
from tests.streams.kit import Flow

pytestmark = [pytest.mark.spark, pytest.mark.faults]

OLD, NEW = "old driver", "new driver"
EITHER = pytest.mark.parametrize("victims", [(OLD,), (NEW,), (OLD, NEW)], ids="+".join)


@EITHER
def test_drivers_of_a_switch_are_killed_in_any_state(tmp_path: Path, victims: tuple[str, ...]):
    check_seen("replay", play_apart(tmp_path, REPLAY_APART, victims), victims)


@EITHER
def test_where_state_is_handed_on_drivers_are_killed_in_any_state(tmp_path: Path, victims: tuple[str, ...]):
    check_seen("carry", play_apart(tmp_path, CARRY_APART, victims), victims)


def test_the_driver_of_both_graphs_is_killed_in_any_state(tmp_path: Path):
    flow = Flow(tmp_path)
    with playing(flow, REPLAY) as play:
        both = DriverActor(play, "driver of both", OLD_EPOCH, NEW_EPOCH, THIRD_EPOCH)
        play.cast = {"both": both}
        play_switch(play, {"steady": ["both"]})
        play_given_up(play, {"steady": ["both"]})
        both.stop()
    REPLAY.check(flow, play.feed)
    assert play.seen == {"driver of both": list_states("replay, driver of both")}


def check_seen(way: str, seen: Mapping[str, set[State]], victims: Collection[str]) -> None:
    """They were killed in each state of the table."""
    assert {who: list_met(f"{way}, {who}", seen[who]) for who in victims} == {
        who: list_states(f"{way}, {who}") for who in victims
    }


def play_apart(tmp_path: Path, plot: Plot, victims: Collection[str]) -> dict[str, set[State]]:
    """Play it with an application for each graph; in which states whose driver was killed."""
    flow = Flow(tmp_path)
    with playing(flow, plot) as play:
        first, second = DriverActor(play, OLD, OLD_EPOCH), DriverActor(play, NEW, NEW_EPOCH)
        play.cast = {OLD: first, NEW: second}
        play_switch(play, {"steady": victims})
        play.cast = {OLD: second.rename(OLD), NEW: DriverActor(play, NEW, THIRD_EPOCH)}
        play_given_up(play, {"steady": victims})
        second.stop()
    plot.check(flow, play.feed)
    return play.seen
