"""Launch tasks of one run that run each other's steps, against a driver program that does as it is told."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from airflow.sdk import DAG, task
from airflow.sdk.exceptions import AirflowException

from airflow_dagsched import SparkDataflow
from airflow_dagsched.launch.history.learning import Ran, update_history
from airflow_dagsched.launch.moves.claims import Claim
from airflow_dagsched.launch.moves.elsewhere import Seen
from airflow_dagsched.launch.protocol.events import Failure, StepDone
from airflow_dagsched.launch.protocol.feed import Feed
from airflow_dagsched.launch.protocol.identity import TryId
from airflow_dagsched.model.codec import encode_value
from airflow_dagsched.model.state import State
from airflow_dagsched.provider.following.follower import Follower
from airflow_dagsched.provider.moving.claims_file import ClaimsFile
from airflow_dagsched.provider.moving.moves import Moves
from airflow_dagsched.provider.runtime.allocation import allocate_room
from airflow_dagsched.provider.runtime.attempt import Attempt
from airflow_dagsched.provider.runtime.execute import run_attempt
from airflow_dagsched.provider.runtime.memory import Memory
from airflow_dagsched.provider.spec.run_facts import RunFacts
from airflow_dagsched.provider.spec.run_history import locate_history
from airflow_dagsched.provider.submission.input_pruning import Pruning
from tests.provider.test_running import OUT_OF_MEMORY, Driver, Fate, fine, launched
from tests.provider.test_shipping import facts

Built = tuple[Attempt, Driver]


@pytest.fixture(autouse=True)
def _connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "local[2]"}))
    monkeypatch.setattr("airflow_dagsched.provider.runtime.submitting.check_java", lambda group: None)


@task.spark_step
def rows(spark, *, above=None, beside=None):
    return spark.range(3)


@task
def wait() -> str:
    return "done"


class Run:
    """K [a] ──> wait ──> r, and L [s r] with s ready from the start; s takes 100 s, as history has it."""

    def __init__(self, folder: Path, label: Any = None, **settings: Any) -> None:
        self.folder = folder
        with SparkDataflow("f", work_dir=str(folder), replan="regroup", **settings) as self.flow:
            a, s, late = rows.override(task_id="a")(), rows.override(task_id="s")(beside=label), wait()
            a >> late
            late >> rows.override(task_id="r")(above=s)
        self.k, self.l = self.flow.launches()
        assert [launch.group.steps for launch in self.flow.launches()] == [("a",), ("s", "r")]
        self.seen: dict[str, Seen] = {}
        self.said: list[str] = []
        self.later: dict[str, str] = {}
        learn(self.flow, a=60.0, s=100.0, r=10.0)

    def begin(self, launch: Any, fate: Fate = fine, *, number: int = 1, clears: int = 0, **states: str) -> Built:
        """A try of it. ``states``: of the others' tasks."""
        mine, driver = TryId("2026", clears, number), Driver(fate)
        launch.submit, launch.stopped = driver.submit, False
        feeds = {name: seen.feed for name, seen in self.seen.items() if seen.feed is not None}
        run = facts(try_id=mine, states={f"f.{name}": state for name, state in states.items()}, feeds=feeds)
        moves = Moves(ClaimsFile(self.folder / "run"), Claim(launch.task_id, mine), self._look)
        follower = Follower(Feed(f"{launch.task_id}{number}", mine), lambda *_: None, self._publish, lambda *_: None)
        folder = self.folder / "run" / launch.group.id
        made = Attempt(launch, {}, run, follower, Memory(folder), folder, (self.folder,), moves=moves)
        made.ask = lambda: self._ask(run)
        return made, driver

    def _ask(self, begun: RunFacts) -> RunFacts:
        """What has ended since a try began is in ``later``."""
        feeds = {name: seen.feed for name, seen in self.seen.items() if seen.feed is not None}
        later = {f"f.{name}": state for name, state in self.later.items()}
        return msgspec.structs.replace(begun, states={**begun.states, **later}, feeds=feeds)

    def begin_first(self) -> Built:
        """The first try of K."""
        return self.begin(self.k)

    def see(self, launch: Any, state: str | None, attempt: Attempt | None = None) -> None:
        """What Airflow has of a launch task from now on."""
        self.seen[launch.task_id] = Seen(state, attempt.follower.feed if attempt else None)

    def _look(self, launches: Collection[str]) -> Mapping[str, Seen]:
        return {name: self.seen[name] for name in launches}

    def _publish(self, done: StepDone) -> None:
        self.said.append(done.step)

    @property
    def claims(self) -> dict[str, str]:
        return {step: claim.by for step, claim in ClaimsFile(self.folder / "run").read().claims.items()}


