"""Drivers of one query that share a table of files and a log, without Spark: each does one change at a time.

A batch is the windows of its rows, one row each. What is real: sink, mover, store, log. Only the writer is plain: a
window is a file.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from pyspark.sql.types import StructType

from airflow_dagsched.spark.files.clock import MACHINE, Clock
from airflow_dagsched.spark.files.store import Fence, LocalStore, join_path, walk_files
from airflow_dagsched.spark.outputs.locks import FencedStore
from airflow_dagsched.spark.outputs.swap import list_draft_files
from airflow_dagsched.spark.outputs.table_checks import check_draft, check_way_in, make_durable
from airflow_dagsched.spark.streams.draft_writer import Draft
from airflow_dagsched.spark.streams.drafts import NEW, place_beside
from airflow_dagsched.spark.streams.mover import make_swap, move_files
from airflow_dagsched.spark.streams.sink import BatchBegin, StreamSink
from airflow_dagsched.switch.comparing.summary import Summaries, Summary
from airflow_dagsched.switch.judgement import Judgement
from airflow_dagsched.switch.records import Batch
from tests.spark.streams.flow import Flow


class Crashed(BaseException):
    """The driver is gone."""


class SteppedStore(LocalStore):
    """The files of a driver: ``step`` is called before each change."""

    def __init__(self, step: Callable[[], None], has_locks: bool) -> None:
        self.step, self.has_locks = step, has_locks

    def lock(self, path: str) -> AbstractContextManager[Fence] | None:
        return super().lock(path) if self.has_locks else None

    def create_exclusive(self, path: str, text: str) -> bool:
        self.step()
        return super().create_exclusive(path, text)

    def write_text(self, path: str, text: str) -> None:
        self.step()
        super().write_text(path, text)

    def mkdirs(self, path: str) -> None:
        self.step()
        super().mkdirs(path)

    def rename(self, source: str, target: str) -> None:
        self.step()
        super().rename(source, target)

    def delete(self, path: str) -> None:
        self.step()
        super().delete(path)

    def sync(self, paths: tuple[str, ...]) -> None:
        self.step()
        super().sync(paths)


class WindowWriter:
    """Writes windows, each as a file of its name, in a folder of its day."""

    def __init__(self, store: SteppedStore) -> None:
        self.store = store

    def write(self, df: Any, folder: str) -> Draft:
        for window in df:
            self.store.write_text(join_path(folder, NEW, _name_file(window, folder)), "")
        self.store.mkdirs(join_path(folder, NEW))
        return self._describe(Draft(folder, StructType()))

    def narrow(self, draft: Draft, judged: Judgement) -> Draft:
        for path, _ in draft.files:
            window = read_window(path)
            if (judged.after is not None and window <= judged.after) or (
                judged.upto is not None and window > judged.upto
            ):
                self.store.delete(join_path(draft.folder, NEW, path))
        return self._describe(draft)

    def condense(self, draft: Draft) -> Summaries:
        return {read_window(path): Summary(1) for path, _ in draft.files}

    def execute(self, df: Any) -> None:
        pass

    def _describe(self, draft: Draft) -> Draft:
        files = list_draft_files(self.store, draft.folder)
        windows = [read_window(path) for path, _ in files]
        return replace(
            draft, rows=len(windows), first=min(windows, default=None), last=max(windows, default=None), files=files
        )


class WindowTarget:
    """A table of such files."""

    def __init__(self, store: SteppedStore, table: str, flow: Flow) -> None:
        self.store, self.table = store, table
        self.place = place_beside(table, flow.places)
        self.writer = WindowWriter(store)

    def prepare(self, draft: Draft) -> None:
        swap = make_swap(self.table, draft.folder, tuple(path for path, _ in draft.files))
        check_draft(self.store, swap, draft.files)
        check_way_in(self.store, swap)
        make_durable(self.store, draft.files, draft.folder, self.place.top)

    def deliver(self, store: FencedStore, draft: str, record: Batch, epoch: str) -> None:
        move_files(store, self.table, draft, record.files)


def open_sink(
    flow: Flow,
    table: str,
    step: Callable[[], None] = lambda: None,
    epoch: int = 1,
    check: Callable[[], None] = lambda: None,
    clock: Clock = MACHINE,
    read_begin: Callable[[int], BatchBegin] = lambda batch: BatchBegin(0.0),
    prepared: int = 0,
    note_read: Callable[[int, BatchBegin], None] = lambda batch, begin: None,
) -> StreamSink:
    """The sink of a driver that has just started."""
    # With the machine's clock locks are the system's, else leases: of these one may be lost.
    store = SteppedStore(step, has_locks=clock is MACHINE)
    return StreamSink(
        log=flow.open_log(),
        epoch=epoch,
        query="out",
        target=WindowTarget(store, table, flow),
        read_begin=read_begin,
        check=check,
        prepared=prepared,
        note_read=note_read,
        clock=clock,
    )


def list_windows(table: str) -> list[int]:
    """The windows in the table, as often as they are there."""
    return sorted(int(read_window(entry.name)) for _, entry in walk_files(LocalStore(), table))


def _name_file(window: int, folder: str) -> str:
    """Each write's files have names of their own."""
    return f"day={window // 20}/{window}-{folder.rpartition('-')[2]}"


def read_window(path: str) -> float:
    return float(path.rpartition("/")[2].split("-")[0])


class SteppedClock:
    """Time passes while somebody waits."""

    def __init__(self, step: Callable[[], None], passed: list[float]) -> None:
        self.step, self.passed = step, passed

    def now(self) -> float:
        return sum(self.passed)

    def sleep(self, seconds: float) -> None:
        # A lock that nobody renews is free after a few waits.
        self.passed.append(20 * seconds)
        self.step()

    def every(self, seconds: float, do: Callable[[], None], name: str) -> Callable[[], None]:
        return lambda: None


class SteppedDriver:
    """A driver in a thread that goes on by one change whenever it is told to; it may stand still for ever."""

    def __init__(self, work: Callable[[SteppedDriver], None]) -> None:
        self._go, self._came = threading.Semaphore(0), threading.Semaphore(0)
        self._is_killed = self.has_ended = False
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self._thread.start()

    def step(self) -> None:
        """Called by the driver before each change."""
        self._came.release()
        self._go.acquire()
        if self._is_killed:
            raise Crashed

    def advance(self) -> None:
        """Let it make one change, and come to the next."""
        if not self.has_ended:
            self._go.release()
            self._came.acquire()

    def kill(self) -> None:
        """It makes no change any more."""
        self._is_killed = True
        while not self.has_ended:
            self.advance()
        self._thread.join()

    def _run(self, work: Callable[[SteppedDriver], None]) -> None:
        self._go.acquire()
        try:
            work(self)
        except Crashed:
            pass
        except BaseException as error:  # noqa: BLE001 - the test raises it
            self.error = error
        self.has_ended = True
        self._came.release()
