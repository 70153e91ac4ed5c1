"""Drivers of a switch are killed in each of its states, of the old graph, the new one, both: the same table in the end.

What is impossible is left out: of the new graph nothing runs before its driver is started ("requested"), of the old one
nothing once it has drained and gone, and in "steady" the killed driver is the only one.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import pytest

from airflow_dagsched.switch.state import State
from tests.faults.play import HELD, NEW, OLD, Play, held_states, playing
from tests.streams.kit import Feed, Flow
from tests.streams.rows import Rows
from tests.streams.test_switch import check_table, is_over

pytestmark = [pytest.mark.spark, pytest.mark.faults]

OLD_EPOCH, NEW_EPOCH = 1, 2
BOTH = (OLD_EPOCH, NEW_EPOCH)
BY_VICTIMS: dict[tuple[int, ...], set[State]] = {
    (OLD_EPOCH,): {"steady", "requested", "deploying", "catching_up", "fenced"},
    (NEW_EPOCH,): {"deploying", "catching_up", "fenced", "retiring"},
    BOTH: {"steady", "requested", "deploying", "catching_up", "fenced", "retiring"},
}
"""Epochs whose drivers are killed -> states in which at least one of them runs."""


@pytest.mark.parametrize("victims", list(BY_VICTIMS), ids=["old", "new", "both"])
def test_whoever_is_killed_in_any_state_the_table_is_the_same(tmp_path: Path, victims: tuple[int, ...]):
    flow = Flow(tmp_path)
    feed = Feed(flow, Rows())
    with playing(flow, feed) as play:
        play.ask(OLD_EPOCH, OLD)
        play.wait(lambda: len(flow.list_batches(OLD_EPOCH)) >= 3, [OLD_EPOCH])
        play.kill("steady", victims)
        before = len(flow.list_batches(OLD_EPOCH))
        play.wait(lambda: len(flow.list_batches(OLD_EPOCH)) > before, [OLD_EPOCH])
        places = play.ask(NEW_EPOCH, NEW)
        with held_states(flow, places) as holds:
            assert play.find_state(time.time()) == "requested"
            play.kill("requested", victims)
            play.wait(partial(is_in, play, "deploying"), BOTH)
            play.kill("deploying", victims)
            holds["requested"].close()
            for state in HELD[1:]:
                play.wait(partial(is_in, play, state), BOTH)
                play.kill(state, victims)
                holds[state].close()
        play.wait(lambda: is_over(flow), BOTH)
        play.wait(lambda: play.story.epochs[OLD_EPOCH].stopped is not None, BOTH)
        play.stop(NEW_EPOCH)
        assert play.seen >= BY_VICTIMS[victims]
    check_table(flow, feed)


def is_in(play: Play, state: State) -> bool:
    """Whether the switch is in that state now."""
    return play.find_state(time.time()) == state
