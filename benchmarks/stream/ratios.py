"""Processor seconds of a batch: a plain query that writes Parquet, and graphs that have taken over from another.

::

    a round    plain |######|  replay |#######|  inbox |##########|
               a file of 500,000 rows each, until its windows are in the table

While one is measured the drivers of the others rest; all queries look for files, whoever is measured.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Literal, NamedTuple

from pyspark.sql import SparkSession

from airflow_dagsched.launch.streams.settings import Channel, StreamSettings
from airflow_dagsched.spark.streams.sources import SETTINGS
from airflow_dagsched.switch.records import Current, Stopped
from benchmarks.processor_time import count_cpu_s
from benchmarks.stream.application import WAIT_S, Application, has, running
from benchmarks.stream.rows import LATENESS_S, WINDOW_S, Source
from tests.streams.kit import Flow, Graph, sum_by_user
from tests.streams.rows import DDL

ROWS, SECONDS = 500_000, 100.0
"""Of a file: ten windows, as many rows of a thousand users."""
APART_S = 1_000_000.0
"""Between the event times of two ways: no watermark of one is another's."""
PARTITIONS = 2
TRIGGER_S = 0.5
STORE = (
    "spark.sql.streaming.stateStore.providerClass",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled",
)
"""Settings of the store of state, which both have."""


class Round(NamedTuple):
    """Processor seconds of one batch of each, with the one without rows that ends its windows."""

    plain: float
    replay: float
    inbox: float
    """With what routes its rows."""


def measure_rounds(main: SparkSession, folder: Path, warm_up: int, rounds: int) -> list[Round]:
    """Rounds behind those that warm Spark up."""
    with (
        plain_query(main, folder / "plain") as plain,
        switched_graph(main, folder / "replay", "replay") as replay,
        switched_graph(main, folder / "inbox", "inbox") as inbox,
    ):
        found = [Round(*map(measure_batch, (plain, replay, inbox))) for _ in range(warm_up + rounds)]
    return found[warm_up:]


def find_speed(rounds: list[Round], way: Literal["replay", "inbox"]) -> float:
    """How fast such a graph is beside the plain query: the median of the rounds' ratios."""
    return median(each.plain / (each.replay if way == "replay" else each.inbox) for each in rounds)


class Measurable(NamedTuple):
    """Something that reads a source."""

    source: Source
    wait: Callable[[], None]
    """Until it has read all files, and emitted the windows that they close."""
    wake: Callable[[], None] = lambda: None
    rest: Callable[[], None] = lambda: None
    """Do nothing until it is woken."""


def measure_batch(query: Measurable) -> float:
    """Processor seconds that it takes for one file more."""
    query.wake()
    query.source.add()
    begun = count_cpu_s()
    query.wait()
    taken = count_cpu_s() - begun
    query.rest()
    return taken


@contextmanager
def plain_query(main: SparkSession, folder: Path) -> Iterator[Measurable]:
    """As an author would write it by hand, with the same store of state and as many partitions."""
    source = Source(folder / "source", ROWS, SECONDS, APART_S)
    session = main.newSession()
    session.conf.set("spark.sql.shuffle.partitions", str(PARTITIONS))
    for name in STORE:
        session.conf.set(name, SETTINGS[name])
    rows = session.readStream.schema(DDL).option("maxFilesPerTrigger", 1).parquet(str(source.folder))
    sums = sum_by_user(rows.withWatermark("ts", f"{LATENESS_S:g} seconds"))
    writer = sums.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(processingTime=f"{TRIGGER_S:g} seconds").start(str(folder / "table"))
    try:
        yield Measurable(source, lambda: _wait_for_plain(query, source, folder / "checkpoint"))
    finally:
        query.stop()


def _wait_for_plain(query: Any, source: Source, checkpoint: Path) -> None:
    # By files, as a graph is waited for by its log: to ask Spark costs more.
    while find_committed(checkpoint) < source.watermark or query.status["isTriggerActive"]:
        if query.exception() is not None:
            raise query.exception()
        time.sleep(WAIT_S)


def find_committed(checkpoint: Path) -> float:
    """That the last batch of the query began with that is committed, in seconds since 1970; 0: there is none."""
    commits = checkpoint / "commits"
    numbers = [int(each.name) for each in commits.iterdir() if each.name.isdigit()] if commits.exists() else []
    if not numbers:
        return 0.0
    _, metadata, *_ = (checkpoint / "offsets" / str(max(numbers))).read_text().splitlines()
    return float(json.loads(metadata)["batchWatermarkMs"]) / 1000


@contextmanager
def switched_graph(main: SparkSession, folder: Path, channel: Channel) -> Iterator[Measurable]:
    """The second graph of a flow, once it has taken over."""
    folder.mkdir(parents=True)
    flow = Flow(folder)
    source = Source(flow.source, ROWS, SECONDS, 2 * APART_S if channel == "inbox" else 0.0)
    settings = StreamSettings(WINDOW_S, LATENESS_S, TRIGGER_S, channel=channel)
    graph = Graph("first", settings=settings, partitions=PARTITIONS)
    with running(main, flow, flow.ask(graph)) as application:
        source.add()
        application.wait("a batch", lambda: flow.find_watermark(1) >= source.watermark)
        flow.ask(Graph("second", settings=settings, partitions=PARTITIONS))
        while not has(flow, Current, 2):
            source.add()
            application.wait("a batch of the owner", lambda: _has_caught_up(application, source))
        application.wait("the end of the first", lambda: has(flow, Stopped, 1))
        application.rest()
        wait = partial(application.wait, "a batch", lambda: _has_ended(application, source))
        yield Measurable(source, wait, application.wake, application.rest)


def _has_caught_up(application: Application, source: Source) -> bool:
    flow = application.flow
    found = [flow.find_watermark(each) for each in flow.list_running() if each in application.runs]
    # A graph whose inbox has no row yet gets none before there are more.
    read = [watermark for watermark in found if watermark > 0]
    return bool(read) and min(read) >= source.watermark


def _has_ended(application: Application, source: Source) -> bool:
    return application.flow.find_watermark(2) >= source.watermark and application.is_idle(2)
