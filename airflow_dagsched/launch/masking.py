"""Passwords in rendered arguments, and taking them out of all that leaves the driver."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

MASK = "***"
SHORTEST = 3
"""Shorter secrets are masked only where their name or place gives them away."""

_NAME = r"[\w.-]*(?:password|passwd|pwd|secret|token|api_?key|access_?key)"
_IS_NAME = re.compile(_NAME + r"[\w.-]*", re.IGNORECASE)
_PARAMETER = re.compile(rf"(\b{_NAME}\s*=\s*)([^\s&;,'\"\\)]+)", re.IGNORECASE)
_USERINFO = re.compile(r"(://[^\s/:@'\"]*:)([^\s/@'\"]+)(@)")
_ORACLE = re.compile(r"(jdbc:oracle:\w+:[^\s/@]+/)([^\s@]+)(@)", re.IGNORECASE)


def secrets_in(value: Any) -> frozenset[str]:
    """Passwords in ``value``: in URLs, ``password=`` parameters, and under dict keys named so."""
    return frozenset(found for found in _walk(value) if len(found) >= SHORTEST)


def _walk(value: Any, named: bool = False) -> Iterator[str]:
    if isinstance(value, str):
        yield from _in_text(value, named)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _walk(item, named or _IS_NAME.fullmatch(str(key)) is not None)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            yield from _walk(item, named)


def _in_text(text: str, named: bool) -> Iterator[str]:
    found = [match[2] for pattern in (_PARAMETER, _USERINFO, _ORACLE) for match in pattern.finditer(text)]
    for secret in [text] if named else found:
        yield secret
        yield unquote(secret)


class Masking:
    """Replaces the secrets known so far."""

    def __init__(self) -> None:
        self._secrets: tuple[str, ...] = ()

    def learn(self, value: Any) -> None:
        """Mask the secrets in ``value`` from now on."""
        known = {*self._secrets, *secrets_in(value)}
        self._secrets = tuple(sorted(known, key=lambda secret: (-len(secret), secret)))

    def text(self, text: str) -> str:
        """``text`` without them, and without what looks like one."""
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        text = _PARAMETER.sub(rf"\g<1>{MASK}", text)
        return _ORACLE.sub(rf"\g<1>{MASK}\g<3>", _USERINFO.sub(rf"\g<1>{MASK}\g<3>", text))

    def value(self, value: Any) -> Any:
        """``value`` (JSON) with every string in it masked; the keys stay."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {key: self.value(item) for key, item in value.items()}
        return [self.value(item) for item in value] if isinstance(value, list) else value
