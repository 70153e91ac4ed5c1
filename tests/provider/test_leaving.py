"""Steps that a launch task has no room for yet, and leaves to others that can run them sooner."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG

from airflow_dagsched import SparkDataflow
from airflow_dagsched.launch.moves.claims import Claim
from airflow_dagsched.launch.protocol.events import Failure, StepDone
from airflow_dagsched.launch.protocol.identity import TryId
from airflow_dagsched.model.cluster import Worker
from airflow_dagsched.provider.moving.claims_file import ClaimsFile
from airflow_dagsched.provider.runtime import allocation
from airflow_dagsched.provider.runtime.execute import run_attempt
from tests.provider.test_moving import Run, learn, rows, states, wait
from tests.provider.test_running import connected
from tests.provider.test_sizing import RECORDED
from tests.testbed.answers import Said, answering


@pytest.fixture(autouse=True)
def _connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two cores, and disk for two steps of 6 GB."""
    monkeypatch.setattr("airflow_dagsched.provider.runtime.submitting.check_java", lambda group: None)
    connected(monkeypatch, Worker(id="w", host="h", cores=2, memory_mb=8000, disk_mb=14_000))


class ScarceRun(Run):
    """K [a b c], of which two fit at once; a ──> wait ──> m of L. Who runs c needs both cores, as m does."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder, self.seen, self.said, self.later = folder, {}, [], {}
        with SparkDataflow("f", work_dir=str(folder), replan="regroup", **settings) as self.flow:
            a, _ = rows.override(task_id="a", disk="6g")(), rows.override(task_id="b", disk="6g")()
            rows.override(task_id="c", disk="6g", cores=2)()
            a >> wait() >> rows.override(task_id="m", cores=2)()
        self.k, self.l = self.flow.launches()
        assert [launch.group.steps for launch in self.flow.launches()] == [("a", "b", "c"), ("m",)]
        learn(self.flow, a=2.0, b=2.0, c=2.0, m=2.0)


@pytest.fixture
def run(dag: DAG, tmp_path: Path) -> ScarceRun:
    return ScarceRun(tmp_path)


def test_what_waits_behind_a_cut_is_left_to_who_begins_meanwhile(run: ScarceRun) -> None:
    """c runs with m, in an application less; K waits for it, and says who has run it."""
    late: list[Any] = []

    def begin_l(at: int, targets: Sequence[str]) -> None:
        run.see(run.k, "running", k)
        later, its = run.begin(run.l, wait="success", a="success", launch_a="running")
        late.extend([later, its, run_attempt(later)])
        run.see(run.l, "success", later)

    k, driver = run.begin(run.k, begin_l)
    result = run_attempt(k)
    later, its, told = late
    assert (driver.submitted, its.submitted) == (["ab"], ["cm"])
    assert (told["replan"]["reason"], told["replan"]["take"]) == ("ends sooner", ["c"])
    assert result["replan"]["left"] == {"c": run.l.task_id}
    assert states(k) == {"a": "success", "b": "success", "c": "reused"}
    assert k.memory.emitted(1) == {"a", "b", "c"}, "asset events are of the launch task that the step hangs on"
    assert later.memory.emitted(1) == {"m"}


def test_what_nobody_takes_it_runs_itself(run: ScarceRun) -> None:
    k, driver = run.begin(run.k)
    result = run_attempt(k)
    assert (driver.submitted, result["replan"]["left"]) == (["ab", "c"], {})


def test_what_fails_where_it_was_left_comes_back(run: ScarceRun) -> None:
    """L ends as without it, K runs it by itself."""

    def begin_l(at: int, targets: Sequence[str]) -> None:
        if at == 1:
            run.see(run.k, "running", k)
            later, its = run.begin(run.l, fails_with_c, wait="success", a="success", launch_a="running")
            run_attempt(later)
            run.see(run.l, "success", later)
            submitted.extend(its.submitted)

    def fails_with_c(at: int, targets: Sequence[str]) -> Failure | None:
        return Failure("lost_driver", "gone") if "c" in targets else None

    submitted: list[str] = []
    k, driver = run.begin(run.k, begin_l)
    run_attempt(k)
    assert submitted == ["cm", "m"]
    assert (driver.submitted, states(k)) == (["ab", "c"], dict.fromkeys("abc", "success"))


@pytest.mark.parametrize("state", ["failed", "up_for_retry", None])
def test_whoever_it_was_left_to_is_gone(run: ScarceRun, state: str | None) -> None:
    """Killed while it ran c."""
    l_try = Claim(run.l.task_id, TryId("2026", 0, 1))

    def take(at: int, targets: Sequence[str]) -> None:
        file = ClaimsFile(run.folder / "run")
        offer = file.read().claims["c"]
        if at == 1:
            assert offer.offered
            file.change(lambda claims: claims.swap_claims(l_try, {"c": offer}))
            run.see(run.l, state)

    k, driver = run.begin(run.k, take)
    run_attempt(k)
    assert driver.submitted == ["ab", "c"]


def say_free(cores: int) -> Said:
    """A Master each of whose workers has so many cores free."""
    recorded = json.loads(RECORDED.read_bytes())
    for worker in recorded["workers"]:
        worker |= {"coresused": worker["cores"] - cores, "coresfree": cores, "memoryused": 0, "memoryfree": 8192}
    return Said(json.dumps(recorded).encode())


def test_what_there_is_no_room_for_is_left_until_there_is(
    dag: DAG, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody has a core free. b is claimed meanwhile; once there is room, a and c are submitted without it."""
    answers = {"/json/": say_free(0)}
    with answering(answers) as (url, _):
        raw = {"conn_type": "spark", "host": "spark://m:7077", "extra": {"master_ui": url}}
        monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(raw))
        run = ScarceRun(tmp_path)
        k, driver = run.begin(run.k)
        l_try, waits = Claim(run.l.task_id, TryId("2026", 0, 1)), []

        def sleep(seconds: float) -> None:
            waits.append(driver.submitted[:])
            file = ClaimsFile(run.folder / "run")
            if len(waits) == 1:
                assert all(each.offered for each in file.read().claims.values())
                offer = file.read().claims["b"]
                file.change(lambda claims: claims.swap_claims(l_try, {"b": offer}))
            done = StepDone("b", "success")
            later, _ = run.begin(run.l)
            later.follower.take([done])
            run.see(run.l, "running", later)
            if len(waits) == 3:
                answers["/json/"] = say_free(4)

        monkeypatch.setattr(allocation, "time", SimpleNamespace(time=lambda: 1000.0, sleep=sleep))
        result = run_attempt(k)
    assert waits == [[], [], []]
    assert ("".join(sorted("".join(driver.submitted))), result["replan"]["left"]) == ("ac", {"b": run.l.task_id})
    assert states(k)["b"] == "reused"
