"""The time is the server's: what a worker's own clock shows counts for nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from airflow_dagsched.launch.protocol.events import StepDone
from airflow_dagsched.launch.protocol.feed import End, Feed, decide_verdict
from airflow_dagsched.provider.following import server_clock
from airflow_dagsched.provider.following.server_clock import ask_time_at
from airflow_dagsched.provider.runtime.gather_facts import _estimate_beginning
from tests.provider.test_lost_tries import nobody

MADE, BEGAN = datetime(2026, 3, 5, 6, 0, tzinfo=UTC), datetime(2026, 3, 5, 6, 7, tzinfo=UTC)
"""When Airflow made the task instance, and when its try began."""


@contextmanager
def server(date: str | None, status: int = 200) -> Iterator[str]:
    """A server whose clock shows ``date``; yields its address."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response_only(status)
            if date is not None:
                self.send_header("Date", date)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answer) as http:
        Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_port}/execution/"
        http.shutdown()


def begin(address: str, monkeypatch: pytest.MonkeyPatch, *, ahead: timedelta) -> float:
    """When a try says it began whose worker's clock is ``ahead`` of the server's."""
    instance = UUID(int=(int(MADE.timestamp() * 1000) << 80) | (7 << 76) | (2 << 62))
    monkeypatch.setattr(server_clock, "find_execution_api", lambda: address)
    return _estimate_beginning(
        SimpleNamespace(id=instance, start_date=BEGAN + ahead), SimpleNamespace(start_date=MADE + timedelta(minutes=1))
    )


@pytest.mark.parametrize("minutes", [-60, 0, 1, 60])
def test_a_worker_s_clock_does_not_count(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, minutes: int
) -> None:
    ahead = timedelta(minutes=minutes)
    with server(format_datetime(BEGAN, usegmt=True)) as address:
        assert begin(address, monkeypatch, ahead=ahead) == BEGAN.timestamp()
    assert "the clock of this worker is" in caplog.text
    with nobody() as address:
        assert begin(address, monkeypatch, ahead=ahead) == (MADE + timedelta(minutes=1)).timestamp()


def test_a_mirror_cleared_alone_is_not_green_where_the_worker_s_clock_is_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cleared half a minute after the try began, by a clock that is one minute behind the worker's."""
    with server(format_datetime(BEGAN, usegmt=True)) as address:
        began = begin(address, monkeypatch, ahead=timedelta(minutes=1))
    feed = Feed("n", final=True, began=began).add([StepDone("a", "success")])
    end = decide_verdict("success", feed, "a", (BEGAN + timedelta(seconds=30)).timestamp(), "launch")
    assert isinstance(end, End)
    assert end.state == "failed"


@pytest.mark.parametrize(
    ("date", "status", "at"),
    [
        ("Thu, 05 Mar 2026 06:07:00 GMT", 200, BEGAN.timestamp()),
        ("Thu, 05 Mar 2026 06:07:00 GMT", 404, BEGAN.timestamp()),
        ("Thu, 05 Mar 2026 06:07:00 GMT", 503, None),  # a proxy's
        ("yesterday", 200, None),
        (None, 200, None),
        ("", 404, None),
    ],
)
def test_an_answer_s_date(date: str | None, status: int, at: float | None) -> None:
    with server(date, status) as address:
        assert ask_time_at(f"{address}health", 5.0) == at


def test_nobody_answers() -> None:
    with nobody() as address:
        assert ask_time_at(f"{address}health", 5.0) is None