def learn(flow: SparkDataflow, **seconds: float) -> None:
    file = locate_history(flow.spec)
    file.parent.mkdir(parents=True, exist_ok=True)
    ran = [Ran(s + 2.0, 1, (StepDone(name, "success", seconds=s),), {name: 2.0}) for name, s in seconds.items()]
    file.write_bytes(encode_value(update_history(State(), "spark_default", ran)))


@pytest.fixture
def run(dag: DAG, tmp_path: Path) -> Run:
    return Run(tmp_path)


def states(attempt: Attempt) -> dict[str, str]:
    return {name: done.state for name, done in attempt.follower.feed.steps.items()}


def test_a_step_runs_in_the_launch_task_that_takes_it(run: Run) -> None:
    """s beside a, while the task above r works; L then runs r alone, and sends the asset events of both."""
    k, driver = run.begin(run.k)
    result = run_attempt(k)
    assert driver.submitted == ["as"]
    assert (result["replan"]["mode"], result["replan"]["take"]) == ("regroup", ["s"])
    assert result["replan"]["reason"] == "ends sooner"
    (file,) = (run.folder / "run").rglob("plan.json")
    plan = json.loads(file.read_text())
    assert {group["id"]: group["steps"] for group in plan["groups"]} == {"launch_a": ["s", "a"], "launch_r": ["r"]}
    assert plan["facts"]["groups"] == "dag", "its group of the plan of the run"
    assert result["replan"]["saved_s"] > 0.05 * result["replan"]["left_s"]
    run.see(run.k, "success", k)
    later, driver = run.begin(run.l, wait="success", a="success")
    result = run_attempt(later)
    assert driver.submitted == ["r"]
    assert states(later) == {"s": "reused", "r": "success"}
    assert later.memory.emitted(1) == {"s", "r"}
    assert run.said == ["a", "s", "r"], "each mirror's XComs are set once, by who ran its step"
    assert result["applications"] == 1


def test_a_launch_task_whose_steps_are_done_submits_nothing(dag: DAG, tmp_path: Path) -> None:
    run = Run(tmp_path)
    done = Feed("n", TryId("2026", 0, 1), steps={name: StepDone(name, "success") for name in "asr"})
    run.seen[run.k.task_id] = Seen("success", done)
    later, driver = run.begin(run.l, wait="success")
    result = run_attempt(later)
    assert (driver.submitted, result["applications"]) == ([], 0)
    assert states(later) == {"s": "reused", "r": "reused"}
    assert result["replan"]["reason"] == "has nothing to run"


def test_nothing_is_taken_without_a_gain(run: Run) -> None:
    learn(run.flow, a=100.0, s=0.1, r=100.0)
    k, driver = run.begin(run.k)
    assert run_attempt(k)["replan"]["reason"] == "no gain"
    assert driver.submitted == ["a"]


@pytest.mark.parametrize(
    "setting", [{"execution_timeout": timedelta(minutes=10)}, {"pool": "cores", "pool_cores": 4}, {"run": "per_step"}]
)
def test_nothing_is_taken_over_a_limit(dag: DAG, tmp_path: Path, setting: dict[str, Any]) -> None:
    k, driver = Run(tmp_path, **setting).begin_first()
    assert run_attempt(k)["replan"]["reason"] == "limited"
    assert driver.submitted == ["a"]


@pytest.mark.parametrize("state", ["running", "success", "up_for_retry", "deferred"])
def test_a_launch_task_that_has_begun_keeps_its_steps(run: Run, state: str) -> None:
    k, driver = run.begin(run.k, launch_s=state)
    assert run_attempt(k)["replan"]["reason"] == "nothing is ready"
    assert driver.submitted == ["a"]


