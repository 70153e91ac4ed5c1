"""What a stream may read, and what an author may say of it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_dagsched.launch.protocol.tables import FILE_FORMATS

Mistake = tuple[str, str]
"""Name of an argument, and the rule that it breaks."""

FORMATS = ("rate-micro-batch", "kafka", "delta", "iceberg")
"""Beside files: what can be read again from an offset that was read before."""
WITH_PATH = FILE_FORMATS | {"delta", "iceberg"}
OURS = {
    "checkpointlocation": "each query has one of its own, under the work dir",
    "latestfirst": "a stream is read in order",
    **dict.fromkeys(("cleansource", "sourcearchivedir"), "who takes over reads files that were read before"),
    "kafka.group.id": "two graphs of one group would share what is to be read by both",
    "maxfileage": "a file would be left out by its age",
    "path": "give it as path=",
    "schema": "give it as schema=",
    **dict.fromkeys(
        ("startingoffsets", "startingoffsetsbytimestamp", "startingtimestamp", "startingversion", "starttimestamp",
         "stream-from-timestamp"),
        "an epoch starts where the one before it is; start= names another place",
    ),
    **dict.fromkeys(("endingoffsets", "endingoffsetsbytimestamp", "endingtimestamp"), "a stream has no end"),
}  # fmt: skip
"""Options of Spark's that are not the author's to give, in small letters, and why."""
SERVERS = "kafka.bootstrap.servers"
TOPICS = ("assign", "subscribe", "subscribePattern")
"""Options of Kafka's that name what is read."""
_NAME = re.compile(r"[A-Za-z0-9_]+")


@dataclass(frozen=True, slots=True)
class DeclaredSource:
    """What an author says of a source, unchecked."""

    format: Any = None
    path: Any = None
    schema: Any = None
    event_time: Any = None
    options: Any = field(default_factory=dict)
    start: Any = None


def find_source_mistake(name: str, source: DeclaredSource) -> Mistake | None:
    """The first thing wrong with what is said of the source in step ``name``."""
    if not _NAME.fullmatch(name):
        return "task_id", "names the source in Spark's checkpoints: letters, digits and _ only"
    return (
        _find_format_mistake(source)
        or _find_place_mistake(source)
        or _find_options_mistake(source.options)
        or _find_kafka_mistake(source)
        or _find_start_mistake(source.start)
    )


def _find_format_mistake(source: DeclaredSource) -> Mistake | None:
    if source.format not in FILE_FORMATS and source.format not in FORMATS:
        known = ", ".join((*sorted(FILE_FORMATS), *FORMATS))
        return (
            "format",
            f"must be one of {known}, which can be read again from where an epoch was, not {source.format!r}",
        )
    if not isinstance(source.event_time, str) or not source.event_time:
        return "event_time", 'name the column with the time of a row: event_time="ts"'
    return None


def _find_place_mistake(source: DeclaredSource) -> Mistake | None:
    path, schema, kind = source.path, source.schema, source.format
    if kind in WITH_PATH and (not isinstance(path, str) or not path):
        return "path", f"{kind} is read from a path: path=..., not {path!r}"
    if kind not in WITH_PATH and path is not None:
        return "path", f"{kind} has none: leave it out"
    if path is not None and ("{{" in path or "{%" in path):
        return "path", "is not rendered, as an epoch goes on for many runs: write it out, or read a folder above it"
    if kind in FILE_FORMATS and (not isinstance(schema, str) or not schema.strip()):
        return "schema", f'files are read by a declared one: schema="ts timestamp, user string", not {schema!r}'
    if kind not in FILE_FORMATS and schema is not None:
        return "schema", f"{kind} knows its own: leave it out"
    return None


def _find_options_mistake(options: Any) -> Mistake | None:
    if not isinstance(options, Mapping) or not all(isinstance(name, str) for name in options):
        return "options", f"must be a dict of Spark's options of this format, not {options!r}"
    for name, value in options.items():
        if name.lower() in OURS:
            return "options", f"{name!r} is not the author's to give: {OURS[name.lower()]}"
        if not isinstance(value, (str, int, float)):
            return "options", f"{name!r} must be a text or a number, not {type(value).__name__}"
    return None


def _find_kafka_mistake(source: DeclaredSource) -> Mistake | None:
    if source.format != "kafka":
        return None
    named = {name.lower() for name in source.options}
    if SERVERS not in named:
        return "options", f'kafka is asked where its brokers are: options={{"{SERVERS}": "host:9092", ...}}'
    topics = [name for name in TOPICS if name.lower() in named]
    if len(topics) != 1:
        known = f"one of {', '.join(TOPICS)}, not {len(topics)}"
        return "options", f'kafka is told what to read by {known}: options={{"subscribe": "topic", ...}}'
    return None


def _find_start_mistake(start: Any) -> Mistake | None:
    try:
        json.dumps(start, allow_nan=False)
    except (TypeError, ValueError) as error:
        return "start", f'must be an offset as JSON has it, such as {{"logOffset": 14}}: {error}'
    return None
