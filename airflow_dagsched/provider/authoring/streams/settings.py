"""The arguments of ``SparkDataflow`` that make it a stream."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, get_args

from airflow_dagsched.launch.streams.settings import Channel, Confirm, Order, Overlap, StreamSettings

SECONDS = {"millisecond": 0.001, "second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
_PART = re.compile(rf"(\d+(?:\.\d+)?)\s*({'|'.join(SECONDS)})s?\b", re.IGNORECASE)
_TIMES = re.compile(rf"\s*(?:{_PART.pattern}\s*)+", re.IGNORECASE)

_PARTS = 1_000_000_000
"""Of a second."""
LEAST_S = 0.001
"""Shorter times Spark takes for none, or does not tell apart."""
TIMES = {
    "window": "10 minutes",
    "lateness": "5 minutes",
    "trigger": "10 seconds",
    "max_ahead": "1 day",
    "reach": "15 minutes",
    "deploy_within": "30 minutes",
    "stuck_within": "1 hour",
    "catch_up_within": "12 hours",
    "ends_within": "5 minutes",
}
"""Arguments that are times, with an example of each."""
WORDS = {"channel": Channel, "overlap": Overlap, "order": Order, "confirm": Confirm}
"""Arguments that are one of a few words."""
NEEDED = ("window", "lateness", "trigger")


class SettingRefused(Exception):
    """An argument of the stream is none; the dataflow says whose it is."""

    def __init__(self, name: str, rule: str) -> None:
        self.name, self.rule = name, rule


def parse_seconds(value: Any) -> float:
    """``"1 hour 30 minutes"``, a number of seconds or a timedelta, as seconds. Raises ``ValueError`` for all else."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < float("inf"):
        return float(value)
    parts = _PART.findall(value) if isinstance(value, str) and _TIMES.fullmatch(value) else []
    if not parts:
        raise ValueError(f"{value!r} is no time of fixed length")
    # Parts of a second are counted whole: 0.1 + 0.2 would not be 0.3.
    return sum(round(float(count) * SECONDS[unit.lower()] * _PARTS) for count, unit in parts) / _PARTS


def take_stream_settings(arguments: dict[str, Any]) -> StreamSettings | None:
    """Take out of ``arguments`` what makes a dataflow a stream; None where ``mode`` says it is none.

    Raises :class:`SettingRefused`.
    """
    mode = arguments.pop("mode")
    if mode not in ("batch", "streaming"):
        raise SettingRefused("mode", f"must be 'batch' or 'streaming', not {mode!r}")
    if mode == "batch":
        return None
    for name in NEEDED:
        if name not in arguments:
            raise SettingRefused(name, f'a stream needs it: {name}="{TIMES[name]}"')
    taken: dict[str, Any] = {f"{name}_s": _take_time(name, arguments.pop(name)) for name in TIMES if name in arguments}
    for name, check in _CHECKS.items():
        if name in arguments:
            taken[name] = check(name, arguments.pop(name))
    return StreamSettings(**taken)


def _take_time(name: str, value: Any) -> float:
    example = f'write {name}="{TIMES[name]}"'
    if name == "trigger":
        _refuse_other_triggers(value)
    try:
        seconds = parse_seconds(value)
    except ValueError as error:
        raise SettingRefused(name, f"{error} (a month is none): {example}") from None
    # Rows may be known to come in order, windows not to slide; a window or a trigger of no length is none.
    may_be_0 = name in ("lateness", "reach")
    if not (seconds >= LEAST_S or (seconds == 0 and may_be_0)):
        least = f"{'0, or ' if may_be_0 else ''}1 millisecond or longer"
        raise SettingRefused(name, f"must be {least}, not {value!r}: {example}")
    return seconds


def _refuse_other_triggers(value: Any) -> None:
    """What Spark calls a trigger, and is none of batches every so often."""
    said = value if isinstance(value, str) else next(iter(value), "") if isinstance(value, Mapping) else ""
    known = {"realtime": "real-time", "continuous": "continuous", "availablenow": "available-now", "once": "one-time"}
    # As people write them: "Trigger.RealTime", "available-now".
    kind = known.get(re.sub(r"trigger|[^a-z]", "", str(said).lower()))
    if kind is not None:
        raise SettingRefused(
            "trigger", f'{kind} triggers have no batches that a switch could wait for: write trigger="10 seconds"'
        )


def _take_word(name: str, value: Any) -> Any:
    words = get_args(WORDS[name])
    if value not in words:
        raise SettingRefused(name, f"must be {' or '.join(map(repr, words))}, not {value!r}")
    return value


def _take_flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise SettingRefused(name, f"must be True or False, not {value!r}")
    return value


def _take_standbys(name: str, value: Any) -> int:
    if isinstance(value, bool) or value not in (0, 1):
        raise SettingRefused(name, f"must be 0 or 1, not {value!r}")
    return int(value)


_CHECKS: Mapping[str, Callable[[str, Any], Any]] = {
    **dict.fromkeys(WORDS, _take_word),
    "hold_slot": _take_flag,
    "standbys": _take_standbys,
}
