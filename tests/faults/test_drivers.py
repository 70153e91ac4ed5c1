"""Drivers of a switch are killed in each of its states, of the old graph, the new one, both: the same table in the end.

What is impossible is left out: of the new graph nothing runs before its driver is started ("requested"), of the old one
nothing once it has drained and gone, and in "steady" the killed driver is the only one.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_dagsched.switch.state import State
from tests.faults.actors import DriverActor
from tests.faults.play import NEW_EPOCH, OLD_EPOCH, play_switch, playing
from tests.faults.plots import REPLAY_APART
from tests.streams.kit import Flow

pytestmark = [pytest.mark.spark, pytest.mark.faults]

BY_VICTIMS: dict[tuple[str, ...], dict[str, set[State]]] = {
    ("old",): {"old": {"steady", "requested", "deploying", "catching_up", "fenced"}},
    ("new",): {"new": {"deploying", "catching_up", "fenced", "retiring"}},
    ("old", "new"): {
        "old": {"steady", "requested", "deploying", "catching_up", "fenced"},
        "new": {"deploying", "catching_up", "fenced", "retiring"},
    },
}
"""Those whose drivers are killed -> states in which each of them runs."""


@pytest.mark.parametrize("victims", list(BY_VICTIMS), ids="+".join)
def test_whoever_is_killed_in_any_state_the_table_is_the_same(tmp_path: Path, victims: tuple[str, ...]):
    flow = Flow(tmp_path)
    with playing(flow, REPLAY_APART) as play:
        new = DriverActor(play, NEW_EPOCH)
        play.cast = {"old": DriverActor(play, OLD_EPOCH), "new": new}
        play_switch(play, REPLAY_APART, {"steady": victims})
        new.stop()
    REPLAY_APART.check(flow, play.feed)
    for name, states in BY_VICTIMS[victims].items():
        assert play.seen[name] >= states
