"""One try of a launch task against a driver program that does as it is told: what is submitted, and again."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from airflow.sdk import DAG, task
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowTaskTimeout
from airflow.sdk.log import mask_secret

from airflow_dagsched import Interval, SparkDataflow, channel
from airflow_dagsched.launch.protocol.events import (
    Event,
    Failure,
    FailureKind,
    Finished,
    Stalled,
    Started,
    StepDone,
    StepRunning,
    encode_marker,
)
from airflow_dagsched.launch.protocol.feed import Feed
from airflow_dagsched.launch.protocol.identity import TryId
from airflow_dagsched.launch.protocol.manifest import ENV_NONCE
from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.provider.following.follower import Follower
from airflow_dagsched.provider.runtime.attempt import Attempt
from airflow_dagsched.provider.runtime.execute import run_attempt
from airflow_dagsched.provider.runtime.folders import locate_group_folder
from airflow_dagsched.provider.runtime.memory import Memory
from airflow_dagsched.provider.spec.run_facts import RunFacts
from airflow_dagsched.provider.spec.run_history import locate_history, recall_history
from airflow_dagsched.provider.submission.spark_submit import ArchiveBroken
from airflow_dagsched.provider.wiring.launch import LaunchOperator
from airflow_dagsched.spark.driver.launch_secrets import take_private_content
from airflow_dagsched.spark.files.event_files import open_event_file

OUT_OF_MEMORY = Failure("out_of_memory", "Java heap space")
Fate = Callable[[int, Sequence[str]], Failure | None]
"""What becomes of the n-th submit, of these steps."""


@task.spark_step
def rows(spark, *, above=None):
    return spark.range(3)


def chain(names: str) -> None:
    above = None
    for name in names:
        above = rows.override(task_id=name)(above=above)


class Driver:
    """Stands in for spark-submit: remembers what it was asked for, and says how it ended."""

    def __init__(self, fate: Fate) -> None:
        self.submitted: list[str] = []
        self.conf: list[dict[str, str]] = []
        self.slots: list[int] = []
        self.manifests: list[dict[str, Any]] = []
        self.prints: tuple[str, ...] = ()
        """Lines of the output of those that fail."""
        self._fate = fate

    def submit(
        self,
        context: Any,
        *,
        conf: Any,
        arguments: list[str],
        env: dict[str, str],
        on_settings: Any,
        on_line: Any,
        **_: Any,
    ) -> None:
        on_settings(conf, frozenset())
        manifest = json.loads(Path(arguments[0]).read_text())
        targets = manifest["targets"]
        self.submitted.append("".join(targets))
        self.conf.append(conf)
        self.slots.append(manifest["slots"])
        self.manifests.append(manifest)
        failure = self._fate(len(self.submitted), targets)
        events: list[Event] = [Started("app"), *map(StepRunning, targets)]
        state = "failed" if failure else "success"
        events += [StepDone(name, state, seconds=2.0, failure=failure) for name in targets]  # type: ignore[arg-type]
        on_line(encode_marker(env[ENV_NONCE], 1, [*events, Finished(failure is None, 2.0)]))
        if failure:
            for line in self.prints:
                on_line(line)
            raise AirflowException("Cannot execute: spark-submit. Error code is: 1.")


@pytest.fixture(autouse=True)
def _connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "local[2]"}))
    monkeypatch.setattr("airflow_dagsched.provider.runtime.submitting.check_java", lambda group: None)


def connected(monkeypatch: pytest.MonkeyPatch, worker: Worker) -> None:
    """The connection knows the cluster, the DAG file does not: its groups are made for any."""
    cluster = msgspec.to_builtins(Cluster(manager="local", workers=(worker,)))
    raw = {"conn_type": "spark", "host": "local[2]", "extra": {"cluster": cluster}}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(raw))


def launched(flow: SparkDataflow, folder: Path, fate: Fate) -> tuple[Attempt, Driver]:
    """The only launch task of ``flow``, ready to run."""
    (launch,) = flow.launches()
    driver = Driver(fate)
    launch.submit = driver.submit  # type: ignore[method-assign]
    facts = RunFacts(
        dag_id="sales", run_id="r", try_id=TryId(try_number=1), began=0.0, conf={}, interval=Interval("once"),
        context={}, states={}, skipped={}, feeds={},
    )  # fmt: skip
    follower = Follower(Feed("n"), lambda *_: None, lambda *_: None, lambda *_: None)
    return Attempt(launch, {}, facts, follower, Memory(folder / "run"), folder / "run", (folder,)), driver


def fine(at: int, targets: Sequence[str]) -> None:
    """Every submit ends well."""


def test_one_application_and_what_it_teaches(dag: DAG, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with SparkDataflow("f", work_dir=str(tmp_path)) as flow:
        chain("abc")
    run, driver = launched(flow, tmp_path, fine)
    with caplog.at_level("INFO"):
        result = run_attempt(run)
    assert (driver.submitted, result["applications"], result["cuts"]) == (["abc"], 1, [])
    assert (result["work"]["assumed"], result["work"]["assumed_steps"]) == (1.0, 3)
    assert "all of the work is assumed (1 s a step, 3 steps): seconds are a guess" in caplog.text
    known = recall_history(locate_history(flow.spec))
    assert set(known.measured) == {"a", "b", "c"}
    assert len(known.connections["spark_default"].recent_start_s) == 1


def test_too_large_for_the_cluster(dag: DAG, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step holds 6 of 14 GiB disk: two fit, so four steps run in two applications of one launch task."""
    connected(monkeypatch, Worker(id="w", host="h", cores=2, memory_mb=4000, disk_mb=14_000))
    with SparkDataflow("f", work_dir=str(tmp_path)) as flow:
        above = None
        for name in "abcd":
            above = rows.override(task_id=name, disk="6g")(above=above)
    run, driver = launched(flow, tmp_path, fine)
    result = run_attempt(run)
    assert (driver.submitted, result["applications"]) == (["ab", "cd"], 2)
    (why,) = result["cuts"]
    assert re.fullmatch(
        r"cut into 2 applications, one after another: group 'launch\w*' does not fit: disk of its containers "
        "needed 24576 MiB, available 14000 MiB on worker 'w'",
        why,
    )


