"""What fills the inboxes is killed in each state of a switch: the same table in the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.combinations import list_states
from tests.faults.drivers import DriverActor, ServiceActor
from tests.faults.play import NEW_EPOCH, OLD_EPOCH, THIRD_EPOCH, play_given_up, play_switch, playing
from tests.faults.plots import INBOX
from tests.streams.kit import Flow

pytestmark = [pytest.mark.spark, pytest.mark.faults]


def test_what_fills_inboxes_is_killed_in_any_state(tmp_path: Path):
    flow = Flow(tmp_path)
    with playing(flow, INBOX) as play:
        graphs = DriverActor(play, "graphs", OLD_EPOCH, NEW_EPOCH, THIRD_EPOCH)
        play.cast = {"graphs": graphs, "service": ServiceActor(play, "service")}
        play_switch(play, {"steady": ["service"]})
        play_given_up(play, {"steady": ["service"]})
        graphs.stop()
    INBOX.check(flow, play.feed)
    assert play.seen == {"service": list_states("inbox, service")}
