"""A stream in a real Airflow, with a real Spark: its driver outlives the task, mirrors wait without a worker, and the
stream ends with the task when a person says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.log.signs_files import read_sign
from airflow_dagsched.switch.places import EpochPlaces, FlowPlaces, name_flow
from airflow_dagsched.switch.story import Story
from demo.rest import Run, until
from demo.standalone import AirflowStandalone
from tests.streams.rows import DDL, NO_DIFFERENCE, Row, Rows, add_file, compare, read_table, sum_windows
from tests.system.lab import PATIENCE_S, Lab, gone

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.spark, pytest.mark.airflow]

CLICKS = """
import os
from airflow.sdk import DAG, task
from pyspark.sql import functions as F

from airflow_dagsched import SparkDataflow, Table

HOME = os.environ["AIRFLOW_HOME"]

with DAG("clicks", schedule=None, max_active_runs=3, catchup=False):
    with SparkDataflow(
        "clicks", mode="streaming", window="10 seconds", lateness="5 seconds", trigger="1 second",
        work_dir=f"{HOME}/work", driver_memory="700m", max_ahead="3650 days",
    ):
        # A file a batch: which rows come too late is known then.
        @task.spark_stream_source(
            format="parquet", path=f"{HOME}/source", event_time="ts", schema="SCHEMA",
            options={"maxFilesPerTrigger": "1"},
        )
        def clicks(rows):
            return rows

        @task.spark_step(stateful=True, parallelism=2)
        def by_user(clicks):
            sums = (F.count("*").alias("rows"), F.sum("clicks").alias("clicks"), F.sum("amount").alias("amount"))
            return clicks.groupBy(F.window("ts", "10 seconds"), "user").agg(*sums)

        @task.spark_step(writes=Table(f"{HOME}/tables/by_user", mode="append"))
        def out(by_user):
            return by_user

        out(by_user(clicks()))
""".replace("SCHEMA", DDL)
LAUNCH = "clicks.launch"
MIRRORS = ("clicks.clicks", "clicks.by_user", "clicks.out")
ROWS = Rows()


class Stream:
    """The only stream of an Airflow, from outside."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.flow: FlowPlaces = name_flow(lab.home / "work", "clicks", "clicks")
        self.files = iter(ROWS.draw(200))
        self.rows: list[Row] = []

    def feed(self, files: int) -> None:
        for _ in range(files):
            rows = next(self.files)
            add_file(self.lab.home / "source", rows)
            self.rows += rows

    @property
    def story(self) -> Story:
        log = FlowLog(self.flow.log)
        log.read()
        return log.story

    def locate(self, epoch: int) -> EpochPlaces:
        return self.flow.name_epoch(self.story.epochs[epoch].record.x_folder)

    def count_batches(self) -> int:
        epoch = self.story.epochs.get(1)
        return 0 if epoch is None or "out" not in epoch.queries else epoch.queries["out"].last.batch + 1

    def wait(self, what: str, is_so: Callable[[], bool]) -> None:
        until(what, lambda: is_so() or None, PATIENCE_S)

    def goes_on(self) -> None:
        """Rows come, and are taken."""
        before = self.count_batches()
        self.feed(2)
        self.wait("another batch", lambda: self.count_batches() > before)

    def driver(self) -> psutil.Process:
        sign = read_sign(self.locate(1))
        assert sign is not None
        return psutil.Process(sign.pid)

    def wait_stopped(self, driver: psutil.Process) -> None:
        assert gone([driver], PATIENCE_S)
        self.wait("the record of the stop", lambda: self.story.epochs[1].stopped is not None)


@pytest.fixture
def stream(tmp_path: Path) -> Iterator[Stream]:
    home, dags = tmp_path / "home", tmp_path / "dags"
    dags.mkdir()
    (dags / "clicks_dag.py").write_text(CLICKS)
    with AirflowStandalone(home, dags, master="local[2]") as airflow:
        yield Stream(Lab(airflow))


def start(stream: Stream) -> Run:
    stream.feed(4)
    run = stream.lab.start("clicks")
    stream.lab.until_state(run, LAUNCH, "deferred", "failed")
    assert stream.lab.states(run)[LAUNCH] == "deferred", stream.lab.last_log(run, LAUNCH)
    return run


def test_the_driver_outlives_its_task_and_ends_with_a_person_s_word(stream: Stream) -> None:
    lab, run = stream.lab, start(stream)
    stream.wait("a batch", lambda: stream.count_batches() > 0)
    for mirror in MIRRORS:
        lab.until_state(run, mirror, "deferred")
    driver = stream.driver()
    assert lab.home not in [Path(each.cwd()) for each in driver.parents() if each.pid == lab.airflow.pid]
    stream.goes_on()

    # Cleared: it stops after its batch, and goes on from its checkpoints.
    lab.client.clear(run, [LAUNCH])
    assert gone([driver], PATIENCE_S)
    lab.until_state(run, LAUNCH, "deferred")
    stream.wait("another driver", lambda: stream.story.epochs[1].stopped is None)
    stream.goes_on()
    second = stream.driver()
    assert second.pid != driver.pid

    # Lost: started again by the trigger's word, with no try used.
    tries = {each["task_id"]: each["try_number"] for each in lab.client.task_instances(run)}[LAUNCH]
    second.kill()
    stream.wait("a third driver", lambda: stream.story.epochs[1].started.x_pid not in (0, second.pid))  # type: ignore[union-attr]
    stream.goes_on()
    assert {each["task_id"]: each["try_number"] for each in lab.client.task_instances(run)}[LAUNCH] == tries

    # Marked failed: it stops, and so do its mirrors.
    third = stream.driver()
    lab.client.set_state(run, LAUNCH, "failed")
    stream.wait_stopped(third)
    for mirror in MIRRORS:
        lab.until_state(run, mirror, "failed")
    watermark = stream.story.epochs[1].queries["out"].last.watermark
    expected = sum_windows(stream.rows, ROWS.window_s, upto=watermark)
    assert compare(expected, read_table(lab.home / "tables" / "by_user")) == NO_DIFFERENCE
