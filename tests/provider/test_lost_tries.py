"""Tries that are lost because the API server is away do not count."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.serialization.serialized_objects import DagSerialization

from airflow_dagsched import SparkDataflow
from airflow_dagsched.provider.following import lost_tries
from airflow_dagsched.provider.following.lost_tries import Asked, is_answering, on_task_instance_failed
from tests.provider.test_edges import step


@contextmanager
def server(status: int) -> Iterator[str]:
    """A server that answers every request with ``status``; yields its address."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answer) as http:
        Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_port}/execution/"
        http.shutdown()


@contextmanager
def silent() -> Iterator[str]:
    """A server that takes connections and says nothing, as a stopped process does."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/execution/"


@contextmanager
def nobody() -> Iterator[str]:
    """An address where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}/execution/"
    yield address


@pytest.mark.parametrize(
    ("there", "away"),
    [
        (server(200), False),
        (server(401), False),
        (server(404), False),
        (server(503), True),
        (silent(), True),
        (nobody(), True),
    ],
)
def test_who_is_there(there: Any, away: bool) -> None:
    with there as address:
        assert is_answering(f"{address}health", 0.5) is not away


@pytest.mark.parametrize(
    ("task_id", "state", "server_is_away", "number", "tries"),
    [
        ("f.launch", "up_for_retry", True, 1, 3),
        ("f.launch", "up_for_retry", False, 1, 2),
        ("f.launch", "failed", True, 1, 2),  # no retry is left, or the author wants none
        ("f.launch", "up_for_retry", True, 103, 2),  # the scheduler itself may have no way to that server
        ("f.a", "up_for_retry", True, 1, 2),
    ],
)
def test_what_counts(
    dag: DAG, monkeypatch: pytest.MonkeyPatch, task_id: str, state: str, server_is_away: bool, number: int, tries: int
) -> None:
    """As the scheduler has it: the task is read from the database."""
    with SparkDataflow("f", retries=2):
        step("a")
    task = DagSerialization.from_dict(DagSerialization.to_dict(dag)).get_task(task_id)
    instance = SimpleNamespace(task=task, state=state, try_number=number, max_tries=2)
    monkeypatch.setattr(lost_tries, "_asked", Asked())
    with nobody() if server_is_away else server(200) as address:
        monkeypatch.setattr(lost_tries, "find_execution_api", lambda: address)
        on_task_instance_failed("running", instance, "")
    assert instance.max_tries == tries


def test_a_worker_counts_nothing(dag: DAG) -> None:
    """There the task is the operator itself."""
    with SparkDataflow("f", retries=2):
        step("a")
    instance = SimpleNamespace(task=dag.get_task("f.launch"), state="up_for_retry", max_tries=2)
    assert not lost_tries.is_launch_in_scheduler(instance)
