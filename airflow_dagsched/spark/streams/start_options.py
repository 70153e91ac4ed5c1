"""Options by which a new query of a source begins at an offset that an old one had read to. Pure.

To begin earlier is always right: all that was read before the offset is of windows that the new graph does not own, and
its source drops those rows. So a source that cannot begin in the middle of something begins before it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from airflow_dagsched.launch.protocol.tables import FILE_FORMATS
from airflow_dagsched.launch.streams.batch_limits import FILE_LIMITS


def choose_start_options(form: str, offset: Any) -> dict[str, str]:
    """The options of a format; none: it begins at its beginning by itself.

    A query with a checkpoint goes on whatever they say.

    :param offset: as the source writes it in a checkpoint; None: the beginning.
    """
    make = _MAKERS.get(form)
    if offset is None:
        return dict(_BEGINNINGS.get(form, {}))
    return {} if make is None else make(offset)


def choose_limit(form: str, options: Mapping[str, str]) -> dict[str, str]:
    """The options that bound a batch of a graph that may have all files before it; none: they are bounded already.

    :param options: the author's.
    """
    is_bounded = any(name.lower() in FILE_LIMITS for name in options)
    return {} if form not in FILE_FORMATS or is_bounded else {"maxFilesPerTrigger": str(MOST_FILES)}


def _start_kafka(offset: Any) -> dict[str, str]:
    # Topic -> partition -> the next message's number.
    return {"startingOffsets": json.dumps(offset, sort_keys=True)}


def _start_rate(offset: Any) -> dict[str, str]:
    # The column ``value`` begins at 0 again: of its rows only the timestamps go on.
    return {"startTimestamp": str(offset["timestamp"])}


def _start_delta(offset: Any) -> dict[str, str]:
    # A version's files from ``index`` on are not read yet: it is read again. While the table's first state is read
    # there is no version that has what is left of it.
    first_state = offset.get("isStartingVersion", offset.get("isInitialSnapshot", False))
    return {} if first_state else {"startingVersion": str(offset["reservoirVersion"])}


MOST_FILES = 10_000
"""A batch: minutes of work, and more than come in a trigger of any stream that can be kept up with."""
_BEGINNINGS: Mapping[str, Mapping[str, str]] = {"kafka": {"startingOffsets": "earliest"}}
"""Of formats that begin at their end: a graph that takes over would have no row that was there before it."""
_MAKERS: Mapping[str, Callable[[Any], dict[str, str]]] = {
    "kafka": _start_kafka,
    "rate-micro-batch": _start_rate,
    "delta": _start_delta,
}
"""Not of Iceberg: an offset of it names a snapshot by a number without an order, and its reader asks for a time."""
