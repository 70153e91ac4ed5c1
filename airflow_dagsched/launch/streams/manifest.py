"""The manifest of an epoch: all that its driver program needs to start its queries, again and again.

As with batch groups, functions and rendered arguments travel in the payload beside it, and the manifest everybody may
read has its secrets masked. Both stay as long as the epoch may have to be started again: the DAG file has other code by
then.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from airflow_dagsched.launch.protocol.identity import TryId
from airflow_dagsched.launch.protocol.manifest import StepSpec, decode_manifest
from airflow_dagsched.launch.protocol.tables import Table
from airflow_dagsched.launch.protocol.wire import encode_plain
from airflow_dagsched.launch.streams.settings import StreamSettings

STREAM_MANIFEST_VERSION = 1


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """Where rows come from. It is declared, not opened: an epoch starts at offsets of its own."""

    name: str
    """Of the step that may parse the rows, and of the source in Spark's checkpoints."""
    format: str
    event_time: str
    """Column of what the step returns that has the event time."""
    path: str | None = None
    schema: str | None = None
    """As DDL; None: the format knows it."""
    options: Mapping[str, str] = field(default_factory=dict)
    start: Any = None
    """Offset that the author names, to start from instead of where the owner is; None: none."""


@dataclass(frozen=True, slots=True)
class QuerySpec:
    """A step that writes is one query, with a checkpoint of its own."""

    step: str
    writes: Table | None
    """None: a function gets the rows."""
    partitions: int
    """Of its state."""
    stateful: int = 0
    """Steps above it that keep state, itself included."""
    carries: tuple[str, ...] = ()
    """Names of the state that a successor takes over."""


@dataclass(frozen=True, slots=True)
class StreamManifest:
    """One epoch of a flow."""

    package_version: str
    python: str
    """``major.minor`` of the interpreter that pickled the payload."""
    dag_id: str
    flow: str
    work_dir: str
    folder: str
    """Name of the epoch's folder."""
    fingerprint: str
    run_id: str
    try_id: TryId
    steps: tuple[StepSpec, ...]
    """Sources included, in topological order."""
    sources: tuple[SourceSpec, ...]
    queries: tuple[QuerySpec, ...]
    settings: StreamSettings
    session: Mapping[str, str] = field(default_factory=dict)
    """Spark SQL settings that a running application can take."""
    application: Mapping[str, str] = field(default_factory=dict)
    """Settings that only a new application takes: sizes, jars, executors, the author's conf."""
    workers: tuple[str, ...] = ()
    """Planned for; none: wherever the manager likes."""
    sizing: str = ""
    """Digest of what its executors are planned by, but for the cluster."""
    lease_s: float = 20.0
    context: Mapping[str, Any] = field(default_factory=dict)
    """JSON values a step may ask for by name."""
    version: int = STREAM_MANIFEST_VERSION

    def to_json(self) -> str:
        """All of it, secrets included: for the private folder alone."""
        return json.dumps(encode_plain(self), sort_keys=True, indent=1)


def find_routed(manifest: StreamManifest) -> StreamManifest:
    """The part of an epoch that fills inboxes: its sources, with their steps."""
    names = {each.name for each in manifest.sources}
    return replace(manifest, steps=tuple(each for each in manifest.steps if each.id in names), queries=())


def read_stream_manifest(text: str, package_version: str) -> StreamManifest:
    """Parse ``text``, which is known by its digest. Raises ``ValueError`` that says what does not match."""
    return decode_manifest(StreamManifest, text, STREAM_MANIFEST_VERSION, package_version, "manifest of a stream")
