"""Java's properties files, as spark-submit reads them with ``--properties-file``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from airflow_dagsched.errors import InvalidInput

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_NAMES = {char: f"\\{name}" for name, char in _ESCAPES.items()}
_IN_NAMES = frozenset(" :=#!\\")
_LINE = re.compile(r"(?P<name>(?:\\.|[^\\:=\s])*)[ \t\f]*(?:[:=][ \t\f]*)?(?P<value>.*)", re.DOTALL)
_ESCAPED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.)|$)", re.DOTALL)
_END = re.compile(r"\r\n|\n|\r")


def write_properties(settings: Mapping[str, str]) -> str:
    """The text of a file with ``settings``; ASCII alone, so that no reader's encoding matters.

    Raises :class:`InvalidInput`, without the value, for one that a file does not carry.
    """
    for name, value in settings.items():
        if not is_kept(value):
            rule = "begins or ends with a blank, which Spark would take away: take it out"
            raise InvalidInput("spark-submit", name, rule)
    return "".join(f"{_escape_text(name, _IN_NAMES)}={_escape_value(value)}\n" for name, value in settings.items())


def is_kept(value: str) -> bool:
    """Whether Spark takes ``value`` from a file as it is: it strips blanks, but not ends of lines."""
    return value == _strip_blanks(value)


def read_properties(text: str) -> dict[str, str]:
    """The settings of a file, values as Spark takes them."""
    found = {}
    for line in _join_lines(text):
        match = _LINE.fullmatch(line)
        assert match is not None  # the pattern takes any text
        found[_remove_escapes(match["name"])] = _strip_blanks(_remove_escapes(match["value"]))
    return found


def _escape_value(value: str) -> str:
    escaped = _escape_text(value, frozenset("\\"))
    # Java passes over blanks before a value, unless they are escaped.
    return f"\\{escaped}" if escaped.startswith(" ") else escaped


def _escape_text(text: str, special: frozenset[str]) -> str:
    return "".join(_escape_char(char, special) for char in text)


def _escape_char(char: str, special: frozenset[str]) -> str:
    if char in special:
        return f"\\{char}"
    if char in _NAMES:
        return _NAMES[char]
    if " " <= char <= "~":
        return char
    # Java's characters are UTF-16 units: one beyond the first plane is two escapes.
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _join_lines(text: str) -> Iterator[str]:
    """Lines with what they are continued by; neither blank ones nor comments."""
    begun = ""
    for natural in _END.split(text):
        line = natural.lstrip(" \t\f")
        if not begun and line[:1] in ("", "#", "!"):
            continue
        begun += line
        # An even number of them are escaped backslashes, and continue nothing.
        backslashes = len(begun) - len(begun.rstrip("\\"))
        if backslashes % 2:
            begun = begun[:-1]
            continue
        yield begun
        begun = ""
    if begun:
        yield begun


def _remove_escapes(text: str) -> str:
    """``text`` without its escapes; two of them may be the halves of one character."""
    units = _ESCAPED.sub(
        lambda match: chr(int(match[1], 16)) if match[1] else _ESCAPES.get(match[2], match[2] or ""), text
    )
    return units.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _strip_blanks(value: str) -> str:
    # Spark's ``Utils.trimExceptCRLF``: all that Java's trim takes, but for ends of lines.
    blanks = "".join(chr(code) for code in range(33) if chr(code) not in "\r\n")
    return value.strip(blanks)
