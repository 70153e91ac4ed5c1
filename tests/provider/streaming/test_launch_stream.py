"""One try of a stream's launch task, against drivers that are a lease and no more: what it asks for, starts, adopts."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG, task
from airflow.sdk.exceptions import AirflowException, AirflowFailException, TaskDeferred

from airflow_dagsched import Interval, SparkDataflow, Table
from airflow_dagsched.launch.protocol.identity import TryId
from airflow_dagsched.launch.protocol.manifest import PAYLOAD_KEY
from airflow_dagsched.launch.streams.manifest import read_stream_manifest
from airflow_dagsched.launch.streams.private_folder import PAYLOAD, PROPERTIES, read_start_command
from airflow_dagsched.provider.spec.run_facts import RunFacts
from airflow_dagsched.provider.streaming import launch_stream, launching
from airflow_dagsched.provider.streaming.launch_stream import execute_stream, resume_stream
from airflow_dagsched.provider.streaming.launching import Launching
from airflow_dagsched.provider.wiring.stream_launch import STREAM_DRIVER, StreamLaunchOperator
from airflow_dagsched.switch.log.signs_files import (
    place_order,
    read_follower,
    read_orders,
    read_refused,
    read_starts,
    write_ended,
    write_refused,
    write_sign,
)
from airflow_dagsched.switch.places import EpochPlaces
from airflow_dagsched.switch.signs import Ended, Follower, Refused, Sign
from airflow_dagsched.version import __version__
from tests.provider.streaming.flows import Flow
from tests.switch.drawn import make_batch, make_drained, make_fence, make_stopped

OPTIONS = {"rowsPerBatch": "10", "kafka.password": "hunter2secret"}


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "local[2]"}))
    monkeypatch.setattr(launch_stream, "check_java", lambda group: None)
    # This very file is no DAG file.
    monkeypatch.setattr(launch_stream, "check_in_fresh_process", lambda flow, dag_file: None)

    def gather(spec: Any, context: dict[str, Any]) -> RunFacts:
        return RunFacts(
            dag_id="sales", run_id=context["ti"].run_id, try_id=TryId(try_number=1), began=0.0, conf={},
            interval=Interval("once"), context={}, states={}, skipped={}, feeds={},
        )  # fmt: skip

    monkeypatch.setattr(launch_stream, "gather_run_facts", gather)


def declare(dag: DAG, work_dir: Path, amount: str = "amount", **settings: Any) -> StreamLaunchOperator:
    """The launch task of a stream; another amount is other code."""
    with SparkDataflow(
        "clicks", mode="streaming", window="10 seconds", lateness="0 seconds", trigger="1 second",
        work_dir=str(work_dir), conf={"spark.shop.password": "hunter2secret", **settings.pop("conf", {})}, **settings,
    ) as flow:  # fmt: skip

        @task.spark_stream_source(format="rate-micro-batch", event_time="timestamp", options=OPTIONS)
        def clicks(rows):
            return rows

        @task.spark_step(stateful=True, parallelism=3)
        def by_user(clicks, *, column):
            return clicks.groupBy(column)

        @task.spark_step(writes=Table(str(work_dir / "table"), mode="append"))
        def out(by_user):
            return by_user

        out(by_user(clicks(), column=amount))
    (launch,) = flow.launches()
    assert isinstance(launch, StreamLaunchOperator)
    return launch


@dataclass(eq=False)
class Tries:
    """Tries of launch tasks of one flow."""

    flow: Flow
    meanwhile: list[Callable[[], None]] = field(default_factory=list)
    """What happens while they wait: one a second."""
    pushed: dict[str, Any] = field(default_factory=dict)
    idle: int = 0
    """Seconds in which nothing happened."""

    clears: int = 0
    """How often the task was cleared."""
    states: dict[str, str] = field(default_factory=dict)
    """Run -> Airflow's state of its launch task."""
    events: dict[str, Any] = field(default_factory=dict)
    """That asked for the run, by asset."""

    def ask_state(self, dag_id: str, run_id: str, task_id: str) -> str | None:
        return self.states.get(run_id)

    def open(self, launch: StreamLaunchOperator, run_id: str = "run 1", conf: Any = None) -> Launching:
        ti = SimpleNamespace(
            dag_id="sales", run_id=run_id, task_id=launch.task_id, max_tries=self.clears,
            xcom_push=self.pushed.__setitem__,
        )  # fmt: skip
        context: Any = {"ti": ti, "dag_run": SimpleNamespace(conf=conf or {}), "triggering_asset_events": self.events}
        return Launching.open(launch, context, self.start, self.flow.clock, self.sleep)

    def start(self, places: EpochPlaces, work_dir: Path) -> int:
        return self.flow.start(places, work_dir)

    def sleep(self, seconds: float) -> None:
        self.flow.now += seconds
        self.idle += not self.meanwhile
        assert self.idle < 20, "it waits for what never comes"
        if self.meanwhile:
            self.meanwhile.pop(0)()

    def run(self, launch: StreamLaunchOperator, run_id: str = "run 1", conf: Any = None) -> int:
        """Until it is deferred; the epoch that it follows then."""
        with pytest.raises(TaskDeferred) as deferred:
            execute_stream(self.open(launch, run_id, conf))
        assert (deferred.value.method_name, deferred.value.timeout) == ("resume", None)
        epoch: int = deferred.value.trigger.epoch  # type: ignore[attr-defined]
        return epoch


