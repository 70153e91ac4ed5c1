"""Text that every database, log and terminal takes: what they don't take is shown as an escape, never left out.

PostgreSQL's JSON refuses a NUL and half a surrogate pair; other control characters act on whoever reads the log.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeGuard

_REFUSED = re.compile("[\x00\ud800-\udfff]")
"""What JSON in a database can't hold."""
_ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Control characters but tab and newline, and what else ends a line somewhere."""


def is_clean(text: Any) -> TypeGuard[str]:
    """Whether ``text`` is one, and every database and file system takes it."""
    return isinstance(text, str) and _REFUSED.search(text) is None


def clean_text(text: str) -> str:
    """``text`` to be read by people: ``\\x1b`` where there was an ESC."""
    return _ACTING.sub(_escape_char, text)


def clean_texts(value: Any) -> Any:
    """``value`` (JSON) with every string and every key in it as :func:`clean_text` has it."""
    return _escape_each(value, _ACTING)


def clean_value(value: Any) -> Any:
    """``value`` (JSON) to be read by programs: the same, but for what no database takes."""
    return _escape_each(value, _REFUSED)


def _escape_each(value: Any, unsafe: re.Pattern[str]) -> Any:
    if isinstance(value, str):
        return unsafe.sub(_escape_char, value)
    if isinstance(value, Mapping):
        return {unsafe.sub(_escape_char, str(key)): _escape_each(item, unsafe) for key, item in value.items()}
    return [_escape_each(item, unsafe) for item in value] if isinstance(value, list) else value


def _escape_char(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def format_duration(seconds: float) -> str:
    """For people: ``40 s``, ``5 min``, ``2 h 10 min``."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(int(seconds) // 60, 60)
    return " ".join(part for part in (f"{hours} h" if hours else "", f"{minutes} min" if minutes else "") if part)