def test_a_step_that_fails_where_it_was_taken(run: Run) -> None:
    """K ends well; L runs s once more, with its own retries."""
    k, driver = run.begin(run.k, lambda at, targets: Failure("author", "no such column"))
    # Of the steps of one submit the driver says that all failed: here, s alone.
    k.launch.submit = failing_alone(driver, "s")
    assert run_attempt(k)["steps"]["s"]["state"] == "failed"
    run.see(run.k, "running", k)  # its task is just ending
    later, driver = run.begin(run.l, wait="success", a="success")
    run_attempt(later)
    assert driver.submitted == ["sr"]
    assert run.claims == {"a": run.k.task_id, "s": run.l.task_id, "r": run.l.task_id}


def failing_alone(driver: Driver, name: str) -> Callable[..., None]:
    """Its submit, where this step alone fails."""

    def submit(context: Any, *, on_line: Callable[[str], Any], **told: Any) -> None:
        def sort_out(line: str) -> Any:
            head, _, batch = line.partition(" [")
            events = json.loads(f"[{batch}")
            for event in events:
                if event["kind"] == "done" and event["step"] != name:
                    event.update(state="success", failure=None)
                if event["kind"] == "finished":
                    event["failure"] = None
            return on_line(f"{head} {json.dumps(events)}")

        driver.submit(context, on_line=sort_out, **told)

    return submit


@pytest.mark.parametrize("failure", [OUT_OF_MEMORY, Failure("lost_driver", "gone"), Failure("refused", "too old")])
def test_what_is_too_much_is_given_back(run: Run, failure: Failure) -> None:
    """K runs its own step without s, with no more memory than planned; s is L's again."""
    k, driver = run.begin(run.k, lambda at, targets: failure if "s" in targets else None)
    result = run_attempt(k)
    assert driver.submitted == ["as", "a"]
    assert k.memory.level == 0
    assert list(states(k)) == ["a"]
    assert "is left to other launch tasks" in result["cuts"][0]
    assert run.claims == {"a": run.k.task_id}


def test_an_argument_of_a_taken_step_that_cannot_be_rendered(dag: DAG, tmp_path: Path) -> None:
    """It is not for K to end red with."""
    run = Run(tmp_path, label="{{ door }}")
    k, driver = run.begin(run.k)

    def render(value: Any, *_: Any) -> Any:
        if value == "{{ door }}":
            raise ValueError("no such door")
        return value

    k.launch.render_template = render  # type: ignore[method-assign]
    result = run_attempt(k)
    assert driver.submitted == ["a"]
    assert "no such door" in result["cuts"][0]


