"""What of a folder of archives is removed, and when a failure to make one is over."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

MOST = 3
"""Archives that a folder holds: some 190 MB each. A host has few Javas and Sparks at a time."""
AGAIN_AFTER_S = 86400.0
"""After a failure: what was in the way, a full disk say, may be gone."""


class Kept(Struct, frozen=True):
    """An archive in the folder."""

    key: str
    used_at: float
    """Seconds of the epoch."""
    fits: bool
    """Whether a driver of today would look for it."""


class Failure(Struct, frozen=True):
    """An archive that could not be made."""

    reason: str
    at: float
    """Seconds of the epoch."""

    def is_over(self, now: float) -> bool:
        """Whether it may be tried again. A clock that went back makes it so, too."""
        return not _is_within_a_day(self.at, now)


def has_no_room(archives: Iterable[Kept], now: float) -> bool:
    """Whether as many as a folder holds are in use: with one more class path each would be made again in turn."""
    return sum(each.fits and _is_within_a_day(each.used_at, now) for each in archives) >= MOST


def _is_within_a_day(at: float, now: float) -> bool:
    return 0 <= now - at < AGAIN_AFTER_S


def select_removed(archives: Iterable[Kept], wanted: str = "") -> tuple[str, ...]:
    """Keys of archives that nobody looks for any more, and of those beyond ``MOST`` that were not used for longest.

    :param wanted: the key of one that stays.
    """
    ranked = sorted(archives, key=lambda each: (each.key != wanted, not each.fits, -each.used_at, each.key))
    return tuple(each.key for at, each in enumerate(ranked) if each.key != wanted and (at >= MOST or not each.fits))
