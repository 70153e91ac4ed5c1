"""A stream without Airflow: an epoch's folder made by hand, its driver as a process, its log as it grows.

::

    Flow(folder)   source/000000.parquet ..     ask(Graph(..)) ── epochs/<folder>/private/, "epoch" in the log
                   work/streams/dag/clicks/log   start()        ── spark-submit, as a launch task starts it
                   table/*.parquet               wait_for(..)   ── until the log says so
"""

from __future__ import annotations

import os
import signal
import sys
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import airflow_dagsched
from airflow_dagsched.launch.protocol.calls import Handed, Output
from airflow_dagsched.launch.protocol.identity import TryId
from airflow_dagsched.launch.protocol.manifest import StepSpec
from airflow_dagsched.launch.protocol.payload import Call
from airflow_dagsched.launch.protocol.tables import Table
from airflow_dagsched.launch.streams.manifest import QuerySpec, SourceSpec, StreamManifest, find_routed
from airflow_dagsched.launch.streams.private_folder import StartCommand, make_payload, write_private_folder
from airflow_dagsched.launch.streams.settings import StreamSettings
from airflow_dagsched.provider.streaming.start_driver import start_detached
from airflow_dagsched.provider.submission.payload import pickle_calls
from airflow_dagsched.spark.streams.carry.handed import read_handed
from airflow_dagsched.switch.advising.advice import Wanted
from airflow_dagsched.switch.log.executor import Executor
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.places import EpochPlaces, FlowPlaces, name_flow
from airflow_dagsched.switch.records import Aborted, Batch, Epoch, Record, Started, Stopped
from airflow_dagsched.switch.state import State
from airflow_dagsched.version import __version__
from tests.streams.rows import DDL, Row, Rows, add_file

ROOT = Path(airflow_dagsched.__file__).parents[1]
PROGRAM = ROOT / "airflow_dagsched" / "spark" / "stream_driver" / "main.py"
DAG, FLOW = "dag", "clicks"
SOURCE, STEP, QUERY = "clicks", "by_user", "out"
"""Steps of the graph: a source, windowed sums, the step that writes them."""
SMALL = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.driver.memory": "700m",
    "spark.log.level": "WARN",
}
DEADLINE_S = 180.0
"""For whatever a test waits for; only a failure takes so long."""
POLL_S = 0.05
REAPED = 255
"""Exit code of a driver whose end the start of another has noticed: each start asks for those before."""


def read_clicks(rows: Any) -> Any:
    return rows


def sum_by_user(clicks: Any) -> Any:
    from pyspark.sql.functions import count, sum, window  # noqa: A004

    sums = (count("*").alias("rows"), sum("clicks").alias("clicks"), sum("amount").alias("amount"))
    return clicks.groupBy(window("ts", "10 seconds"), "user").agg(*sums)


def write_sums(by_user: Any) -> Any:
    return by_user


@dataclass(frozen=True)
class Graph:
    """What an epoch of the flow runs."""

    code: str = "first"
    """Stands for the fingerprint."""
    sums: Callable[[Any], Any] = sum_by_user
    partitions: int = 2
    files_per_batch: int = 1
    settings: StreamSettings = field(default_factory=lambda: StreamSettings(10.0, 5.0, 0.2))
    conf: Mapping[str, str] = field(default_factory=dict)
    """Of the application."""
    session: Mapping[str, str] = field(default_factory=dict)
    """Of the graph's own session."""
    carries: tuple[str, ...] = ()
    """States that go on in the next graph."""
    sink: Callable[[Any, str], Any] | None = None
    """Gets the sums; None: they are the table's."""
    sources: tuple[str, ...] = (SOURCE,)