def test_ten_gigabytes_stay_inside_one_application(dag: DAG, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """a ═1 MB═> b ═1 MB═> c ═10 GB═> d, three fit at once: never cut between c and d."""
    connected(monkeypatch, Worker(id="w", host="h", cores=2, memory_mb=4000, disk_mb=20_000))
    with SparkDataflow("f", work_dir=str(tmp_path)) as flow:
        above = None
        for name, size in zip("abcd", (None, 2**20, 2**20, 10 * 2**30), strict=True):
            above = rows.override(task_id=name, disk="6g")(above=above if size is None else channel(above, bytes=size))
    run, driver = launched(flow, tmp_path, fine)
    run_attempt(run)
    assert driver.submitted in (["a", "bcd"], ["ab", "cd"])
    assert run.cuts[0].endswith("; spills 1.0 MiB between them")


def test_what_a_launch_says_is_masked(dag: DAG, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Airflow learned until an argument could not be rendered is in the message of that failure."""
    with SparkDataflow("f", work_dir=str(tmp_path)) as flow:
        rows(above="{{ x }}")

    def render(*_: Any) -> None:
        mask_secret("tr0ub4dor")
        raise ValueError("no such door: tr0ub4dor")

    run, driver = launched(flow, tmp_path, fine)
    monkeypatch.setattr(run.launch, "render_template", render)
    with pytest.raises(AirflowFailException, match=r"no such door: \*\*\*"):
        run_attempt(run)
    (done,) = run.follower.feed.steps.values()
    assert done.failure is not None
    assert done.failure.message.endswith("no such door: ***")
    assert driver.submitted == []


def test_settings_of_flow_and_steps_are_rendered(dag: DAG, tmp_path: Path) -> None:
    """The plan's, then the dataflow's, then the steps'."""
    told = {"spark.ui.showConsoleProgress": "true", "spark.a": "flow", "spark.b": "{{ word }}"}
    with SparkDataflow("f", work_dir=str(tmp_path), conf=told) as flow:
        rows.override(application={"spark.a": "step of {{ word }}", "spark.c": 1})()
    run, driver = launched(flow, tmp_path, fine)
    run.context["word"] = "shop"  # type: ignore[typeddict-unknown-key]
    run_attempt(run)
    (conf,) = driver.conf
    assert conf["spark.scheduler.mode"] == "FAIR"
    assert conf["spark.ui.showConsoleProgress"] == "true"
    assert (conf["spark.a"], conf["spark.b"], conf["spark.c"]) == ("step of shop", "shop", "1")


def test_a_setting_that_is_none_once_rendered(dag: DAG, tmp_path: Path) -> None:
    """Its name is told, its value is not, and nothing is submitted."""
    with SparkDataflow("f", work_dir=str(tmp_path), conf={"spark.shop.key": "{{ word }}"}) as flow:
        rows()
    run, driver = launched(flow, tmp_path, fine)
    run.context["word"] = "hunter2 "  # type: ignore[typeddict-unknown-key]
    with pytest.raises(AirflowFailException, match=r"conf: as rendered, 'spark.shop.key' begins or ends") as refused:
        run_attempt(run)
    assert "hunter2" not in str(refused.value)
    assert driver.submitted == []


def test_a_switch_that_is_neither_on_nor_off(dag: DAG, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__DAGSCHED__ENABLED", "maybe")
    with SparkDataflow("f", work_dir=str(tmp_path)) as flow:
        rows()
    run, driver = launched(flow, tmp_path, fine)
    with pytest.raises(AirflowFailException, match=r"\[dagsched\] enabled: must be True or False, not 'maybe'"):
        run_attempt(run)
    assert driver.submitted == []


def test_the_driver_program_gets_the_inside_of_the_group_as_planned(dag: DAG, tmp_path: Path) -> None:
    """
    2 cores    c c c c c c    c, of 30 s, begins first, b when a has ended: not in the order in which they are written.
               a a a b b b
    """
    with SparkDataflow("f", work_dir=str(tmp_path), conf={"spark.sql.files.maxPartitionBytes": "1m"}) as flow:
        for name, seconds in (("a", 15), ("b", 15), ("c", 30)):
            rows.override(task_id=name, runtime_s=seconds, **({"parallelism": 1} if name == "c" else {}))()
    run, driver = launched(flow, tmp_path, fine)
    run_attempt(run)
    (manifest,) = driver.manifests
    assert (manifest["targets"], manifest["order"], manifest["slots"]) == (["a", "b", "c"], ["c", "a", "b"], 2)
    assert manifest["begins"] == {"c": 0.0, "a": 0.0, "b": 15.0}
    assert (manifest["instances"], manifest["cores"]) == ({"a": 1, "b": 1, "c": 1}, 2)
    # Of a, b nothing is declared; of scans the author said something.
    assert manifest["session"] == {
        "c": {
            "spark.sql.shuffle.partitions": "1",
            "spark.sql.adaptive.coalescePartitions.minPartitionNum": "1",
            "spark.sql.adaptive.coalescePartitions.enabled": "false",
            "spark.sql.leafNodeDefaultParallelism": "1",
        }
    }


def test_out_of_memory_until_it_fits(dag: DAG, tmp_path: Path) -> None:
    """
    abcd            out of memory
    abcd, x 2       out of memory, one step at a time
    ab, x 4         well
    cd, x 4         out of memory
    a  b  c  d, x 8
    """
    with SparkDataflow("f", work_dir=str(tmp_path)) as flow:
        chain("abcd")
    run, driver = launched(flow, tmp_path, lambda at, targets: OUT_OF_MEMORY if at in (1, 2, 4) else None)
    result = run_attempt(run)
    assert driver.submitted == ["abcd", "abcd", "ab", "cd", "a", "b", "c", "d"]
    heaps = [int(conf["spark.driver.memory"].removesuffix("m")) for conf in driver.conf]
    assert [at for at, heap in enumerate(heaps) if heap > max(heaps[:at], default=0)] == [0, 1, 2, 4]
    assert driver.slots == [1] * 8
    assert [done["state"] for done in result["steps"].values()] == ["success"] * 4
    assert len(result["cuts"]) == 3
    assert len(list((tmp_path / "run").rglob("manifest.json"))) == 8
    assert (recall_history(locate_history(flow.spec)).measured["a"].memory_mb or 0) >= 4 * 1024


def test_out_of_memory_to_the_last(dag: DAG, tmp_path: Path) -> None:
    """One submit at each level; the try after this one starts where it ended."""
    with SparkDataflow("f", work_dir=str(tmp_path)) as flow:
        chain("a")
    run, driver = launched(flow, tmp_path, lambda at, targets: OUT_OF_MEMORY)
    with pytest.raises(AirflowException, match="Java heap space"):
        run_attempt(run)
    assert driver.submitted == ["a"] * 4
    assert run.memory.level == 3
    assert run.follower.feed.steps["a"].state == "failed"


HEAP = "java.lang.OutOfMemoryError: Java heap space"
LOST_TASK = f"WARN TaskSetManager: Lost task 0.0 in stage 0.0 (TID 0) (w executor 1): {HEAP}"
JAVA_ENDS = "ERROR SparkUncaughtExceptionHandler: Uncaught exception in thread Thread[Executor task launch worker]"


@pytest.mark.parametrize(
    ("kind", "prints", "submits"),
    [
        ("lost_driver", (HEAP,), 2),
        ("lost_driver", (), 1),
        # Of a Java that ends, the driver program saw something that looks like its author's.
        ("author", (HEAP, JAVA_ENDS, HEAP), 2),
        ("author", (JAVA_ENDS,), 1),
        # An executor ended so: Spark has run its tasks again, and the author's own error came later.
        ("author", (LOST_TASK,), 1),
    ],
)
def test_java_that_ends_for_want_of_memory(
    dag: DAG, tmp_path: Path, kind: FailureKind, prints: tuple[str, ...], submits: int
) -> None:
    with SparkDataflow("f", work_dir=str(tmp_path)) as flow:
        chain("a")
    run, driver = launched(flow, tmp_path, lambda at, targets: Failure(kind, "no answer") if at == 1 else None)
    driver.prints = prints
    with nullcontext() if submits > 1 else pytest.raises(AirflowException, match="no answer"):
        run_attempt(run)
    assert len(driver.submitted) == submits


def test_java_that_crashes_over_its_archive_is_followed_by_a_submit_from_files_of_its_own(
    dag: DAG, tmp_path: Path
) -> None:
    """The driver has begun its file of events by then, and taken its private files away."""
    with SparkDataflow("f", work_dir=str(tmp_path)) as flow:
        chain("ab")
    run, driver = launched(flow, tmp_path, fine)
    begun: list[str] = []

    def submit(context: Any, *, arguments: list[str], env: dict[str, str], **rest: Any) -> None:
        begun.append(arguments[0])
        open_event_file(json.loads(Path(arguments[0]).read_text())["events"])
        assert take_private_content(env)
        if len(begun) == 1:
            raise ArchiveBroken("Cannot execute: spark-submit. Error code is: 135.")
        driver.submit(context, arguments=arguments, env=env, **rest)

    run.launch.submit = submit  # type: ignore[method-assign]
    result = run_attempt(run)
    assert (driver.submitted, result["applications"], result["cuts"]) == (["ab"], 1, [])
    assert len({*begun}) == 2


def test_other_failures_wait_for_a_retry(dag: DAG, tmp_path: Path) -> None:
    with SparkDataflow("f", work_dir=str(tmp_path)) as flow:
        chain("a")
    run, driver = launched(flow, tmp_path, lambda at, targets: Failure("author", "no such column"))
    with pytest.raises(AirflowException, match="no such column"):
        run_attempt(run)
    assert (driver.submitted, run.memory.level) == (["a"], 0)


def test_a_stopped_launch_task_submits_nothing_more(dag: DAG, tmp_path: Path) -> None:
    """A killed driver looks as if memory had run out."""
    with SparkDataflow("f", work_dir=str(tmp_path)) as flow:
        chain("a")
    launch: LaunchOperator = flow.launches()[0]

    def killed(at: int, targets: Sequence[str]) -> Failure:
        launch.stopped = True
        return OUT_OF_MEMORY

    run, driver = launched(flow, tmp_path, killed)
    with pytest.raises(AirflowException):
        run_attempt(run)
    assert driver.submitted == ["a"]


def test_a_step_too_large_alone_is_refused(dag: DAG, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connected(monkeypatch, Worker(id="w", host="h", cores=2, memory_mb=4000))
    with SparkDataflow("f", work_dir=str(tmp_path)) as flow:
        rows.override(task_id="b", memory="40g")(above=rows.override(task_id="a")())
    run, driver = launched(flow, tmp_path, fine)
    with pytest.raises(AirflowFailException, match=r"does not fit: memory.* needed \d+ MiB, available 4000 MiB"):
        run_attempt(run)
    assert driver.submitted == []
    assert {name: done.state for name, done in run.follower.feed.steps.items()} == {"a": "failed", "b": "failed"}


def test_no_folder_with_secrets_is_left(dag: DAG, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "private"))
    (tmp_path / "private").mkdir()
    with SparkDataflow("f", work_dir=str(tmp_path)) as flow:
        chain("ab")
    run_attempt(launched(flow, tmp_path, fine)[0])
    assert list((tmp_path / "private").iterdir()) == []


def test_a_group_of_that_name_in_another_dataflow_has_its_own_folder(dag: DAG, tmp_path: Path) -> None:
    """Both are called ``launch``: their events must not meet in one file."""
    with SparkDataflow("f", work_dir=str(tmp_path)) as one:
        chain("ab")
    with SparkDataflow("g", work_dir=str(tmp_path)) as other:
        chain("ab")
    launches = [*one.launches(), *other.launches()]
    facts = launched(one, tmp_path, fine)[0].facts
    assert [launch.group.id for launch in launches] == ["launch", "launch"]
    assert len({locate_group_folder(launch.spec, facts) for launch in launches}) == 2


def test_out_of_time(dag: DAG, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """a ──> b ──> c: b is at work when Airflow's limit is over; it says why, in its mirror and in the launch."""
    with SparkDataflow("f", work_dir=str(tmp_path), execution_timeout=timedelta(minutes=10)) as flow:
        chain("abc")
    stall = Stalled("b", 420.0, "stage 7 (collect at etl.py:31) runs 2 tasks on 127.0.0.1, none of 8 ended")
    run, _ = launched(flow, tmp_path, fine)
    launch: LaunchOperator = flow.launches()[0]

    def submit(context: Any, *, env: dict[str, str], on_line: Any, **_: Any) -> None:
        events = [Started("app"), StepRunning("a"), StepDone("a", "success"), StepRunning("b"), stall]
        on_line(encode_marker(env[ENV_NONCE], 1, events))
        raise AirflowTaskTimeout("Timeout, PID: 1")

    stopped: list[bool] = []
    launch.submit = submit  # type: ignore[method-assign]
    monkeypatch.setattr(launch, "end_submit", lambda: stopped.append(True))
    with pytest.raises(AirflowTaskTimeout, match=r"^execution_timeout of 10 min: b: no progress for 7 min: stage 7 "):
        run_attempt(run)
    feed = run.follower.feed
    assert (stopped, feed.final) == ([True], True)
    assert {name: done.state for name, done in feed.steps.items()} == {
        "a": "success",
        "b": "failed",
        "c": "upstream_failed",
    }
    failure = feed.steps["b"].failure
    assert failure is not None
    assert failure.message.startswith("execution_timeout of 10 min: no progress for 7 min: stage 7 ")


def test_a_last_word_that_is_not_taken_is_said_by_a_retry(dag: DAG, tmp_path: Path) -> None:
    """Green launch, mirrors without an end: never."""
    with SparkDataflow("f", work_dir=str(tmp_path)) as flow:
        chain("a")
    run, _ = launched(flow, tmp_path, fine)
    run.follower = Follower(Feed("n"), lambda *_: None, lambda *_: None, lambda *_: None, lambda: False)
    with pytest.raises(AirflowException, match="did not take the last word"):
        run_attempt(run)