class LateRun(Run):
    """K [a] ──> wait ──> r, and L [s r]: s waits for ``other``, which ends while K runs a."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.seen, self.said, self.later = folder, {}, [], {"a": "success", "other": "success"}
        runtimes = {"f.wait": 300.0}
        with SparkDataflow("f", work_dir=str(folder), replan="regroup", task_runtimes=runtimes) as self.flow:
            a, late = rows.override(task_id="a")(), wait()
            s = rows.override(task_id="s")()
            wait.override(task_id="other")() >> s
            a >> late >> rows.override(task_id="r")(above=s)
        self.k, self.l = self.flow.launches()
        assert [launch.group.steps for launch in self.flow.launches()] == [("a",), ("s", "r")]
        learn(self.flow, a=60.0, s=100.0, r=10.0)


@pytest.fixture
def late_run(dag: DAG, tmp_path: Path) -> LateRun:
    return LateRun(tmp_path)


def test_what_became_ready_meanwhile_is_taken_before_the_end(late_run: LateRun) -> None:
    """One more submit, with what is known of the run by then; L has r left."""
    k, driver = late_run.begin(late_run.k, other="running")
    result = run_attempt(k)
    assert driver.submitted == ["a", "s"]
    told = result["replan"]
    assert (told["reason"], told["take"]) == ("nothing is ready", [])
    assert [(each["reason"], each["take"]) for each in told["later"]] == [
        ("ends sooner", ["s"]),
        ("nothing is ready", []),
    ]
    assert states(k) == {"a": "success", "s": "success"}
    late_run.see(late_run.k, "success", k)
    later, driver = late_run.begin(late_run.l, wait="success", a="success", other="success")
    run_attempt(later)
    assert (driver.submitted, states(later)) == (["r"], {"s": "reused", "r": "success"})


@pytest.mark.parametrize(
    "failure", [OUT_OF_MEMORY, Failure("author", "no such column"), Failure("lost_driver", "gone")]
)
def test_what_fails_behind_its_own_steps_is_given_back(late_run: LateRun, failure: Failure) -> None:
    """K has ended well, and runs nothing again; s is L's, with L's retries."""
    k, driver = late_run.begin(late_run.k, lambda at, targets: failure if "s" in targets else None, other="running")
    run_attempt(k)
    assert driver.submitted == ["a", "s"]
    assert k.memory.level == 0
    late_run.see(late_run.k, "success", k)
    later, driver = late_run.begin(late_run.l, wait="success", a="success", other="success")
    run_attempt(later)
    assert driver.submitted == ["sr"]


@pytest.mark.parametrize("state", ["running", "success", "up_for_retry"])
def test_nothing_more_is_taken_of_a_launch_task_that_has_begun(late_run: LateRun, state: str) -> None:
    late_run.later["launch_s"] = state
    k, driver = late_run.begin(late_run.k, other="running")
    assert [each["reason"] for each in run_attempt(k)["replan"]["later"]] == ["nothing is ready"]
    assert driver.submitted == ["a"]


def test_how_a_task_ended_meanwhile_counts(late_run: LateRun) -> None:
    """s does not run, for K as for L; that is for L to end with."""
    late_run.later["other"] = "failed"
    k, driver = late_run.begin(late_run.k, other="running")
    run_attempt(k)
    assert (driver.submitted, states(k)) == (["a"], {"a": "success", "s": "upstream_failed"})
    late_run.see(late_run.k, "success", k)
    later, driver = late_run.begin(late_run.l, wait="success", a="success", other="failed")
    with pytest.raises(AirflowException):
        run_attempt(later)
    assert (driver.submitted, states(later)) == ([], {"s": "upstream_failed", "r": "upstream_failed"})


def test_a_failure_of_its_own_ends_it_at_once(late_run: LateRun) -> None:
    k, driver = late_run.begin(late_run.k, lambda at, targets: Failure("author", "no such column"), other="running")
    with pytest.raises(AirflowException, match="no such column"):
        run_attempt(k)
    assert (driver.submitted, len(k.decisions)) == (["a"], 1)


def test_facts_that_nobody_has_any_more_keep_no_launch_task_from_its_end(late_run: LateRun) -> None:
    def ask() -> RunFacts:
        raise OSError("Airflow is gone")

    k, driver = late_run.begin(late_run.k, other="running")
    k.ask = ask
    assert [each["reason"] for each in run_attempt(k)["replan"]["later"]] == ["no forecast"]
    assert driver.submitted == ["a"]


def test_a_step_that_another_runs_is_waited_for(run: Run) -> None:
    """L has begun while K runs s: r waits for it. Then K tells of its end."""
    k, _ = run.begin(run.k)
    take_all(k)
    run.see(run.k, "running", k)
    later, driver = run.begin(run.l, wait="success", a="success")
    waited: list[float] = []

    def pause(seconds: float) -> None:
        waited.append(seconds)
        assert driver.submitted == []
        if len(waited) == 3:
            k.follower.take([StepDone("s", "success")])
            run.see(run.k, "running", k)

    assert later.moves is not None
    later.moves.pause = pause
    run_attempt(later)
    assert (len(waited), driver.submitted, states(later)) == (3, ["r"], {"s": "reused", "r": "success"})


def take_all(attempt: Attempt) -> None:
    """It has claimed its steps, and s."""
    assert attempt.moves is not None
    attempt.moves.claim_own(attempt.own)
    assert attempt.moves.take({"s": None})


@pytest.mark.parametrize("state", ["failed", "up_for_retry", "queued", None])
def test_whoever_took_a_step_is_gone(run: Run, state: str | None) -> None:
    """Killed after its claim, or between its claim and its feed: L runs both, and waits for nobody."""
    k, _ = run.begin(run.k)
    take_all(k)
    run.see(run.k, "running", k)
    later, driver = run.begin(run.l, wait="success", a="success")
    assert later.moves is not None
    later.moves.pause = lambda seconds: run.see(run.k, state)
    run_attempt(later)
    assert driver.submitted == ["sr"]
    again, driver = run.begin(run.k, number=2)
    run_attempt(again)
    assert driver.submitted == ["a"], "in its next try K has nothing that L runs"


def test_steps_that_wait_for_nobody_run_meanwhile(dag: DAG, tmp_path: Path) -> None:
    """q of L reads nothing of s: it is submitted while K runs s."""
    with SparkDataflow("f", work_dir=str(tmp_path), replan="regroup") as flow:
        late, s = wait(), rows.override(task_id="s")()
        a, q = rows.override(task_id="a")(), rows.override(task_id="q")()
        a >> late
        late >> q
        r = rows.override(task_id="r")(above=s, beside=q)
        late >> r
    run = Run.__new__(Run)
    run.folder, run.flow, run.seen, run.said, run.later = tmp_path, flow, {}, [], {}
    run.k, run.l = flow.launches()
    k, _ = run.begin(run.k)
    take_all(k)
    run.see(run.k, "running", k)
    later, driver = run.begin(run.l, wait="success", a="success")

    def pause(seconds: float) -> None:
        assert driver.submitted == ["q"]
        k.follower.take([StepDone("s", "success")])
        run.see(run.k, "running", k)

    assert later.moves is not None
    later.moves.pause = pause
    run_attempt(later)
    assert driver.submitted == ["q", "r"]


def test_claims_that_are_lost(run: Run) -> None:
    """Nobody has taken anything; where they can't be written nobody takes anything, or waits."""
    file = run.folder / "run" / "moves.json"
    k, _ = run.begin(run.k)
    take_all(k)
    run.see(run.k, "running", k)
    file.write_text("{")
    later, driver = run.begin(run.l, wait="success", a="success")
    run_attempt(later)
    assert driver.submitted == ["sr"]
    file.unlink()
    file.mkdir()
    k, driver = run.begin(run.k, number=2)
    assert run_attempt(k)["replan"]["take"] == []
    assert driver.submitted == ["a"]


