"""Who ends the task that follows a stream: what is ordered then, and what is not."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace

import pytest

from airflow_dagsched.provider.streaming import ending, trigger
from airflow_dagsched.provider.streaming.ending import choose_order, order_end
from airflow_dagsched.provider.streaming.trigger import StreamTrigger
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.log.signs_files import read_orders, write_follower
from airflow_dagsched.switch.signs import Follower
from tests.provider.streaming.flows import Flow
from tests.switch.drawn import make_aborted, make_batch, make_current, make_epoch, make_fence, make_started, tell

RUNNING = (make_epoch(1), make_started(1), make_batch(1, 0), make_current(1))
NEW = (make_epoch(2), make_started(2), make_batch(2, 0, kept=0))


def start(tmp_path: Path) -> Flow:
    flow = Flow(tmp_path)
    flow.ask(1)
    flow.run_batch(1)
    flow.settle()
    return flow


@pytest.mark.parametrize(
    ("state", "ordered"),
    [
        ("failed", True), ("success", True), ("skipped", True), ("removed", True),           # by a person
        (None, True), ("upstream_failed", True),                                             # cleared, or no more there
        ("deferred", False),                                                                 # another triggerer has it
        ("running", False), ("up_for_retry", False), ("restarting", False),                  # the next try sees why
        ("scheduled", False), ("queued", False),        # another triggerer had it meanwhile, and its driver was lost
    ],
)  # fmt: skip
def test_a_person_stops_the_stream_and_a_restarted_triggerer_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str | None, ordered: bool
):
    flow = start(tmp_path)
    answer = {"run 1": {} if state is None else {"flow.launch": state}}
    asked = SimpleNamespace(get_task_states=lambda **where: answer)
    monkeypatch.setattr(ending, "RuntimeTaskInstance", asked)
    kill(flow)
    assert (read_orders(flow.locate(1)) != {}) == ordered


def kill(flow: Flow) -> None:
    following = StreamTrigger(str(flow.places.folder), 1, 900, 1800, 21_600)
    following.task_instance = SimpleNamespace(dag_id="dag", run_id="run 1", task_id="flow.launch")  # type: ignore[assignment]
    asyncio.run(following.on_kill())


def test_where_nobody_answers_the_stream_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    flow = start(tmp_path)

    def refuse(*names: str) -> str:
        raise ConnectionError("the API server is away")

    monkeypatch.setattr(trigger, "ask_state", refuse)
    kill(flow)
    assert read_orders(flow.locate(1)) == {}


@pytest.mark.parametrize(
    ("records", "epoch", "order"),
    [
        (RUNNING, 1, "stop"),
        (RUNNING[:2], 1, "stop"),
        ((*RUNNING, *NEW), 1, "stop"),
        ((*RUNNING, *NEW[:1]), 2, "abort"),
        ((*RUNNING, *NEW), 2, "abort"),
        ((*RUNNING, *NEW, make_fence(1, 40.0)), 2, "stop"),
    ],
)
def test_a_new_graph_is_given_up_and_the_old_one_does_not_notice(records: tuple, epoch: int, order: str):
    assert choose_order(tell(*records), epoch, frozenset()) == order


def test_what_has_ended_is_not_ordered_to_end(tmp_path: Path):
    flow = start(tmp_path)
    flow.ask(2)
    flow.add(make_aborted(2, at=flow.now))
    assert order_end(flow.places, FlowLog(flow.places.log), 2, "run 2", flow.clock()) is None
    assert order_end(flow.places, FlowLog(flow.places.log), 7, "run 7", flow.clock()) is None
    assert order_end(flow.places, FlowLog(flow.places.log), 1, "run 1", flow.clock()) == "stop"


@pytest.mark.parametrize(("run", "ordered"), [("run 1", "stop"), ("run 2", None)])
def test_who_ends_a_task_that_another_one_has_taken_the_epoch_from_ends_no_stream(
    tmp_path: Path, run: str, ordered: str | None
):
    flow = start(tmp_path)
    write_follower(flow.locate(1), Follower("run 1", 0))
    assert order_end(flow.places, FlowLog(flow.places.log), 1, run, flow.clock()) == ordered
    assert set(read_orders(flow.locate(1))) == ({ordered} if ordered else set())
