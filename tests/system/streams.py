"""A stream in a real Airflow, from outside: its DAG file, its rows, its log, its driver programs, its table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from airflow_dagsched.switch.checking.check_log import check_log
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.places import FlowPlaces, name_flow
from airflow_dagsched.switch.records import Stopped
from airflow_dagsched.switch.story import EpochStory, Story
from demo import processes
from demo.rest import Run, until
from demo.standalone import AirflowStandalone
from tests.streams.rows import DDL, NO_DIFFERENCE, Row, Rows, Sums, add_file, compare, read_table, sum_windows
from tests.system.lab import PATIENCE_S, Lab, gone

CLICKS = """
import os
from airflow.sdk import DAG, task
from pyspark.sql import functions as F

from airflow_dagsched import SparkDataflow, StreamEpochs, Table

HOME = os.environ["AIRFLOW_HOME"]

with DAG("clicks", schedule=None, max_active_runs=3, catchup=False):
    with SparkDataflow(
        "clicks", mode="streaming", window="10 seconds", lateness="5 seconds", trigger="1 second",
        work_dir=f"{HOME}/work", driver_memory="700m", max_ahead="3650 days", retries=1, retry_delay=1.0,
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
FILES = 3000
"""More than a test takes, however long the machine makes it wait."""


def keep_all(row: Row) -> bool:
    """No filter."""
    return True


class Stream:
    """The only stream of an Airflow."""

    def __init__(self, lab: Lab, dag_file: Path) -> None:
        self.lab, self.dag_file = lab, dag_file
        self.flow: FlowPlaces = name_flow(lab.home / "work", "clicks", "clicks")
        self.files = iter(ROWS.draw(FILES))
        self.rows: list[Row] = []
        self._newest = 0

    @property
    def story(self) -> Story:
        log = FlowLog(self.flow.log)
        log.read()
        return log.story

    # What is done to it

    def start(self) -> Run:
        """A run, whose launch task is deferred."""
        self.feed(4)
        run = self.lab.start("clicks")
        self.lab.until_state(run, LAUNCH, "deferred", "failed")
        assert self.lab.states(run)[LAUNCH] == "deferred", self.lab.last_log(run, LAUNCH)
        return run

    def feed(self, files: int) -> None:
        """Add as many files to the source."""
        for _ in range(files):
            rows = next(self.files)
            add_file(self.lab.home / "source", rows)
            self.rows += rows
            self._newest = max(self._newest, *(row.at for row in rows))

    def edit(self, old: str, new: str) -> None:
        """Write the DAG file anew, as a deploy does."""
        text = self.dag_file.read_text()
        assert old in text
        self.dag_file.write_text(text.replace(old, new))

    def stop(self) -> None:
        """By a person's word; returns when no driver is left."""
        done = self.lab.airflow.cli("dagsched", "stream", "stop", "clicks", "--reason", "the test ends")
        assert done.returncode == 0, done.stderr
        self.wait("the record of the stop", lambda: self.owner.stopped is not None)
        self.wait("the end of the drivers", lambda: not self.find_drivers())

    # What is waited for

    def wait(self, what: str, is_so: Callable[[], bool]) -> None:
        """Without new rows."""
        until(what, lambda: is_so() or None, PATIENCE_S)

    def flow_until(self, what: str, is_so: Callable[[], bool]) -> None:
        """While rows come: a file when those before it have been read, by the new graph, too: else that may be slower
        than the source, and never take over.
        """

        def look() -> bool | None:
            if self._is_read():
                self.feed(1)
            return is_so() or None

        self.feed(1)
        until(what, look, PATIENCE_S)

    def _is_read(self) -> bool:
        """Whether each graph that has read anything has read all there is."""
        living = [each for each in self.story.epochs.values() if not each.has_ended and each.stopped is None]
        marks = [each.queries["out"].last.watermark for each in living if "out" in each.queries]
        # Watermarks are in whole milliseconds.
        due = self._newest // 1000 / 1000 - ROWS.lateness_s
        return all(mark >= due for mark in marks if mark > 0)

    def goes_on(self) -> None:
        """Rows come, and are taken."""
        before = self.count_batches()
        self.feed(2)
        self.wait("another batch", lambda: self.count_batches() > before)

    # What there is

    @property
    def owner(self) -> EpochStory:
        """The graph whose windows are the newest in the table."""
        old = self.story.old
        assert old is not None
        return old

    def count_batches(self) -> int:
        """Of the owner, its repeated ones once."""
        old = self.story.old or self.story.epochs.get(1)
        return 0 if old is None or "out" not in old.queries else old.queries["out"].last.batch + 1

    def find_run(self, epoch: int) -> Run:
        """The run that asked for the epoch."""
        return Run("clicks", self.story.epochs[epoch].record.run_id)

    def find_drivers(self) -> list[psutil.Process]:
        """Living driver programs: each leads a session of its own, whatever runs in it."""
        return [each for each in _list_named(str(self.flow.folder / "epochs")) if os.getsid(each.pid) == each.pid]

    def count_tries(self, run: Run) -> int:
        """Tries of the launch task that were begun."""
        tries = {each["task_id"]: each["try_number"] for each in self.lab.client.task_instances(run)}
        return int(tries[LAUNCH])

    def tell_status(self) -> str:
        """As a person sees it."""
        done = self.lab.airflow.cli("dagsched", "stream", "status", "clicks")
        assert done.returncode == 0, done.stderr
        return done.stdout

    def prove_table(self, keep: Mapping[int, Callable[[Row], bool]] | None = None) -> None:
        """Each window that was closed is in the table once, by the graph that owns it, and the log says the same.

        :param keep: epoch -> the filter of its graph, where it has one.
        """
        expected: dict[tuple[int, str], Sums] = {}
        for number, epoch in self.story.epochs.items():
            if epoch.aborted is None:
                after = epoch.into.upto if epoch.into else float("-inf")
                upto = epoch.out.upto if epoch.out else epoch.queries["out"].last.watermark
                rule = (keep or {}).get(number, keep_all)
                expected.update(sum_windows(self.rows, ROWS.window_s, after, upto, rule))
        assert compare(expected, read_table(self.lab.home / "tables" / "by_user")) == NO_DIFFERENCE
        assert check_log(self.flow.log).violations == ()


def wait_stopped(stream: Stream, epoch: int, drivers: list[psutil.Process]) -> Stopped:
    """The record of the epoch's end, when these drivers are gone."""
    assert gone(drivers, PATIENCE_S)
    return until("the record of the stop", lambda: stream.story.epochs[epoch].stopped, PATIENCE_S)


def _list_named(prefix: str) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            is_named = any(argument.startswith(prefix) for argument in process.cmdline())
            if is_named and process.status() != psutil.STATUS_ZOMBIE:
                yield process


@contextmanager
def open_stream(folder: Path, env: Mapping[str, str] | None = None, **more: str) -> Iterator[Stream]:
    """An Airflow with the stream in it; all drivers are gone in the end.

    :param more: DAG files beside the stream's, by name.
    """
    home, dags = folder / "home", folder / "dags"
    dags.mkdir()
    for name, text in {"clicks_dag": CLICKS, **more}.items():
        (dags / f"{name}.py").write_text(text)
    with (
        processes.ended_at_exit(str(home / "work")),
        AirflowStandalone(home, dags, master="local[2]", env=env, ready_timeout_s=PATIENCE_S) as airflow,
    ):
        yield Stream(Lab(airflow), dags / "clicks_dag.py")
