"""What many switches in one application leave behind: heap, threads, memory."""

from __future__ import annotations

import gc
import threading
import time
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from pyspark.sql import SparkSession

from airflow_dagsched.launch.streams.settings import StreamSettings
from airflow_dagsched.switch.records import Current, Stopped
from benchmarks.stream.application import has, running
from benchmarks.stream.rows import LATENESS_S, WINDOW_S
from tests.streams.kit import Feed, Flow, Graph
from tests.streams.rows import Rows

FIRST = 2
"""Switches after which it is looked first: all that is made once is there by then."""
TRIGGER_S = 0.3
UNLOAD_S = 70.0
"""Spark lets go of the state of a query that has ended, with threads of its own, as it looks after all state: once a
minute.
"""
LOOK_S = 2.0
COLLECTIONS = 4


@dataclass(frozen=True, slots=True)
class Remains:
    """Of an application, with nothing to do."""

    switches: int
    heap_mb: float
    """Of Java, after a collection."""
    java_threads: int
    python_threads: int
    python_mb: float
    """Resident."""


def measure_switches(main: SparkSession, folder: Path, switches: int) -> list[Remains]:
    """What is left after the first two switches, and after all of them."""
    folder.mkdir(parents=True)
    flow = Flow(folder)
    feed = Feed(flow, Rows(stale=0.0), most=40 * switches)
    settings = StreamSettings(WINDOW_S, LATENESS_S, TRIGGER_S)
    found = []
    with running(main, flow, flow.ask(Graph("0", settings=settings))) as application:
        application.wait("the first owner", feed.until(lambda: has(flow, Current, 1)))
        for number in range(1, switches + 1):
            flow.ask(Graph(str(number), settings=settings))
            application.wait(f"switch {number}", feed.until(partial(has, flow, Stopped, number)))
            if number in (FIRST, switches):
                found.append(look(main, number))
                print(asdict(found[-1]), flush=True)
    return found


def look(main: SparkSession, switches: int) -> Remains:
    """What is there, once Spark has let go of what it will."""
    jvm: Any = main.sparkContext._jvm
    # What is collected has Spark clean up, with threads of its own, which end when they have had nothing to do.
    collect(jvm)
    java_threads = count_threads(jvm)
    collect(jvm)
    runtime = jvm.Runtime.getRuntime()
    # Once more: queries that look for rows leave garbage, the more of it the more files they look at.
    jvm.System.gc()
    heap = (runtime.totalMemory() - runtime.freeMemory()) / 2**20
    resident = psutil.Process().memory_info().rss / 2**20
    return Remains(switches, round(heap, 1), java_threads, threading.active_count(), round(resident, 1))


def collect(jvm: Any) -> None:
    """All that neither side needs any more."""
    # Each side holds objects of the other: what one has let go of the other collects next.
    for _ in range(COLLECTIONS):
        gc.collect()
        jvm.System.gc()
        time.sleep(LOOK_S)


def count_threads(jvm: Any) -> int:
    """Java's, once none has ended for some time."""
    threads = jvm.java.lang.management.ManagementFactory.getThreadMXBean()
    least, since = int(threads.getThreadCount()), time.monotonic()
    while time.monotonic() - since < UNLOAD_S:
        time.sleep(LOOK_S)
        if (now := int(threads.getThreadCount())) < least:
            least, since = now, time.monotonic()
    return least
