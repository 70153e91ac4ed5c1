"""What an author declared of a stream, beside what any dataflow has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from airflow_dagsched.launch.streams.manifest import QuerySpec, SourceSpec
from airflow_dagsched.launch.streams.settings import StreamSettings


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """A dataflow that never ends. All its steps are one group."""

    settings: StreamSettings
    sources: tuple[SourceSpec, ...]
    """In the author's order, as the queries are."""
    queries: tuple[QuerySpec, ...]
    code: Mapping[str, str] = field(default_factory=dict)
    """Step -> fingerprint of its code and its arguments, as the author wrote them."""
    fingerprint: str = ""
    """Of the whole flow: another one is another epoch."""
