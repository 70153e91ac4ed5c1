"""A mirror that looks at several launch tasks ends by whichever has run its step."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from airflow_dagsched.launch.protocol.events import Failure, StepDone, StepLog
from airflow_dagsched.launch.protocol.feed import End, Feed
from airflow_dagsched.launch.protocol.identity import TryId
from airflow_dagsched.launch.protocol.wire import encode_plain
from airflow_dagsched.provider.mirrors import mirror
from airflow_dagsched.provider.mirrors.mirror import POLLS, Watched, wait_for_end

OWN = Watched("d", "r", "own")
DONE = StepDone("s", "success")
FAILED = StepDone("s", "failed", failure=Failure("author", "no such column"))


class Airflow:
    """States and feeds of launch tasks, which change look by look."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *looks: dict[str, tuple[str, Feed | None]]) -> None:
        self.looks, self.at = looks, 0
        monkeypatch.setattr(mirror.RuntimeTaskInstance, "get_task_states", self._states)
        monkeypatch.setattr(mirror.BaseXCom, "aget_one", self._feed)
        monkeypatch.setattr(mirror, "POLL_S", 0.0)

    def _now(self, launch: str) -> tuple[str, Feed | None]:
        return self.looks[min(self.at // 4, len(self.looks) - 1)].get(launch, ("", None))

    def _states(self, *, task_ids: list[str], **_: Any) -> Any:
        self.at += 1
        return {"r": {task_ids[0]: self._now(task_ids[0])[0] or None}}

    async def _feed(self, *, task_id: str, **_: Any) -> Any:
        feed = self._now(task_id)[1]
        return encode_plain(feed) if feed else None


def says(*events: Any, clears: int = 0) -> Feed:
    return Feed(f"n{clears}", TryId("2026", clears, 1), began=100.0 + 1000 * clears).add(events)


def follow(made: float = 100.0) -> tuple[End, list[str]]:
    lines: list[str] = []

    async def wait() -> End:
        return await asyncio.wait_for(wait_for_end(OWN, "s", made, lines.append, ["other", "third"]), 30)

    end = asyncio.run(wait())
    assert POLLS == {}, "nobody looks on"
    return end, lines


def test_green_where_it_ran_while_its_own_has_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = says(StepLog("s", ("counted 7",)), DONE)
    Airflow(monkeypatch, {"own": ("", None), "other": ("running", says())}, {"other": ("running", ran)})
    assert follow() == (End("success", "", DONE), ["counted 7"])


def test_what_fails_elsewhere_is_run_by_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits on, and ends as its own launch task says."""
    first = {"own": ("queued", None), "other": ("success", says(FAILED))}
    then = {"own": ("success", says(DONE)), "other": ("success", says(FAILED))}
    Airflow(monkeypatch, first, then)
    assert follow()[0] == End("success", "", DONE)


def test_red_by_its_own_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    Airflow(monkeypatch, {"own": ("failed", says(FAILED)), "other": ("failed", says())})
    assert follow()[0].state == "failed"


def test_a_word_of_before_a_clear_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the mirror and its own launch task were cleared: the other one's word is of before."""
    first = {"own": ("queued", None), "other": ("success", says(DONE))}
    then = {"own": ("running", says(StepDone("s", "skipped"), clears=1)), "other": ("success", says(DONE))}
    Airflow(monkeypatch, first, then)
    assert follow(made=1100.0)[0].state == "skipped"
