"""An application without executors: the cluster manager is asked now and then, and has the say."""

from __future__ import annotations

import json

import pytest

from airflow_dagsched.errors import ClusterUnknown, InvalidInput
from airflow_dagsched.provider.clusters.planner_hook import EXECUTOR_WITHIN_S, PlannerHook
from airflow_dagsched.provider.following.watching import Watch


class Manager:
    """Says what it is told to, once for each question."""

    def __init__(self, *verdicts: str | Exception) -> None:
        self.left, self.asked_at, self.stopped, self.now = list(verdicts), list[float](), 0, 0.0

    def verdict(self) -> str:
        self.asked_at.append(self.now)
        said = self.left.pop(0)
        if isinstance(said, Exception):
            raise said
        return said

    def stop(self) -> None:
        self.stopped += 1


def watched(manager: Manager, *executors: int | None) -> Watch:
    """A heartbeat a second; 3 s without executors are long."""
    watch = Watch(3.0, manager.verdict, manager.stop)
    for now, count in enumerate(executors):
        manager.now = now
        watch.look(count, now)
    return watch


def test_one_that_gets_executors_in_time_is_asked_about_by_nobody() -> None:
    manager = Manager()
    assert watched(manager, None, 0, 0, 0, 1, 0, 0, 2, 2, 2, 2).stranded == ""
    assert manager.asked_at == []


def test_one_that_waits_for_its_turn_is_left_alone() -> None:
    """No answer is none to act upon."""
    manager = Manager("", ClusterUnknown("http://m", "status 500"), "")
    assert watched(manager, *[0] * 13).stranded == ""
    assert (manager.asked_at, manager.stopped) == ([3, 7, 11], 0)


def test_one_that_waits_in_vain_is_stopped_once() -> None:
    manager = Manager("", "w2 is gone")
    assert watched(manager, *[0] * 20).stranded == "w2 is gone"
    assert (manager.asked_at, manager.stopped) == ([3, 7], 1)


@pytest.mark.parametrize(("extra", "seconds"), [({}, EXECUTOR_WITHIN_S), ({"executor_within_s": "90"}, 90.0)])
def test_how_long_the_connection_says(extra: dict[str, str], seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection's form has text fields only."""
    monkeypatch.setenv("AIRFLOW_CONN_C", json.dumps({"conn_type": "spark", "host": "spark://m:7077", "extra": extra}))
    assert PlannerHook("c").executor_within_s == seconds


@pytest.mark.parametrize("given", [0, -1, "soon", None])
def test_what_is_no_time(given: object, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = {"conn_type": "spark", "host": "spark://m:7077", "extra": {"executor_within_s": given}}
    monkeypatch.setenv("AIRFLOW_CONN_C", json.dumps(raw))
    with pytest.raises(InvalidInput, match="connection 'c': executor_within_s"):
        _ = PlannerHook("c").executor_within_s
