"""A try asks whether it still counts before it tells or keeps anything."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_dagsched.launch.protocol.identity import TryId
from airflow_dagsched.provider.following.standing import ASK_EVERY_S, Standing, Superseded


class Airflow:
    """What a try finds when it asks."""

    def __init__(self) -> None:
        self.state: str | None = "running"
        self.feed: dict[str, Any] | None = None
        self.now = 1000.0
        self.asked = 0
        self.away = False
        self.standing = Standing("f.launch", "mine", self._state, lambda: self.feed, lambda: self.now)

    def _state(self) -> str | None:
        self.asked += 1
        if self.away:
            raise ConnectionError("away")
        return self.state


def test_a_running_try_counts_and_asks_but_now_and_then() -> None:
    airflow = Airflow()
    assert all(airflow.standing.holds() for _ in range(9))
    assert airflow.asked == 1
    airflow.now += ASK_EVERY_S
    assert airflow.standing.holds()
    assert airflow.asked == 2


@pytest.mark.parametrize("state", ["restarting", "up_for_retry", "scheduled", "queued", "failed", "success", None])
def test_a_try_that_airflow_has_given_up_knows_as_it_wakes(state: str | None) -> None:
    airflow = Airflow()
    assert airflow.standing.holds()
    airflow.state, airflow.now = state, airflow.now + 600
    assert not airflow.standing.holds()
    airflow.state = "running"
    airflow.now += 600
    assert not airflow.standing.holds(), "the try that runs is another"
    with pytest.raises(Superseded, match="nothing more of it counts"):
        airflow.standing.demand()


def test_a_later_try_has_said_something() -> None:
    airflow = Airflow()
    airflow.feed = {"nonce": "of an earlier try, not wiped yet"}
    assert airflow.standing.holds()
    airflow.standing.said, airflow.feed, airflow.now = True, {"nonce": "mine"}, airflow.now + 600
    assert airflow.standing.holds()
    airflow.standing.try_id = TryId("r", 0, 2)
    airflow.feed, airflow.now = {"nonce": "of a worker that woke", "try_id": {"try_number": 1}}, airflow.now + 600
    assert airflow.standing.holds(), "an earlier try is no reason to give up"
    airflow.feed["try_id"] = {"incarnation": "r", "try_number": 3}
    airflow.now += 600
    assert not airflow.standing.holds()


def test_a_feed_that_is_gone_was_removed_as_another_try_began() -> None:
    """Or with its run, which was made again and runs: a task's state is asked by the names of both."""
    airflow = Airflow()
    airflow.standing.said = True
    assert not airflow.standing.holds()


def test_a_clock_that_is_set_back_is_no_reason_not_to_ask() -> None:
    airflow = Airflow()
    assert airflow.standing.holds()
    airflow.state, airflow.now = "queued", airflow.now - 3600
    assert not airflow.standing.holds()


def test_an_airflow_that_is_away_ends_no_try() -> None:
    airflow = Airflow()
    airflow.away = True
    airflow.standing.demand()
    assert not airflow.standing.lost
