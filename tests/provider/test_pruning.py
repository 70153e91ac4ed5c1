"""What a launch leaves out: it lists what its steps read, and submits only what is left."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG, task

from airflow_dagsched import Interval, SparkDataflow, SparkSqlStep, Table
from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.launch.protocol.events import Event, Finished, Started, StepDone, StepRunning, encode_marker
from airflow_dagsched.launch.protocol.feed import Feed
from airflow_dagsched.launch.protocol.identity import TryId
from airflow_dagsched.launch.protocol.keys import escape_key
from airflow_dagsched.launch.protocol.manifest import ENV_NONCE
from airflow_dagsched.plan.pruning.layout import Entry
from airflow_dagsched.provider.clusters.folder_listing import FileLister
from airflow_dagsched.provider.following.follower import Follower
from airflow_dagsched.provider.runtime.attempt import Attempt
from airflow_dagsched.provider.runtime.execute import run_attempt
from airflow_dagsched.provider.runtime.memory import Memory
from airflow_dagsched.provider.spec.run_facts import RunFacts
from airflow_dagsched.provider.wiring.launch import LaunchOperator

DAY = Interval("2013-01-02", datetime(2013, 1, 2, tzinfo=UTC), datetime(2013, 1, 3, tzinfo=UTC))
SUNDAY = Interval("2013-01-06", datetime(2013, 1, 6, tzinfo=UTC), datetime(2013, 1, 7, tzinfo=UTC))


@pytest.fixture(autouse=True)
def _connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "local[2]"}))
    monkeypatch.setattr("airflow_dagsched.provider.runtime.submitting.check_java", lambda group: None)


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Three days of one file each."""
    for day in ("2013-01-01", "2013-01-02", "2013-01-03"):
        folder = tmp_path / "orders" / f"day={day}"
        folder.mkdir(parents=True)
        (folder / "part-0.parquet").write_bytes(b"x" * 10)
    return str(tmp_path / "orders")


class Driver:
    """Stands in for spark-submit: keeps the manifests, and says of steps with ``rows`` how many they made."""

    def __init__(self, rows: dict[str, int]) -> None:
        self.manifests: list[dict[str, Any]] = []
        self._rows = rows

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
        self.manifests.append(manifest)
        events: list[Event] = [Started("app"), *map(StepRunning, manifest["targets"])]
        events += [StepDone(name, "success", rows=self._rows.get(name), seconds=1.0) for name in manifest["targets"]]
        on_line(encode_marker(env[ENV_NONCE], 1, [*events, Finished(True, 2.0)]))

    def step(self, name: str) -> dict[str, Any]:
        (found,) = (step for each in self.manifests for step in each["steps"] if step["id"] == name)
        return dict(found)


def run(
    launch: LaunchOperator, folder: Path, interval: Interval = DAY, *, feeds: Sequence[Feed] = (), **conf: Any
) -> tuple[dict[str, Any], Driver, Feed]:
    """One try of ``launch``: what it returns, its driver, its feed."""
    driver = Driver({})
    launch.submit = driver.submit  # type: ignore[method-assign]
    facts = RunFacts(
        dag_id="sales", run_id="r", try_id=TryId(try_number=1), began=0.0, conf={"dagsched": conf},
        interval=interval, context={}, states={}, skipped={}, feeds={str(at): feed for at, feed in enumerate(feeds)},
    )  # fmt: skip
    follower = Follower(Feed("n"), lambda *_: None, lambda *_: None, lambda *_: None)
    group = Attempt(launch, {}, facts, follower, Memory(folder / "run"), folder / "run", (folder,))
    return run_attempt(group), driver, follower.feed