@pytest.fixture
def tries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tries:
    flow = Flow(tmp_path)
    flow.places = flow.places.__class__(tmp_path / "streams" / "sales" / "clicks")
    flow.executor = flow.join()
    tries = Tries(flow)
    for each in (launch_stream, launching):
        monkeypatch.setattr(each, "ask_state", tries.ask_state)
    return tries


def test_a_first_try_makes_the_epoch_and_starts_its_driver(dag: DAG, tries: Tries, tmp_path: Path):
    launch = declare(dag, tmp_path)
    assert tries.run(launch) == 1
    record, stream = tries.flow.story.epochs[1].record, launch.flow.stream
    assert stream is not None
    assert (record.fingerprint, record.run_id, record.x_queries) == (stream.fingerprint, "run 1", ("out",))
    assert (record.x_window, record.x_drain) == (10.0, 1)
    assert tries.flow.started == [record.x_folder]


def test_once_its_queries_run_the_archive_is_made_that_its_driver_lacked(
    dag: DAG, tries: Tries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    made: list[Path] = []
    monkeypatch.setattr(launch_stream, "make_missing_archive", made.append)
    tries.run(declare(dag, tmp_path))
    assert made == [tries.flow.locate(1).private]
    assert (made[0] / PROPERTIES).exists()


def test_the_private_folder_has_all_that_a_driver_is_started_from(dag: DAG, tries: Tries, tmp_path: Path):
    tries.run(declare(dag, tmp_path))
    places = tries.flow.locate(1)
    content = pickle.loads((places.private / PAYLOAD).read_bytes())
    manifest = read_stream_manifest(content[PAYLOAD_KEY].decode(), __version__)
    assert [step.id for step in manifest.steps] == ["clicks", "by_user", "out"]
    assert (manifest.folder, manifest.queries[0].partitions) == (places.folder.name, 3)
    assert manifest.sources[0].options == OPTIONS
    assert {"by_user", "clicks", "out"} <= set(content)
    command = read_start_command(places.private)
    assert command.argv[-2:] == (STREAM_DRIVER, str(places.folder))
    assert command.argv[command.argv.index("--properties-file") + 1] == str(places.private / PROPERTIES)
    assert {"PYTHONPATH", "PYSPARK_PYTHON"} <= set(command.environment)
    settings = (places.private / PROPERTIES).read_text()
    assert "spark.scheduler.mode FAIR" in settings.replace("=", " ")
    assert "spark.log.level WARN" in settings.replace("=", " ")
    assert "TieredStopAtLevel" not in settings, "it runs for weeks"
    assert places.plan.exists()


def test_what_everybody_may_read_has_no_secrets(dag: DAG, tries: Tries, tmp_path: Path):
    tries.run(declare(dag, tmp_path))
    private = tries.flow.locate(1).private
    shown = [each for each in tmp_path.rglob("*") if each.is_file() and not each.is_relative_to(private)]
    assert [each for each in shown if "hunter2secret" in each.read_text("utf-8", "replace")] == []
    assert "hunter2secret" in (private / PROPERTIES).read_text()
    assert private.stat().st_mode & 0o077 == 0
    assert "hunter2secret" not in " ".join(read_start_command(private).argv)


@pytest.mark.parametrize("run_id", ["run 1", "run 2"])
def test_a_later_try_and_another_run_follow_the_driver_that_lives(dag: DAG, tries: Tries, tmp_path: Path, run_id: str):
    launch = declare(dag, tmp_path)
    tries.run(launch)
    write_sign(tries.flow.locate(1), Sign(1, "app", tries.flow.now, "running", ui="http://spark:4040"))
    assert tries.run(launch, run_id) == 1
    assert len(tries.flow.started) == 1
    assert list(tries.flow.story.epochs) == [1]
    assert tries.pushed == {
        "dagsched_spark_ui": "http://spark:4040",
        "epoch": {"epoch": 1, "after": 0, "application": "app 1"},
    }


def test_a_worker_that_died_before_the_start_leaves_the_epoch_to_the_next_try(dag: DAG, tries: Tries, tmp_path: Path):
    launch = declare(dag, tmp_path)
    tries.flow.dies, tries.states = True, {"run 1": "running"}
    tries.meanwhile = [lambda: setattr(launch, "stopped", True)]
    with pytest.raises(AirflowException, match="this task was ended"):
        execute_stream(tries.open(launch))
    assert tries.flow.story.epochs[1].started is None
    launch.stopped = tries.flow.dies = False
    tries.flow.now += 10
    assert tries.run(launch) == 1
    assert list(tries.flow.story.epochs) == [1]


@pytest.mark.parametrize("has_trigger_seen_it", [False, True])
def test_a_cleared_task_starts_its_stream_anew_once_that_has_stopped(
    dag: DAG, tries: Tries, tmp_path: Path, has_trigger_seen_it: bool
):
    """Airflow may begin the next try before the trigger of the last has asked why it was ended."""
    launch, flow = declare(dag, tmp_path), tries.flow
    tries.run(launch)
    flow.run_batch(1)
    flow.settle()
    tries.clears = 1
    if has_trigger_seen_it:
        place_order(flow.locate(1), "stop", "run 1", flow.now, "cleared")
    tries.meanwhile = [lambda: None, lambda: flow.kill(1), lambda: None]
    assert tries.run(launch) == 1
    assert len(flow.started) == 2
    assert read_orders(flow.locate(1)) == {}
    story = flow.story.epochs[1]
    assert story.stopped is None
    assert story.started != story.begun


def test_who_was_cleared_follows_what_another_run_followed(dag: DAG, tries: Tries, tmp_path: Path):
    launch = declare(dag, tmp_path)
    tries.run(launch)
    tries.run(launch, "run 2")
    tries.clears = 1
    assert tries.run(launch) == 1
    assert len(tries.flow.started) == 1


@pytest.mark.parametrize("state", ["deferred", "running", "queued", "up_for_retry"])
def test_a_run_that_finds_another_one_at_work_has_nothing_to_do(dag: DAG, tries: Tries, tmp_path: Path, state: str):
    """It holds no room among the DAG's active runs, and who ends it ends no stream."""
    launch = declare(dag, tmp_path)
    tries.run(launch)
    tries.states["run 1"] = state
    reason = "run run 1 follows epoch 1, which is of this code: nothing is to be done"
    assert execute_stream(tries.open(launch, "run 2")) == {"epoch": 1, "followed_by": "run 1", "reason": reason}
    assert read_follower(tries.flow.locate(1)) == Follower("run 1", 0)
    tries.states["run 1"] = "failed"
    assert tries.run(launch, "run 2") == 1
    assert read_follower(tries.flow.locate(1)) == Follower("run 2", 0)


def test_a_cleared_task_gives_up_its_graph_before_the_fence(dag: DAG, tries: Tries, tmp_path: Path):
    """It asks for another of the same code."""
    flow = run_first(tries, declare(dag, tmp_path))
    launch = change(tmp_path, driver_memory="3g")
    assert tries.run(launch, "run 2") == 2
    tries.clears = 1
    tries.meanwhile = [lambda: flow.kill(2), lambda: None]
    assert tries.run(launch, "run 2") == 3
    assert flow.story.epochs[2].aborted is not None


def test_after_a_crash_loop_a_person_s_clear_begins_to_count_anew(dag: DAG, tries: Tries, tmp_path: Path):
    launch, flow = declare(dag, tmp_path), tries.flow
    tries.run(launch)
    flow.run_batch(1)
    flow.settle()
    flow.kill(1)
    flow.add(make_stopped(1, x_cause="author", at=flow.now))
    assert tries.run(launch) == 1
    assert read_starts(flow.locate(1)).count == 1  # type: ignore[union-attr]


def run_first(tries: Tries, launch: StreamLaunchOperator) -> Flow:
    """The flow of an epoch that has a batch, and is the owner."""
    tries.run(launch)
    tries.flow.run_batch(1, x_begin={"clicks": None}, x_newest={"clicks": None})
    tries.flow.settle()
    return tries.flow


def change(tmp_path: Path, **settings: Any) -> StreamLaunchOperator:
    """The launch task of the same stream, of other code."""
    with DAG("sales", schedule=None) as other:
        return declare(other, tmp_path, "other", **settings)


def test_other_code_is_another_epoch_in_the_application_that_runs(
    dag: DAG, tries: Tries, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    """Its driver starts it, so nobody else does. The task's log says what changed."""
    caplog.set_level("INFO")
    flow = run_first(tries, declare(dag, tmp_path))
    tries.meanwhile = [lambda: None, lambda: flow.begin(2)]
    assert tries.run(change(tmp_path), "run 2") == 2
    record = flow.story.epochs[2].record
    assert (record.run_id, record.x_after, record.x_overlap) == ("run 2", 1, "beside")
    assert flow.started == [flow.story.epochs[1].record.x_folder]
    assert "epoch 2 follows epoch 1, other are: step by_user: code" in caplog.messages
    assert "it runs in the same application" in caplog.messages


def test_what_the_application_that_runs_refuses_gets_one_of_its_own(dag: DAG, tries: Tries, tmp_path: Path):
    flow = run_first(tries, declare(dag, tmp_path))
    tries.meanwhile = [lambda: None, lambda: write_ended(flow.locate(2), Ended(2, "refused", flow.now))]
    assert tries.run(change(tmp_path), "run 2") == 2
    assert flow.started == [flow.story.epochs[number].record.x_folder for number in (1, 2)]


@pytest.mark.parametrize("settings", [{"driver_memory": "3g"}, {"conf": {"spark.sql.extensions": "shop.Rules"}}])
def test_what_spark_takes_only_as_it_starts_is_an_application_of_its_own(
    dag: DAG, tries: Tries, tmp_path: Path, settings: dict[str, Any]
):
    flow = run_first(tries, declare(dag, tmp_path))
    assert tries.run(change(tmp_path, **settings), "run 2") == 2
    assert flow.started == [flow.story.epochs[number].record.x_folder for number in (1, 2)]


def test_who_waits_for_the_old_graph_to_make_room_has_no_worker_meanwhile(dag: DAG, tries: Tries, tmp_path: Path):
    """That takes as long as rows take to come; its trigger has a worker start it then."""
    flow = run_first(tries, declare(dag, tmp_path))
    launch = change(tmp_path, overlap="sequential")
    assert tries.run(launch, "run 2") == 2
    assert (flow.story.epochs[2].begun, len(flow.started)) == (None, 1)
    flow.run_batch(1, watermark=50.0)
    flow.add(make_drained(1))
    flow.kill(1)
    flow.settle()
    assert (flow.story.owner, len(flow.started)) == (2, 2)


def test_the_code_that_runs_ends_a_switch_away_from_it(dag: DAG, tries: Tries, tmp_path: Path):
    """Deployed again before the fence: nothing is started, and the old graph never noticed."""
    launch = declare(dag, tmp_path)
    flow = run_first(tries, launch)
    tries.run(change(tmp_path, driver_memory="3g"), "run 2")
    tries.meanwhile = [lambda: None] * 3
    assert tries.run(launch, "run 3") == 1
    aborted = flow.story.epochs[2].aborted
    assert aborted is not None
    assert (aborted.x_cause, aborted.reason) == ("replaced", "run run 3 asks for another graph")


def test_the_epoch_s_record_says_that_a_standby_is_wanted(dag: DAG, tries: Tries, tmp_path: Path):
    assert tries.run(declare(dag, tmp_path, standbys=1)) == 1
    assert tries.flow.story.epochs[1].record.x_standbys == 1
    assert tries.flow.story.wants_standby


def test_what_was_refused_once_is_forgotten_as_soon_as_it_runs(dag: DAG, tries: Tries, tmp_path: Path):
    launch = declare(dag, tmp_path)
    stream = launch.flow.stream
    assert stream is not None
    write_refused(tries.flow.places, Refused(stream.fingerprint, "run 0", 0.0, "no Java"))
    tries.run(launch)
    assert read_refused(tries.flow.places) is None


def test_a_run_that_was_asked_for_by_other_code_than_it_reads_says_so(dag: DAG, tries: Tries, tmp_path: Path):
    """Of a file that was edited since it makes the epoch; one that the DAG processor reads otherwise comes up again."""
    launch = declare(dag, tmp_path)
    payload = {"dag_id": "sales", "flow": "clicks", "fingerprint": "other", "reason": "changed"}
    tries.events = {"clicks": [SimpleNamespace(extra={"from_trigger": True, "payload": payload})]}
    assert tries.run(launch) == 1
    assert read_refused(tries.flow.places) is None
    tries.states["run 1"] = "deferred"
    with pytest.raises(AirflowFailException, match=r"reads other code than this worker .* runs as epoch 1"):
        execute_stream(tries.open(launch, "run 2"))
    assert read_refused(tries.flow.places).fingerprint == "other"  # type: ignore[union-attr]


def test_what_fills_the_inboxes_is_started_beside_the_first_graph(dag: DAG, tries: Tries, tmp_path: Path):
    tries.run(declare(dag, tmp_path, channel="inbox"))
    assert set(tries.flow.started) == {tries.flow.story.epochs[1].record.x_folder, "inbox-service"}
    places = tries.flow.places.inbox_service
    content = pickle.loads((places.private / PAYLOAD).read_bytes())
    manifest = read_stream_manifest(content[PAYLOAD_KEY].decode(), __version__)
    assert ([step.id for step in manifest.steps], manifest.queries) == (["clicks"], ())
    assert read_start_command(places.private).argv[-2:] == (STREAM_DRIVER, str(places.folder))


def test_the_same_code_again_where_the_run_asks_for_it_and_once_only(dag: DAG, tries: Tries, tmp_path: Path):
    launch, conf = declare(dag, tmp_path), {"dagsched": {"switch": "again"}}
    flow = run_first(tries, launch)
    tries.meanwhile = [lambda: None, lambda: flow.begin(2)]
    assert tries.run(launch, "run 2", conf) == 2
    assert tries.run(launch, "run 2", conf) == 2, "its second try"


def test_a_flow_whose_windows_stay_open_is_mended_where_the_run_says_so(dag: DAG, tries: Tries, tmp_path: Path):
    """Rows are written as they come, and its author's error stopped it: no code but that one could ever run."""
    flow, more = run_first(tries, declare(dag, tmp_path)), change(tmp_path)
    flow.add(make_batch(1, 1, 30, 90, watermark=50.0))
    flow.kill(1)
    flow.add(make_stopped(1, x_cause="author"))
    with pytest.raises(AirflowFailException, match=r"switch DAG --open` \(until then nothing runs"):
        execute_stream(tries.open(more, "run 2"))
    tries.meanwhile = [lambda: flow.begin(2)]
    assert tries.run(more, "run 2", {"dagsched": {"switch": "open"}}) == 2
    assert flow.story.epochs[1].upto == 90


def test_a_lost_driver_is_started_again_without_the_dag_s_code(dag: DAG, tries: Tries, tmp_path: Path):
    launch, flow = declare(dag, tmp_path), tries.flow
    tries.run(launch)
    flow.run_batch(1)
    flow.kill(1)
    flow.now += 1
    with pytest.raises(TaskDeferred):
        resume_stream(tries.open(launch), {"event": "lost", "epoch": 1, "follows": 1})
    assert flow.started == [flow.story.epochs[1].record.x_folder] * 2


def test_a_start_that_the_machine_does_not_manage_counts_and_takes_no_retry(
    dag: DAG, tries: Tries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    launch, flow = declare(dag, tmp_path), tries.flow
    tries.run(launch)
    flow.run_batch(1)
    flow.kill(1)
    flow.now += 1

    def fail(places: EpochPlaces, work_dir: Path) -> int:
        raise OSError("no more processes")

    monkeypatch.setattr(tries, "start", fail)
    for count in (1, 2):
        with pytest.raises(TaskDeferred):
            resume_stream(tries.open(launch), {"event": "lost", "epoch": 1, "follows": 1})
        assert read_starts(flow.locate(1)).count == count  # type: ignore[union-attr]
        flow.now += 300


def test_what_ended_badly_is_red_without_a_retry(dag: DAG, tries: Tries, tmp_path: Path):
    with pytest.raises(AirflowFailException, match="KeyError"):
        resume_stream(tries.open(declare(dag, tmp_path)), {"event": "ended", "reason": "KeyError: 'user'"})


def test_a_task_that_holds_its_slot_stays_until_the_end(dag: DAG, tries: Tries, tmp_path: Path):
    launch, flow = declare(dag, tmp_path, hold_slot=True), tries.flow

    def stop() -> None:
        flow.kill(1)
        flow.add(make_stopped(1, reason="enough", x_cause="person", at=flow.now))

    def lose() -> None:
        flow.run_batch(1)
        flow.kill(1)
        flow.now += 1

    tries.meanwhile = [lambda: flow.run_batch(1), lose, lambda: None, stop, lambda: None]
    assert execute_stream(tries.open(launch)) == {"epoch": 1}
    assert len(flow.started) == 2, "it was lost once"


@pytest.mark.parametrize(("state", "ordered"), [("failed", {"stop"}), (None, {"stop"}), ("running", set())])
def test_a_task_that_is_ended_at_work_stops_the_stream_if_a_person_did(
    dag: DAG, tries: Tries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str | None, ordered: set[str]
):
    launch, flow = declare(dag, tmp_path, hold_slot=True), tries.flow
    monkeypatch.setattr(launching, "ask_state", lambda *names: state)
    tries.meanwhile = [launch.on_kill]
    with pytest.raises(AirflowException, match="this task was ended"):
        execute_stream(tries.open(launch))
    assert set(read_orders(flow.locate(1))) == ordered


def test_two_runs_of_one_code_have_one_epoch(dag: DAG, tries: Tries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The other asks while this one makes its folder, which goes again."""
    launch, flow = declare(dag, tmp_path), tries.flow
    plain = launch_stream.write_epoch

    def write(*arguments: Any) -> EpochPlaces:
        monkeypatch.setattr(launch_stream, "write_epoch", plain)
        tries.run(launch, "run 2")
        tries.states["run 2"] = "deferred"
        return plain(*arguments)

    monkeypatch.setattr(launch_stream, "write_epoch", write)
    assert execute_stream(tries.open(launch))["followed_by"] == "run 2"
    assert flow.story.epochs[1].record.run_id == "run 2"
    assert len(list((flow.places.folder / "epochs").iterdir())) == 1


def stopped(tries: Tries, launch: StreamLaunchOperator) -> Flow:
    """The flow of an epoch that was stopped, by a person."""
    flow = tries.flow
    tries.run(launch)
    flow.kill(1)
    flow.add(make_stopped(1, x_cause="person", at=flow.now))
    return flow


def test_a_clear_behind_the_fence_brings_both_graphs_back(dag: DAG, tries: Tries, tmp_path: Path):
    """The old one still owns windows, and nobody else would start it."""
    flow = run_first(tries, declare(dag, tmp_path))
    launch = change(tmp_path, driver_memory="3g")
    tries.run(launch, "run 2")
    flow.run_batch(2, kept=0, x_begin={"clicks": None}, x_newest={"clicks": None})
    flow.add(make_fence(1, 40.0, at=flow.now))
    tries.clears = 1
    tries.meanwhile = [lambda: flow.kill(2), lambda: None, lambda: flow.kill(1), lambda: None]
    assert tries.run(launch, "run 2") == 2
    folders = [flow.story.epochs[epoch].record.x_folder for epoch in (1, 2)]
    assert flow.started == folders * 2
    assert [flow.story.epochs[epoch].stopped for epoch in (1, 2)] == [None, None]
    assert [read_orders(flow.locate(epoch)) for epoch in (1, 2)] == [{}, {}]


def test_other_code_is_deployed_after_a_stop(dag: DAG, tries: Tries, tmp_path: Path):
    flow = run_first(tries, declare(dag, tmp_path))
    place_order(flow.locate(1), "stop", "ann", flow.now, "enough")
    flow.kill(1)
    flow.settle()
    assert flow.story.epochs[1].stopped is not None
    assert tries.run(change(tmp_path), "run 2") == 2
    assert flow.story.epochs[2].aborted is None


def test_started_counts_only_for_a_driver_that_was_not_stopped_since(dag: DAG, tries: Tries, tmp_path: Path):
    launch = declare(dag, tmp_path)
    flow = stopped(tries, launch)
    flow.pid = os.getpid()
    tries.meanwhile = [lambda: None, lambda: flow.begin(1)]
    assert tries.run(launch) == 1
    assert tries.meanwhile == []


def test_what_is_started_again_and_ends_at_once_is_no_good_end(dag: DAG, tries: Tries, tmp_path: Path):
    launch = declare(dag, tmp_path)
    flow = stopped(tries, launch)
    flow.dies = True
    with pytest.raises(
        AirflowFailException, match=r"started again, and ended before its queries ran: see .*driver.log"
    ):
        execute_stream(tries.open(launch))
