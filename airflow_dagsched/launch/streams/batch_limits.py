"""Options of a source that bound its batches: how much of it is read at once, not what."""

from __future__ import annotations

from collections.abc import Mapping

FILE_LIMITS = frozenset(["maxfilespertrigger", "maxbytespertrigger"])
"""Of files and of Delta's tables, in small letters. Spark refuses both at once."""
LIMITS = FILE_LIMITS | {
    "maxoffsetspertrigger",
    "minoffsetspertrigger",
    "maxtriggerdelay",
    "streaming-max-files-per-micro-batch",
    "streaming-max-rows-per-micro-batch",
}
"""Of all formats."""


def drop_limits(options: Mapping[str, str]) -> dict[str, str]:
    """The options that say what is read, and how."""
    return {name: value for name, value in options.items() if name.lower() not in LIMITS}