def flow_of(table: str, folder: Path, *, where: str | None = "day = interval.start", **more: Any) -> SparkDataflow:
    """read ══> clean ══> total, a count of all"""
    with SparkDataflow("f", work_dir=str(folder / "work"), **more) as flow:

        @task.spark_step(reads=Table(table, where=where), works_without_input=False, parallelism=2)
        def read(spark):
            return spark.read.parquet(table)

        @task.spark_step(works_without_input=False)
        def clean(rows):
            return rows

        SparkSqlStep("total", sql="select count(*) as n from clean", inputs=[clean(read())])
    return flow


def launch_of(flow: SparkDataflow) -> LaunchOperator:
    (launch,) = flow.launches()
    return launch


def test_the_driver_is_told_the_day(dag: DAG, table: str, tmp_path: Path) -> None:
    result, driver, _ = run(launch_of(flow_of(table, tmp_path)), tmp_path)
    assert driver.step("read")["needed"] == {table: {"folders": ["day=2013-01-02"], "no_rows": False}}
    assert [driver.step(name)["pruned"] for name in ("read", "clean", "total")] == ["", "", ""]
    assert result["pruned"] == {}


def test_a_day_without_rows_is_still_counted(dag: DAG, table: str, tmp_path: Path) -> None:
    """read and clean have nothing to do; total counts, and needs clean's columns: of some other day"""
    _, driver, _ = run(launch_of(flow_of(table, tmp_path)), tmp_path, SUNDAY)
    assert driver.step("read")["needed"] == {table: {"folders": ["day=2013-01-01"], "no_rows": True}}
    assert driver.step("read")["pruned"] == f"no work without input: nothing in {table} matches day = '{SUNDAY.start}'"
    assert driver.step("clean")["pruned"] == "no work without input: step 'read' has nothing to do"
    assert driver.step("total")["pruned"] == ""


def test_nothing_left_starts_nothing(dag: DAG, table: str, tmp_path: Path) -> None:
    """(no such day) ──> read ══> grouped, in SQL: it writes nothing; not even the table of rates is read"""
    with SparkDataflow("f", work_dir=str(tmp_path / "work")) as flow:

        @task.spark_step(reads=Table(table, where="day = interval.start"), works_without_input=False)
        def read(spark):
            return spark.read.parquet(table)

        @task.spark_step(reads=Table(table), works_without_input=False)
        def rates(spark):
            return spark.read.parquet(table)

        SparkSqlStep(
            "grouped",
            sql="select day, count(*) as n from read join rates using (day) group by day",
            inputs=[read(), rates()],
            writes=Table(f"{tmp_path}/out", partition_by=["day"]),
        )
    result, driver, feed = run(launch_of(flow), tmp_path, SUNDAY)
    assert (driver.manifests, result["applications"]) == ([], 0)
    assert [done.state for done in feed.steps.values()] == ["pruned"] * 3
    assert result["pruned"]["rates"] == "all that read its rows have nothing to do: grouped"


@pytest.mark.parametrize(("mode", "told"), [("declared", True), ("analysed", True), ("auto", True), (False, False)])
def test_modes(dag: DAG, table: str, tmp_path: Path, mode: Any, told: bool) -> None:
    _, driver, _ = run(launch_of(flow_of(table, tmp_path, prune=mode)), tmp_path)
    assert bool(driver.step("read")["needed"]) == told


def test_the_run_may_say_what_it_reads(dag: DAG, table: str, tmp_path: Path) -> None:
    launch = launch_of(flow_of(table, tmp_path, where=None))
    _, driver, _ = run(launch, tmp_path, where={f"{table}/": "day >= '2013-01-02'"})
    assert driver.step("read")["needed"][table]["folders"] == ["day=2013-01-02", "day=2013-01-03"]


def test_a_condition_on_nothing_is_refused(dag: DAG, table: str, tmp_path: Path) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(AirflowFailException, match="is no condition on a declared read; there are"):
        run(launch_of(flow_of(table, tmp_path)), tmp_path, where={"/typo": "day = 1"})


def test_what_cannot_be_listed_is_left_to_spark(dag: DAG, tmp_path: Path) -> None:
    _, driver, _ = run(launch_of(flow_of("unknown://orders/x", tmp_path)), tmp_path)
    assert driver.step("read")["needed"] == {}


