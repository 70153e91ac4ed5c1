"""The longest gap between two commits to the table, while files come all the time.

::

    plain            |--|--|--|--|--|
    replay           |--|--|-===|--|--|      a switch to other code, in the same application
    same application |--|--|---------|--|    the graph is stopped, and started again
    new application  |--|--|-----------------------|--|   so is its driver
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession

from airflow_dagsched.launch.streams.settings import StreamSettings
from airflow_dagsched.switch.places import EpochPlaces
from airflow_dagsched.switch.records import Batch, Stopped
from benchmarks.stream.application import Application, has, running
from benchmarks.stream.rows import LATENESS_S, WINDOW_S, Source
from tests.streams.kit import Flow, Graph

ROWS = 20_000
SECONDS = 2 * WINDOW_S
"""Of event time in a file: each batch ends windows."""
LEAST_TRIGGER_S = 6.0
PER_TRIGGER = 2
"""Files that come from trigger to trigger."""
TRIGGERS = 6


@dataclass(frozen=True, slots=True)
class Pauses:
    """Longest gaps in seconds."""

    trigger_s: float
    batch_s: float
    """Median of a batch, before: the trigger is at least three times it."""
    plain_s: float
    replay_s: float
    same_application_s: float
    new_application_s: float

    @property
    def longer_triggers(self) -> float:
        """By how many triggers the gap is longer in a switch by replay than without one."""
        return (self.replay_s - self.plain_s) / self.trigger_s


class Timed:
    """A flow whose files come by the clock."""

    def __init__(self, flow: Flow, trigger_s: float) -> None:
        self.flow = flow
        self._trigger_s = trigger_s
        self._source = Source(flow.source, ROWS, SECONDS)
        self._due = 0.0

    def feed(self) -> None:
        """Add a file if it is time."""
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + self._trigger_s / PER_TRIGGER
            self._source.add()

    def until(self, is_so: Callable[[], bool]) -> Callable[[], bool]:
        """What is waited for with: files come."""

        def is_over() -> bool:
            self.feed()
            return is_so()

        return is_over

    def for_triggers(self, count: int) -> Callable[[], bool]:
        """Until so many triggers from now are over."""
        end = time.monotonic() + count * self._trigger_s
        return self.until(lambda: time.monotonic() >= end)

    def list_commits(self) -> list[float]:
        """Times at which rows came into the table, in seconds since 1970."""
        return [each.at for each in self.flow.read() if isinstance(each, Batch) and each.kept]

    def find_gap(self, since: float) -> float:
        """The longest one between commits, the first one being the last before ``since``."""
        commits = self.list_commits()
        before = [at for at in commits if at <= since][-1:]
        times = [*before, *(at for at in commits if at > since)]
        return max((later - earlier for earlier, later in pairwise(times)), default=math.inf)


def measure_pauses(main: SparkSession, folder: Path) -> Pauses:
    """One after another in one flow. The last of them in a process of its own, as everybody's drivers are."""
    folder.mkdir(parents=True)
    flow = Flow(folder)
    batch_s = measure_batch(main, folder / "batch")
    trigger_s = max(LEAST_TRIGGER_S, math.ceil(3 * batch_s))
    timed = Timed(flow, trigger_s)
    first = flow.ask(make_graph("first", trigger_s))
    with running(main, flow, first) as application:
        application.wait("commits", timed.until(lambda: len(timed.list_commits()) > 1))
        plain = measure_gap(timed, application, lambda: True)
        second = flow.ask(make_graph("second", trigger_s))
        replay = measure_gap(timed, application, lambda: has(flow, Stopped, 1))
    begun = time.time()
    with running(main, flow, second) as application:
        same = measure_gap(timed, application, lambda: has_commit(timed, begun), since=begun)
    begun = time.time()
    new = measure_new_application(timed, second, begun)
    return Pauses(trigger_s, batch_s, plain, replay, same, new)


def measure_gap(timed: Timed, application: Application, is_so: Callable[[], bool], since: float | None = None) -> float:
    """The longest gap until it is so, and for some triggers more."""
    begun = since or time.time()
    application.wait("what is measured", timed.until(is_so))
    application.wait("some triggers", timed.for_triggers(TRIGGERS))
    return timed.find_gap(begun)


def measure_new_application(timed: Timed, places: EpochPlaces, begun: float) -> float:
    """The same where the driver is started again."""
    with timed.flow.run(places) as driver:
        driver.wait_for(timed.until(lambda: has_commit(timed, begun)))
        driver.wait_for(timed.for_triggers(TRIGGERS))
        driver.stop()
    return timed.find_gap(begun)


def measure_batch(main: SparkSession, folder: Path) -> float:
    """Median seconds of a batch with as many rows as one of those that are measured."""
    folder.mkdir()
    flow = Flow(folder)
    source = Source(flow.source, ROWS * PER_TRIGGER, SECONDS * PER_TRIGGER)
    found = []
    with running(main, flow, flow.ask(make_graph("first", 0.2))) as application:
        for _ in range(7):
            source.add()
            begun = time.monotonic()
            application.wait("a batch", lambda: flow.find_watermark(1) >= source.watermark and application.is_idle(1))
            found.append(time.monotonic() - begun)
    return median(found[2:])


def make_graph(code: str, trigger_s: float) -> Graph:
    """A graph of such code."""
    return Graph(code, files_per_batch=2 * PER_TRIGGER, settings=StreamSettings(WINDOW_S, LATENESS_S, trigger_s))


def has_commit(timed: Timed, since: float) -> bool:
    """Whether rows have come into the table since then."""
    return any(at > since for at in timed.list_commits())