class Flow:
    """A flow with one source, one table and everything else below one folder."""

    def __init__(self, folder: Path) -> None:
        self.source, self.table, self.work_dir = folder / "source", folder / "table", folder / "work"
        self.places: FlowPlaces = name_flow(self.work_dir, DAG, FLOW)
        self.source.mkdir()
        self.work_dir.mkdir()
        self._log = FlowLog(self.places.log)
        self.records: list[Record] = []
        """All that has been read so far."""

    def ask(self, graph: Graph) -> EpochPlaces:
        """Make the folder of a new epoch, and ask for it: it is in the log then, and nothing runs."""
        places = self.make_epoch(graph)
        self.ask_for(places, graph)
        return places

    def make_epoch(self, graph: Graph) -> EpochPlaces:
        """Make the folder of an epoch that nobody asks for yet."""
        places = self.places.name_epoch(uuid.uuid4().hex[:8])
        for name in graph.sources:
            self.name_source(name).mkdir(exist_ok=True)
        self._make_private_folder(places, graph)
        if graph.settings.channel == "inbox" and not self.places.inbox_service.private.exists():
            self._make_private_folder(self.places.inbox_service, graph)
        return places

    def ask_for(self, places: EpochPlaces, graph: Graph) -> None:
        """Ask for the epoch of this folder, until it is in the log."""
        settings = graph.settings
        wanted = Wanted(
            graph.code, f"run of {graph.code}", places.folder.name, {QUERY: graph.sources}, settings.window_s,
            channel=settings.channel, overlap=settings.overlap, confirm=settings.confirm, order=settings.order,
            max_ahead=settings.max_ahead_s, reach=settings.reach_s, standbys=settings.standbys,
            sources=dict.fromkeys(graph.sources, "read_clicks"),
        )  # fmt: skip
        executor = Executor(self.places.folder, {})

        def is_asked() -> bool:
            executor.step(wanted)
            return any(each.record.x_folder == wanted.folder for each in executor.log.story.epochs.values())

        wait_until(is_asked, lambda: f"asked for {wanted}")

    def name_source(self, name: str) -> Path:
        """Folder with the files of a source."""
        return self.source if name == SOURCE else self.source.with_name(name)

    def _make_private_folder(self, places: EpochPlaces, graph: Graph) -> None:
        manifest = make_manifest(self, places, graph)
        if places == self.places.inbox_service:
            manifest = find_routed(manifest)
        calls = {
            **{name: Call(read_clicks, (Handed("rows"),)) for name in graph.sources},
            STEP: Call(graph.sums, tuple(map(Output, graph.sources))),
            QUERY: make_call(graph),
        }
        payload = make_payload(manifest, pickle_calls(DAG, calls, (Path(__file__).parents[1],)))
        lines = "".join(f"{key}={value}\n" for key, value in {**SMALL, **graph.conf}.items())
        submit = str(Path(sys.executable).with_name("spark-submit"))
        file = str(places.private / "spark.properties")
        argv = (submit, "--properties-file", file, str(PROGRAM), str(places.folder))
        environment = {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
        write_private_folder(places.private, payload, lines, StartCommand(argv, str(self.work_dir), environment))

    @contextmanager
    def run(self, places: EpochPlaces) -> Iterator[Driver]:
        """A driver of the epoch, which is killed at the end if it still runs."""
        driver = Driver(self, places, start_detached(places, self.work_dir))
        try:
            yield driver
        finally:
            driver.kill()

    @contextmanager
    def pause(self, places: EpochPlaces, state: State) -> Iterator[None]:
        """Nothing is advanced in this state, as long as the epoch is the newest."""
        order = places.orders / f"pause-{state}.json"
        order.parent.mkdir(exist_ok=True)
        order.touch()
        try:
            yield
        finally:
            order.unlink()

    def read(self) -> list[Record]:
        """All records until now."""
        self.records += self._log.read()
        return self.records

    def list_batches(self, epoch: int) -> list[Batch]:
        """Records of the batches of an epoch until now."""
        return [each for each in self.read() if isinstance(each, Batch) and each.epoch == epoch]

    def list_running(self) -> list[int]:
        """Epochs whose queries run, by the log."""
        last = {each.epoch: each for each in self.read() if isinstance(each, Started | Stopped | Aborted)}
        return [epoch for epoch, each in last.items() if isinstance(each, Started)]

    def find_watermark(self, epoch: int) -> float:
        """That the last batch of the epoch began with: all windows that end up to it are recorded."""
        return max((each.watermark for each in self.list_batches(epoch)), default=0.0)

    def has_read(self, epoch: int, watermark: float, lateness_s: float) -> bool:
        """Whether the epoch has read, or was handed with its state, all rows that make this watermark."""
        return max(self.find_watermark(epoch), self._find_handed(epoch) - lateness_s) >= watermark

    def _find_handed(self, epoch: int) -> float:
        """Newest event time of what it was handed: it says nothing of that until more comes."""
        [record] = [each for each in self.read() if isinstance(each, Epoch) and each.epoch == epoch]
        folder = self.places.name_epoch(record.x_folder).name_query(QUERY) / "carried"
        moments = read_handed(folder).newest.values() if folder.exists() else ()
        return max((each for each in moments if each is not None), default=0.0)


class Feed:
    """Adds files to the source as long as a test waits, when all graphs that run have read those before: the source is
    never far ahead of them, and never idle.
    """

    def __init__(self, flow: Flow, rows: Rows, most: int = 300) -> None:
        self.given: list[Row] = []
        """All rows so far."""
        self._flow = flow
        self._lateness_s = rows.lateness_s
        self._files = iter(rows.draw(most))
        self._due = 0.0
        """Watermark of a graph that has read all files, in seconds since 1970."""

    def until(self, is_reached: Callable[[], bool], readers: Collection[int] = ()) -> Callable[[], bool]:
        """What a driver is waited for with: it feeds.

        :param readers: epochs that have to have read what is there; by default all that run.
        """

        def is_over() -> bool:
            self.go_on(readers)
            return is_reached()

        return is_over

    def go_on(self, readers: Collection[int] = ()) -> None:
        """Add a file, if all have been read."""
        running = readers or self._flow.list_running()
        if not self.given or (running and all(self._has_read(each) for each in running)):
            self.add()

    def _has_read(self, epoch: int) -> bool:
        return self._flow.has_read(epoch, self._due, self._lateness_s)

    def add(self) -> None:
        file = next(self._files)
        self.given += file
        add_file(self._flow.source, file)
        # Watermarks are in whole milliseconds.
        self._due = max(row.at for row in self.given) // 1000 / 1000 - self._lateness_s


class Driver:
    """A driver program of an epoch: a process group of its own, with Java and Python in it."""

    def __init__(self, flow: Flow, places: EpochPlaces, pid: int) -> None:
        self.pid = pid
        self.code: int | None = None
        """Exit code, once it has ended; negative: the signal that ended it."""
        self._flow = flow
        self._places = places

    def wait_for(self, is_reached: Callable[[], bool], within_s: float = DEADLINE_S) -> None:
        """Until the log, or whatever is looked at, says so; at once an error if the driver ends before."""

        def is_over() -> bool:
            reached = is_reached()
            assert reached or self.is_alive(), f"the driver has ended with {self.code}:\n{self.read_output()}"
            return reached

        wait_until(is_over, self.read_output, within_s)

    def is_alive(self) -> bool:
        if self.code is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                self.code = os.waitstatus_to_exitcode(status) if pid else None
            except ChildProcessError:
                self.code = REAPED
        return self.code is None

    def kill(self) -> None:
        """As ``kill -9`` of all its processes: nothing of it does anything after this."""
        if self.is_alive():
            os.killpg(self.pid, signal.SIGKILL)
            wait_until(lambda: not self.is_alive(), self.read_output)

    def stop(self) -> int:
        """Ask it to end after its batch; its exit code."""
        os.kill(self.pid, signal.SIGTERM)
        wait_until(lambda: not self.is_alive(), self.read_output)
        assert self.code is not None
        return self.code

    def read_output(self) -> str:
        """The end of what it has printed."""
        return self._places.output.read_text(errors="replace")[-6000:]


def wait_until(is_so: Callable[[], bool], tell: Callable[[], str], within_s: float = DEADLINE_S) -> None:
    """Look again and again; an error with what ``tell`` says at the deadline."""
    deadline = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < deadline, f"it did not come about in {within_s} s:\n{tell()}"
        time.sleep(POLL_S)


def make_call(graph: Graph) -> Call:
    """The last step's."""
    handed = {"key": Handed("key")} if graph.sink else {}
    return Call(graph.sink or write_sums, (Output(STEP),), handed)


def make_manifest(flow: Flow, places: EpochPlaces, graph: Graph) -> StreamManifest:
    """Of an epoch that sums rows by window and user."""
    table = None if graph.sink else Table(str(flow.table), mode="append")
    steps = (
        *(StepSpec(name, graph.code) for name in graph.sources),
        StepSpec(STEP, graph.code, tuple(map(Output, graph.sources)), graph.sources),
        StepSpec(QUERY, graph.code, (Output(STEP),), (STEP,), writes=table),
    )
    options = {"maxFilesPerTrigger": str(graph.files_per_batch)}
    return StreamManifest(
        package_version=__version__,
        python=f"{sys.version_info.major}.{sys.version_info.minor}",
        dag_id=DAG,
        flow=FLOW,
        work_dir=str(flow.work_dir),
        folder=places.folder.name,
        fingerprint=graph.code,
        run_id=f"run of {graph.code}",
        try_id=TryId("", 0, 1),
        steps=steps,
        sources=tuple(
            SourceSpec(name, "parquet", "ts", f"file:{flow.name_source(name)}", DDL, options) for name in graph.sources
        ),
        queries=(QuerySpec(QUERY, table, graph.partitions, stateful=1, carries=graph.carries),),
        settings=graph.settings,
        session={"spark.sql.session.timeZone": "UTC", **graph.session},
        application=graph.conf,
    )