def test_a_clear_has_all_run_again(run: Run) -> None:
    k, _ = run.begin(run.k)
    run_attempt(k)
    run.see(run.k, "success", k)
    later, driver = run.begin(run.l, clears=1, number=2, wait="success", a="success")
    later.facts = msgspec.structs.replace(later.facts, feeds={run.k.task_id: replace(k.follower.feed)})
    run_attempt(later)
    assert driver.submitted == ["sr"]


def test_a_failure_of_its_own_is_its_own(run: Run) -> None:
    """a fails in K: K is red, whatever it has taken."""
    k, driver = run.begin(run.k, lambda at, targets: Failure("author", "no such column"))
    k.launch.submit = failing_alone(driver, "a")
    with pytest.raises(AirflowException, match="a: no such column"):
        run_attempt(k)
    assert states(k) == {"a": "failed", "s": "success"}


@pytest.mark.parametrize(("replan", "seconds"), [("off", [124.0, 124.0]), ("sizes", [124.0, 1204.0])])
def test_what_counts_for_a_run_that_has_begun(dag: DAG, tmp_path: Path, replan: Any, seconds: list[float]) -> None:
    """With ``off`` what a launch after it learns changes nothing of the run."""
    with SparkDataflow("f", work_dir=str(tmp_path), replan=replan) as flow:
        rows()
    found = []
    for each in (120.0, 1200.0):
        learn(flow, rows=each)
        attempt, _ = launched(flow, tmp_path, fine)
        with attempt_room(attempt) as room:
            found.append(room.chosen.group.end_s - room.chosen.group.start_s)
    assert found == [pytest.approx(each, abs=3) for each in seconds]


def attempt_room(attempt: Attempt) -> Any:
    return allocate_room(attempt.spec, attempt.hook, attempt.level, attempt.own, Pruning(attempt.flow.graph.dataflow))
