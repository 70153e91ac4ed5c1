"""Ends of windows. All times are seconds since 1970; windows begin at multiples of their length, as Spark's do.

A length of 0 is not known: then a moment may be the end of a window wherever it is.
"""

from __future__ import annotations

from collections.abc import Iterable

_TICKS = 1_000_000
"""In a second: as finely as Spark tells times apart. Whole numbers of them are exact where seconds are not."""


def find_end(moment: float, window: float) -> float:
    """The end of the window, of so many seconds, that has a row of this event time; one on an end is of the next."""
    return (_count_whole(moment, window) + 1) * _count_length(window) / _TICKS


def round_down(moment: float, window: float) -> float:
    """The last end of a window at or before the moment."""
    return _count_whole(moment, window) * _count_length(window) / _TICKS


def round_up(moment: float, window: float) -> float:
    """The first end of a window at or after the moment."""
    return -_count_whole(-moment, window) * _count_length(window) / _TICKS


def is_multiple(length: float, of: float) -> bool:
    """Whether so many times ``of`` is ``length``, both in seconds."""
    return _count_ticks(length) % _count_length(of) == 0


def find_latest(moments: Iterable[float | None]) -> float | None:
    """The latest of those that are known; None: none is."""
    return max((each for each in moments if each is not None), default=None)


def _count_whole(moment: float, window: float) -> int:
    return _count_ticks(moment) // _count_length(window)


def _count_length(window: float) -> int:
    return _count_ticks(window) or 1


def _count_ticks(seconds: float) -> int:
    return round(seconds * _TICKS)