def test_a_type_that_would_change_is_left_to_spark(dag: DAG, table: str, tmp_path: Path) -> None:
    """day=all makes the column text; without it Spark would read dates."""
    (Path(table) / "day=all").mkdir()
    (Path(table) / "day=all" / "part-0.parquet").write_bytes(b"x")
    _, driver, _ = run(launch_of(flow_of(table, tmp_path, where="day = '2013-01-02'")), tmp_path)
    assert driver.step("read")["needed"] == {}


@pytest.mark.parametrize("records", [".dagsched-out/commits", "work/commits/{}"], ids=["beside", "work dir"])
def test_rows_of_an_earlier_run_are_written_over(dag: DAG, table: str, tmp_path: Path, records: str) -> None:
    """The day was there once, and read's table has its rows: an empty day has to take them out."""
    with SparkDataflow("f", work_dir=str(tmp_path / "work")) as flow:
        reads, writes = Table(table, where="day = interval.start"), Table(f"{tmp_path}/out", partition_by=["day"])

        @task.spark_step(reads=reads, writes=writes, works_without_input=False)
        def copy(spark):
            return spark.read.parquet(table)

        copy()
    assert run(launch_of(flow), tmp_path, SUNDAY)[0]["applications"] == 0
    record = tmp_path / records.format(escape_key(f"{tmp_path}/out")) / escape_key(SUNDAY.key) / "0000000001.json"
    record.parent.mkdir(parents=True)
    record.touch()
    assert run(launch_of(flow), tmp_path, SUNDAY)[0]["applications"] == 1


def test_an_earlier_group_left_nothing(dag: DAG, tmp_path: Path) -> None:
    """read ──> (t) ──> follow: two groups; read has no row, or was pruned"""
    with SparkDataflow("f", work_dir=str(tmp_path / "work")) as flow:

        @task.spark_step
        def read(spark):
            return spark.range(0)

        @task.spark_step(works_without_input=False)
        def follow(rows):
            return rows

        @task
        def between():
            """Nothing."""

        rows = read()
        after = between()
        rows >> after
        after >> follow(rows)
    second = next(launch for launch in flow.launches() if launch.group.steps == ("follow",))
    some, none = (Feed("n").add([StepDone("read", "success", rows=rows)]) for rows in (3, 0))
    pruned = Feed("n").add([StepDone("read", "pruned", reason="no work without input")])
    assert run(second, tmp_path, feeds=[some])[0]["applications"] == 1
    for feed in (none, pruned):
        result, _, _ = run(second, tmp_path, feeds=[feed])
        assert result["pruned"] == {"follow": "no work without input: read/ has no rows"}


def test_bad_settings_are_refused(dag: DAG) -> None:
    for name, setting in (("f", {"prune": "all"}), ("g", {"pruned": "green"})):
        with pytest.raises(InvalidInput, match="must be"):
            SparkDataflow(name, **setting)  # type: ignore[arg-type]


def test_a_store_that_does_not_answer_is_read_as_a_whole(
    dag: DAG, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As a mount whose server is gone: the launch waits as long as the connection says, then goes on."""
    raw = {"conn_type": "spark", "host": "local[2]", "extra": {"answer_within_s": 0.1}}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(raw))
    back = threading.Event()

    def children(self: FileLister, folder: str) -> list[Entry]:
        back.wait()
        return []

    monkeypatch.setattr(FileLister, "list_children", children)
    with caplog.at_level(logging.WARNING):
        result, driver, _ = run(launch_of(flow_of(table, tmp_path)), tmp_path)
    back.set()
    assert (driver.step("read")["needed"], result["pruned"]) == ({}, {})
    why = f"{table} gave no answer we can read: no whole answer came within 0.1 s"
    assert caplog.text.count(f"nothing is left out of {table}: {why}") == 1
