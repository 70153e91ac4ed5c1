"""What a Spark application did, as its own event log tells: which task ran where, how near to what it read."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NEAR = ("PROCESS_LOCAL", "NODE_LOCAL")


@dataclass(frozen=True, slots=True)
class Scanned:
    """A task that read from outside."""

    host: str
    locality: str
    bytes: int
    rows: int


@dataclass(frozen=True, slots=True)
class EventLog:
    """Of one application."""

    name: str
    """Of the application."""
    executors: frozenset[str]
    """Hosts that had one."""
    cores: Mapping[str, int]
    """Of the executors on each host."""
    scans: tuple[Scanned, ...]

    @property
    def remote_bytes(self) -> int:
        """Read by tasks that were not on a host of their data."""
        return sum(task.bytes for task in self.scans if task.locality not in NEAR)

    @property
    def bytes(self) -> int:
        return sum(task.bytes for task in self.scans)


def settings(folder: Path) -> dict[str, str]:
    """What makes Spark write one plain file into ``folder``."""
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": folder.as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
    }


def read(folder: Path) -> EventLog:
    """The log of the only application that wrote into ``folder``."""
    (log,) = read_all(folder)
    return log


def read_all(folder: Path) -> list[EventLog]:
    """The logs of all applications that wrote into ``folder``, in the order in which they began."""
    logs = [[json.loads(line) for line in file.read_text().splitlines()] for file in folder.iterdir()]
    return [_read_events(events) for events in sorted(logs, key=lambda events: _started(events)["Timestamp"])]


def _read_events(events: list[dict[str, Any]]) -> EventLog:
    cores: Counter[str] = Counter()
    for event in events:
        if event["Event"] == "SparkListenerExecutorAdded":
            cores[event["Executor Info"]["Host"]] += event["Executor Info"]["Total Cores"]
    return EventLog(_started(events)["App Name"], frozenset(cores), cores, tuple(_scans(events)))


def _started(events: list[dict[str, Any]]) -> dict[str, Any]:
    return next(event for event in events if event["Event"] == "SparkListenerApplicationStart")


def _scans(events: list[dict[str, Any]]) -> Iterator[Scanned]:
    for event in events:
        if event["Event"] == "SparkListenerTaskEnd":
            count, task = event["Task Metrics"]["Input Metrics"], event["Task Info"]
            if count["Bytes Read"]:
                yield Scanned(task["Host"], task["Locality"], count["Bytes Read"], count["Records Read"])
