"""What a Spark application did, as its own event log tells: which task ran where, how near to what it read."""

from __future__ import annotations

import json
from collections.abc import Iterator
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


@dataclass(frozen=True, slots=True)
class EventLog:
    """Of one application."""

    executors: frozenset[str]
    """Hosts that had one."""
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
    (file,) = folder.iterdir()
    events = [json.loads(line) for line in file.read_text().splitlines()]
    added = (event for event in events if event["Event"] == "SparkListenerExecutorAdded")
    return EventLog(frozenset(event["Executor Info"]["Host"] for event in added), tuple(_scans(events)))


def _scans(events: list[dict[str, Any]]) -> Iterator[Scanned]:
    for event in events:
        if event["Event"] == "SparkListenerTaskEnd":
            count = event["Task Metrics"]["Input Metrics"]["Bytes Read"]
            if count:
                yield Scanned(event["Task Info"]["Host"], event["Task Info"]["Locality"], count)
