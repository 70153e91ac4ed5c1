"""Texts that a crash, a full disk or another version leaves behind: garbled in any one place."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

Place = tuple[str | int, ...]

WRONG: tuple[Any, ...] = (
    None, True, -1, 99, 0.5, 1e400, float("nan"), 10**400, "", "x", "typo/../..", "\0", "\ud800",
    [], [None], [5], ["x"], {}, {"a": None}, {"": 5}, [[["x"]]],
)  # fmt: skip
DEEP = 5_000
"""Levels that no reader of JSON goes down."""
TEXTS: tuple[bytes, ...] = (
    b"", b"null", b"[]", b"{}", b"5", b'"x"', b"NaN", b"\0\0\0", b"\xff\xfe", b'{"a": "\xff"}', b"[null]", b"[[",
    b"[{}]", b"[" * DEEP, b'{"a":' * DEEP, b"[" * DEEP + b"]" * DEEP, b"9" * 5000,
)  # fmt: skip


def places(value: Any, above: Place = ()) -> Iterator[Place]:
    """Where there is something in ``value`` (JSON): the way to it, key by key."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inside:
        yield (*above, key)
        yield from places(item, (*above, key))


def put(value: Any, place: Place, wrong: Any) -> Any:
    """``value`` with ``wrong`` at ``place``."""
    if not place:
        return wrong
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[place[0]] = put(value[place[0]], place[1:], wrong)
    return copy


def nested(levels: int) -> Any:
    """A list in a list in a list."""
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


def one_wrong(value: Any) -> st.SearchStrategy[Any]:
    """``value`` (JSON) with one thing in it that is something else."""
    return st.builds(put, st.just(value), st.sampled_from(list(places(value))), st.sampled_from([*WRONG, nested(300)]))


def garbled(value: Any) -> st.SearchStrategy[bytes]:
    """The text of ``value`` (JSON), garbled."""
    text = json.dumps(value).encode()
    at = st.integers(0, len(text))
    cut = at.map(lambda end: text[:end])
    struck = st.builds(lambda at, byte: text[:at] + byte + text[at + 1 :], at, st.binary(max_size=2))
    return st.one_of(one_wrong(value).map(lambda each: json.dumps(each).encode()), cut, struck, st.sampled_from(TEXTS))
