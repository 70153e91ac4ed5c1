"""Mirrors of a stream: when they end, and what they say."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_dagsched.provider.mirrors import launch_states, stream_mirror
from airflow_dagsched.provider.mirrors.launch_states import POLLS
from airflow_dagsched.provider.mirrors.stream_mirror import StreamMirrorTrigger, explain_end, look_at_run
from airflow_dagsched.switch.log.signs_files import write_ended, write_follower
from airflow_dagsched.switch.signs import Ended, Follower
from tests.provider.streaming.flows import Flow
from tests.switch.drawn import make_aborted, make_stopped


@pytest.fixture
def flow(tmp_path: Path) -> Flow:
    """One epoch that runs, of three steps."""
    flow = Flow(tmp_path)
    flow.ask(1)
    flow.run_batch(1)
    flow.settle()
    flow.locate(1).manifest.parent.mkdir(parents=True, exist_ok=True)
    flow.locate(1).manifest.write_text(json.dumps({"steps": [{"id": step} for step in ("clicks", "by_user", "out")]}))
    return flow


def end_mirrors(flow: Flow, monkeypatch: pytest.MonkeyPatch, states: list[str | None], *steps: str) -> dict[str, str]:
    """Step -> its mirror's event, with these states of the launch task, look by look."""
    asked: list[str] = []

    def answer(**where: Any) -> dict[str, dict[str, str | None]]:
        asked.append(where["dag_id"])
        return {"run 1": {"flow.launch": states.pop(0) if len(states) > 1 else states[0]}}

    monkeypatch.setattr(launch_states, "RuntimeTaskInstance", SimpleNamespace(get_task_states=answer))
    monkeypatch.setattr(stream_mirror, "POLL_S", 0.001)

    async def end(step: str) -> str:
        trigger = StreamMirrorTrigger("flow.launch", step, str(flow.work_dir), "flow")
        trigger.task_instance = SimpleNamespace(dag_id="dag", run_id="run 1", task_id=f"flow.{step}")  # type: ignore[assignment]
        return "".join([type(event).__name__ async for event in trigger.run()])

    async def end_all() -> list[str]:
        return await asyncio.gather(*map(end, steps))

    ended = dict(zip(steps, asyncio.run(end_all()), strict=True))
    assert POLLS == {}
    return ended


@pytest.mark.parametrize(
    ("states", "event"),
    [
        (["running", "deferred", "up_for_retry", None, "queued", "success"], "TaskSuccessEvent"),
        (["deferred", "failed"], "TaskFailedEvent"),
        (["upstream_failed"], "TaskFailedEvent"),
        (["removed"], "TaskFailedEvent"),
        (["skipped"], "TaskSkippedEvent"),
    ],
)
def test_they_end_as_their_launch_task_does(
    flow: Flow, monkeypatch: pytest.MonkeyPatch, states: list[str | None], event: str
):
    assert set(end_mirrors(flow, monkeypatch, states, "clicks", "by_user", "out").values()) == {event}
    assert len(states) == 1, "all was looked at"


def test_a_launch_task_that_gets_no_worker_is_told_of_once(
    flow: Flow, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """As that of a paused DAG, whose driver was lost."""
    states: list[str | None] = ["deferred", "scheduled", "scheduled", "queued", "deferred", "success"]
    end_mirrors(flow, monkeypatch, states, "out")
    said = "flow.launch waits for a worker: while the DAG is paused it gets none, and a lost driver stays away"
    assert capsys.readouterr().out.count(said) == 1


def test_a_step_that_the_epoch_never_had_ends_at_once(flow: Flow, monkeypatch: pytest.MonkeyPatch):
    """The DAG file has changed under a run that goes on."""
    assert end_mirrors(flow, monkeypatch, ["failed"], "added", "out") == {
        "added": "TaskSuccessEvent",
        "out": "TaskFailedEvent",
    }


def test_the_culprit_has_the_traceback_and_others_the_reason(flow: Flow):
    flow.add(make_stopped(1, reason="step 'by_user' fails: KeyError", x_cause="author", at=flow.now))
    write_ended(flow.locate(1), Ended(1, "author", flow.now, "by_user", "KeyError", "Traceback: line 7"))
    followed = look_at_run(flow.places, "run 1")
    reason = "epoch 1: step 'by_user' fails: KeyError"
    assert explain_end(followed, "out") == reason
    assert explain_end(followed, "by_user") == f"{reason}\nTraceback: line 7"
    assert explain_end(None, "out") == ""


def test_a_run_is_known_by_whoever_asked_and_a_torn_log_by_nobody(flow: Flow):
    flow.ask(2)
    flow.add(make_aborted(2, at=flow.now))
    assert look_at_run(flow.places, "run 2").epoch.record.epoch == 2  # type: ignore[union-attr]
    assert look_at_run(flow.places, "run 3") is None
    # Its own graph was given up, and it follows the one that runs on.
    write_follower(flow.locate(1), Follower("run 2", 0))
    assert look_at_run(flow.places, "run 2").epoch.record.epoch == 1  # type: ignore[union-attr]
    (flow.places.log / "0000000001.json").write_text("")
    assert look_at_run(flow.places, "run 2") is None
