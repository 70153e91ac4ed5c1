"""The watcher on real files: what it asks for, and that nothing ends it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

from airflow_dagsched.provider.streaming import epoch_trigger
from airflow_dagsched.provider.streaming.epoch_trigger import EpochTrigger
from airflow_dagsched.provider.streaming.epoch_watch import EpochWatch
from airflow_dagsched.provider.streaming.need_of_run import SETTLES_S
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.log.signs_files import forget_refused, write_follower, write_refused
from airflow_dagsched.switch.places import name_flow
from airflow_dagsched.switch.records import Record
from airflow_dagsched.switch.signs import Follower, Refused
from tests.switch.drawn import FIRST, make_epoch, number

LAUNCH = "clicks.launch"


class Site:
    """A flow whose driver is a lease, a launch task that is a state, and a clock."""

    def __init__(self, work_dir: Path) -> None:
        self.flow = name_flow(work_dir, "dag", "clicks")
        self.log = FlowLog(self.flow.log)
        self.now = 1_000.0
        self.states: dict[str, str | None] = {}

    def add(self, *records: Record) -> None:
        for record in records:
            self.log.append(lambda story, n, at, record=record: number((record,), n)[0])

    def hold(self, epoch: int, seconds: float) -> None:
        folder = self.flow.name_leases(epoch)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "0000000001.json").write_text(json.dumps({"expires": self.now + seconds}))

    def watch(self, code: int) -> EpochWatch:
        return EpochWatch(self.flow, f"code {code}", lambda: self.now)


def test_a_deploy_and_a_loss_each_make_a_run(tmp_path: Path) -> None:
    site = Site(tmp_path)
    watch = site.watch(1)
    assert watch.look(site.states) == "changed"
    site.add(*FIRST)
    site.hold(1, 1000)
    site.states["run 1"] = "deferred"
    assert watch.look(site.states) is None
    deployed = site.watch(2)
    assert deployed.look(site.states) == "changed"
    site.add(make_epoch(2))
    site.states["run 2"] = "running"
    assert deployed.look(site.states) is None
    site.states["run 2"] = "failed"
    assert deployed.look(site.states) is None
    site.now += max(SETTLES_S.values()) + 60
    assert deployed.look(site.states) == "lost"


def test_weeks_of_looks_make_no_file_and_no_run(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.add(*FIRST)
    site.hold(1, 1e9)
    site.states["run 1"] = "deferred"
    watch = site.watch(1)
    before = sorted(tmp_path.rglob("*"))
    for _ in range(1000):
        site.now += 1800
        assert watch.look(site.states) is None
    assert sorted(tmp_path.rglob("*")) == before


class Server:
    """Answers as Airflow's API server does, but for its first answers."""

    def __init__(self, states: Mapping[str, str | None], *firsts: Callable[[], None]) -> None:
        self.states, self.firsts = states, list(firsts)
        self.asked: list[list[str] | None] = []
        """Runs, each time; None: all."""

    def get_task_states(
        self, dag_id: str, task_ids: list[str], run_ids: list[str] | None
    ) -> dict[str, dict[str, str | None]]:
        assert (dag_id, task_ids) == ("dag", [LAUNCH])
        if self.firsts:
            self.firsts.pop(0)()
        self.asked.append(run_ids)
        return {run: {LAUNCH: state} for run, state in self.states.items() if run_ids is None or run in run_ids}


def be_silent() -> None:
    raise ConnectionError("nobody answers")


def take_first(trigger: EpochTrigger) -> Any:
    async def take() -> Any:
        async with aclosing(trigger.run()) as events:  # type: ignore[type-var]
            return await asyncio.wait_for(anext(events), 60)

    return asyncio.run(take()).payload


def make_trigger(work_dir: Path, code: int) -> EpochTrigger:
    path, arguments = EpochTrigger("dag", "clicks", LAUNCH, str(work_dir), f"code {code}").serialize()
    assert path == "airflow_dagsched.provider.streaming.epoch_trigger.EpochTrigger"
    return EpochTrigger(**json.loads(json.dumps(arguments)))


def test_its_event_says_what_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RuntimeTaskInstance, "get_task_states", Server({"run 1": "deferred"}).get_task_states)
    Site(tmp_path).add(*FIRST)
    event = take_first(make_trigger(tmp_path, 2))
    assert event == {"dag_id": "dag", "flow": "clicks", "fingerprint": "code 2", "reason": "changed"}


def test_neither_silence_nor_a_garbled_log_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torn = Site(tmp_path).flow.log / "0000000001.json"
    torn.parent.mkdir(parents=True)
    torn.write_text("{")
    server = Server({}, be_silent, be_silent, lambda: None, lambda: None, torn.unlink)
    monkeypatch.setattr(epoch_trigger, "POLL_S", 0.0)
    monkeypatch.setattr(RuntimeTaskInstance, "get_task_states", server.get_task_states)
    assert take_first(make_trigger(tmp_path, 1))["reason"] == "changed"
    assert server.firsts == []


def test_all_runs_are_asked_for_only_where_the_one_that_follows_does_so_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A DAG has more runs each week."""
    site, server = Site(tmp_path), Server({"run 0": "success", "run 1": "deferred"})
    monkeypatch.setattr(RuntimeTaskInstance, "get_task_states", server.get_task_states)
    site.add(*FIRST)
    write_follower(site.flow.name_epoch(FIRST[0].x_folder), Follower("run 1", 0))
    trigger = make_trigger(tmp_path, 1)
    followed, other = site.watch(1), site.watch(2)
    for each in (followed, other):
        each.look(server.states)
    assert trigger._ask_states(followed) == {"run 1": "deferred"}
    assert trigger._ask_states(other) == server.states, "no epoch of that code is there"
    server.states = {**server.states, "run 1": "failed"}
    assert trigger._ask_states(followed) == server.states
    assert server.asked == [["run 1"], None, ["run 1"], None]


def test_code_that_was_refused_is_asked_for_again_when_the_file_had_other_code_meanwhile(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.add(*FIRST)
    site.hold(1, 1e9)
    site.states["run 1"] = "deferred"
    write_refused(site.flow, Refused("code 2", "run 2", site.now, "no such connection"))
    assert site.watch(2).look(site.states) is None
    assert site.watch(1).look(site.states) is None, "the edit is taken back"
    assert site.watch(2).look(site.states) == "changed"


def test_code_that_was_refused_is_not_asked_for_again_until_somebody_wants_it(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.add(*FIRST)
    write_refused(site.flow, Refused("code 2", "run 2", site.now, "windows are open"))
    watch = site.watch(2)
    assert [watch.look({"run 1": "deferred", "run 2": "failed"}) for _ in range(3)] == [None] * 3
    forget_refused(site.flow, "code 1")
    assert watch.look({"run 1": "deferred"}) is None
    forget_refused(site.flow, "code 2")
    assert watch.look({"run 1": "deferred"}) == "changed"


def test_other_code_is_asked_for_whatever_was_refused(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.add(*FIRST)
    write_refused(site.flow, Refused("code 2", "run 2", site.now, "windows are open"))
    assert site.watch(3).look({"run 1": "deferred"}) == "changed"
