"""A line a step, as Airflow's grid and the launch tasks' feeds tell it.

departures  success     894 rows   1.2 s
clean       success     873 rows   0.4 s
enriched    running
by_route    waiting
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import TextIO

from airflow_dagsched.launch.protocol.events import StepDone
from airflow_dagsched.launch.protocol.feed import FEED_KEY, Feed
from airflow_dagsched.launch.protocol.push_limit import read_feed
from demo.rest import AirflowClient, Run

MIRRORS = frozenset({"PythonStep", "SparkSqlStep"})
"""Operators of the tasks that show a step."""
LAUNCH = "LaunchOperator"
"""Operator of the tasks that run a group."""
_IN_GRID = frozenset({"success", "failed", "skipped", "upstream_failed"})


@dataclass(frozen=True, slots=True)
class StepLine:
    """What is known of one step. Numbers that are not known are None."""

    step: str
    state: str
    rows: int | None = None
    seconds: float | None = None

    def text(self, width: int) -> str:
        rows = f"{self.rows:>10,} rows" if self.rows is not None else ""
        seconds = f"{self.seconds:>7.1f} s" if self.seconds is not None else ""
        return f"  {self.step:<{width}}  {self.state:<16}{rows:>16}{seconds:>10}".rstrip()


@dataclass(frozen=True, slots=True)
class Told:
    """What the launch tasks say, by mirrors' task ids."""

    done: Mapping[str, StepDone]
    running: frozenset[str]


def observe(client: AirflowClient, run: Run) -> tuple[StepLine, ...]:
    """One line a step of the run, in the order in which Airflow lists its tasks."""
    instances = client.task_instances(run)
    launches = [each["task_id"] for each in instances if each["operator"] == LAUNCH]
    feeds = {launch: read_feed(client.xcom(run, launch, FEED_KEY)) for launch in launches}
    said = told({launch: feed for launch, feed in feeds.items() if feed is not None})
    return tuple(line(each["task_id"], each["state"], said) for each in instances if each["operator"] in MIRRORS)


def told(feeds: Mapping[str, Feed]) -> Told:
    """The feeds by launch task id as one: a launch task lies in the same task group as its mirrors."""
    folders = {launch: launch.rpartition(".")[0] for launch in feeds}
    done = {f"{folders[at]}.{step}": end for at, feed in feeds.items() for step, end in feed.steps.items()}
    return Told(done, frozenset(f"{folders[at]}.{step}" for at, feed in feeds.items() for step in feed.running))


def line(mirror: str, state: str | None, said: Told) -> StepLine:
    """The line of one mirror: its end is what the grid says, the rest is what the launch task says."""
    step = mirror.partition(".")[2]
    done = said.done.get(mirror)
    if state not in _IN_GRID:
        return StepLine(step, "running" if done or mirror in said.running else "waiting")
    if done is None:
        return StepLine(step, str(state))
    return StepLine(step, "reused" if done.state == "reused" else str(state), done.rows, done.seconds)


class Display:
    """Shows lines as they change: in place on a terminal, else each change as a new line, once a step runs."""

    def __init__(self, out: TextIO = sys.stdout) -> None:
        self._out = out
        self._shown: tuple[StepLine, ...] = ()

    def show(self, lines: tuple[StepLine, ...]) -> None:
        if lines == self._shown:
            return
        for text in self._in_place(lines) if self._out.isatty() else self._changes(lines):
            print(text, file=self._out, flush=True)
        self._shown = lines

    def _in_place(self, lines: tuple[StepLine, ...]) -> Iterable[str]:
        up = f"\x1b[{len(self._shown)}F" if self._shown else ""
        yield up + "\n".join(f"{text}\x1b[K" for text in texts(lines))

    def _changes(self, lines: tuple[StepLine, ...]) -> Iterable[str]:
        old = set(self._shown)
        fresh = [each.state != "waiting" and each not in old for each in lines]
        return compress(texts(lines), fresh)


def texts(lines: Sequence[StepLine]) -> list[str]:
    """The lines, their columns aligned."""
    width = max((len(each.step) for each in lines), default=0)
    return [each.text(width) for each in lines]
