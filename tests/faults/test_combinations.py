"""The table of ``combinations``: of each state it says of everybody that he is killed there, or why he can't be."""

from __future__ import annotations

import pytest

from airflow_dagsched.switch.state import STATES, State
from tests.faults.combinations import PLAYED, REASONS, list_states, read_rows

WHOLE = ("replay, old driver", "replay, driver of both", "replay, worker of Spark", "replay, trigger of old")


def test_each_state_is_played_or_says_why_not():
    cells = {cell for row in read_rows().values() for cell in row.values()}
    assert cells == {PLAYED, *REASONS}


@pytest.mark.parametrize("who", [*WHOLE, "replay, executors", "executor at each line", "inbox, service"])
def test_who_is_there_in_each_state_is_killed_in_each(who: str):
    assert list_states(who) == {*STATES}


@pytest.mark.parametrize("state", STATES)
def test_of_the_new_graph_somebody_is_killed_as_soon_as_it_is_there(state: State):
    new = ("replay, new driver", "replay, worker of new", "replay, trigger of new")
    assert any(state in list_states(who) for who in new) == (state != "steady")
