"""What Airflow is told, whatever becomes of the API server: notes before the feed they belong to, the newest feed, and
nobody waits.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from functools import partial

import pytest
from airflow.sdk.exceptions import AirflowRuntimeError, ErrorType
from airflow.sdk.execution_time.comms import ErrorResponse

from airflow_dagsched.launch.protocol.events import StepDone
from airflow_dagsched.launch.protocol.feed import Feed
from airflow_dagsched.provider.following import telling
from airflow_dagsched.provider.following.telling import Teller, is_refusal


def answered(status: int | None) -> AirflowRuntimeError:
    """What a task process gets where the API server answers so; None: it does not answer."""
    return AirflowRuntimeError(ErrorResponse(error=ErrorType.API_SERVER_ERROR, detail={"status_code": status}))


def feed(*steps: str) -> Feed:
    return Feed("n").add([StepDone(step, "success") for step in steps])


class Airflow:
    """Remembers what it was told. While it is down, each request takes until it is up, and fails."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.asked = threading.Semaphore(0)
        self.up = threading.Event()
        self.up.set()
        self.answers: list[int | None] = []
        """To the first requests; it takes all others."""

    def push(self, pushed: Feed) -> None:
        self.take(f"feed {''.join(pushed.steps)}")

    def take(self, what: str) -> None:
        self.asked.release()
        was_up = self.up.is_set()
        self.up.wait()
        if self.answers or not was_up:
            raise answered(self.answers.pop(0) if self.answers else None)
        self.told.append(what)


@pytest.fixture
def airflow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Airflow]:
    monkeypatch.setattr(telling, "TELL_EVERY_S", 0.0)
    monkeypatch.setattr(telling, "AGAIN_S", 0.0)
    found = Airflow()
    yield found
    found.up.set()


def note(teller: Teller, airflow: Airflow, what: str) -> None:
    teller.note(what, partial(airflow.take, what))


@pytest.mark.parametrize("beside", [True, False])
def test_notes_come_before_the_feed_that_follows_them(airflow: Airflow, beside: bool) -> None:
    teller = Teller(airflow.push, beside=beside)
    note(teller, airflow, "x of a")
    note(teller, airflow, "y of a")
    teller.feed(feed("a"))
    assert teller.close()
    assert airflow.told[:2] == ["x of a", "y of a"]
    assert airflow.told[-1] == "feed a"


def test_nobody_waits_for_a_server_that_is_away(airflow: Airflow, caplog: pytest.LogCaptureFixture) -> None:
    """Feed a ──> (away ...)  feeds ab, abc  ... back ──> feed abc."""
    caplog.set_level(logging.INFO)
    airflow.up.clear()
    teller = Teller(airflow.push, beside=True)
    teller.feed(feed("a"))
    airflow.asked.acquire()
    teller.feed(feed("a", "b"))
    note(teller, airflow, "x of c")
    teller.feed(feed("a", "b", "c"))
    airflow.up.set()
    assert teller.close()
    assert airflow.told == ["x of c", "feed abc"]
    assert [record.getMessage().split(":")[0] for record in caplog.records] == [
        "Airflow can't be told of the steps now, which go on; it is tried again",
        "Airflow is told of the steps again",
    ]


@pytest.mark.parametrize("beside", [True, False])
@pytest.mark.parametrize("answers", [[422], [500, 500, 500]])
def test_a_note_that_is_refused_is_left_out(airflow: Airflow, beside: bool, answers: list[int | None]) -> None:
    """By the server's word, or because it fails on it each time."""
    airflow.answers = list(answers)
    teller = Teller(airflow.push, beside=beside)
    note(teller, airflow, "too much")
    for number in range(3):
        teller.feed(feed(*"abc"[: number + 1]))
    note(teller, airflow, "fine")
    assert teller.close()
    assert "too much" not in airflow.told
    assert airflow.told[-2:] == ["feed abc", "fine"] or airflow.told[-2:] == ["fine", "feed abc"]


def test_what_cannot_even_be_sent_is_refused() -> None:
    with pytest.raises(UnicodeEncodeError) as raised:
        "\ud83d".encode()
    assert is_refusal(raised.value)
    assert is_refusal(answered(404))
    for status in (None, 401, 429, 500, 503):
        assert not is_refusal(answered(status))
    assert not is_refusal(BrokenPipeError())


def test_the_last_word_is_tried_for_a_while_only(airflow: Airflow) -> None:
    airflow.up.clear()
    teller = Teller(airflow.push, beside=True)
    teller.feed(feed("a"))
    assert not teller.close(within_s=0.1)


def test_a_last_word_that_is_refused_is_not_told(airflow: Airflow) -> None:
    airflow.answers = [404]
    teller = Teller(airflow.push, beside=True)
    teller.feed(feed("a"))
    assert not teller.close()
