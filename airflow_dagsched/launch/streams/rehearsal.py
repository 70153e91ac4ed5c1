"""A stream that is run once, over rows that are there: for unit tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from airflow_dagsched.launch.protocol.calls import Given, Handed
from airflow_dagsched.launch.protocol.payload import Call
from airflow_dagsched.launch.streams.manifest import SourceSpec


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What a driver would give to the functions of a stream."""

    sources: tuple[SourceSpec, ...]
    rows: Mapping[str, Any]
    """Source -> its rows as they are read; not those that its function returns."""
    keys: Mapping[str, str]
    """Sink -> the key of the one batch that it gets."""
    max_ahead_s: float
    """Rows of an event time further ahead of the clock are left out, as those without one are."""


def hand_in(call: Call, what: Given, value: Any) -> Call:
    """``call`` with ``value`` wherever its function is given that."""
    filled = {name: value if each == Handed(what) else each for name, each in call.kwargs.items()}
    return replace(call, kwargs=filled)
