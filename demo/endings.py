"""Signals that end a demo leave all of its blocks, so what it started is stopped."""

from __future__ import annotations

import signal
from types import FrameType

ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def leave_on_signals() -> None:
    """From now on each of them raises ``KeyboardInterrupt``, once."""
    for each in ENDINGS:
        signal.signal(each, _leave)


def _leave(_signal: int, _frame: FrameType | None) -> None:
    """Leave all blocks; what ends us a second time must not keep them from stopping what they started."""
    for each in ENDINGS:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt
