"""Secrets, and taking them out of all that leaves the launch task or its driver program.

Known are the secrets that Airflow's own masker learned while arguments were rendered, and those that give themselves
away: in URLs, as ``password=`` parameters, under names such as ``secret.key``.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import quote, quote_plus, unquote

from airflow_dagsched.launch.protocol.wire import Unreadable, load_json

MASK = "***"
SHORTEST = 3
"""Shorter secrets are masked only where their name or place gives them away."""
PLAIN = frozenset({"true", "false", "none", "null", "airflow"})
"""Values of settings with a telling name that are no secrets: masked, they would be gone from every sentence."""
LINE_LEAST = 8
"""Shorter lines of a secret of several lines, such as a key, are no secrets of their own."""
SHOWN, CUT = 17, "..."
"""How ``DataFrame.show()`` cuts a value of more than 20 characters."""

_NAME = (
    r"[\w.-]*(?:password|passwd|pwd|passphrase|secret|token|credential"
    r"|(?:api|access|account|private)[._-]?key)"
)
_IS_NAME = re.compile(_NAME + r"[\w.-]*", re.IGNORECASE)
_PARAMETER = re.compile(rf"(\b{_NAME}\s*=\s*)([^\s&;,'\"\\)]+)", re.IGNORECASE)
_USERINFO = re.compile(r"(://[^\s/:@'\"]*:)([^\s/@'\"]+)(@)")
_ORACLE = re.compile(r"(jdbc:oracle:\w+:[^\s/@]+/)([^\s@]+)(@)", re.IGNORECASE)
_NOTHING = re.compile(r"(?!)")


def find_secrets(value: Any) -> frozenset[str]:
    """Passwords in ``value``: in URLs, ``password=`` parameters, and under dict keys named so."""
    return frozenset(found for found in _walk_value(value) if len(found) >= SHORTEST and found.lower() not in PLAIN)


def _walk_value(value: Any, named: bool = False) -> Iterator[str]:
    if isinstance(value, bytes):
        yield from _find_in_text(value.decode(errors="replace"), named)
    elif isinstance(value, str):
        yield from _find_in_text(value, named)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _walk_value(item, named or _IS_NAME.fullmatch(str(key)) is not None)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            yield from _walk_value(item, named)


def _find_in_text(text: str, named: bool) -> Iterator[str]:
    found = [match[2] for pattern in (_PARAMETER, _USERINFO, _ORACLE) for match in pattern.finditer(text)]
    for secret in [text] if named else found:
        yield secret
        # In a URL it is quoted; where it is used, and may be printed, it is not.
        yield unquote(secret)


def list_forms(secret: str) -> frozenset[str]:
    """How ``secret`` may be written: as it is, in a literal, SQL, JSON, a URL, by base64, line by line, or cut."""
    written = {secret, repr(secret)[1:-1], json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    written.add(secret.replace("\\", "\\\\").replace("'", "\\'"))
    in_url = {quote(secret), quote(secret, safe=""), quote_plus(secret)}
    encoded = base64.b64encode(secret.encode(errors="replace")).decode()
    lines = {line.strip() for line in secret.splitlines()} if "\n" in secret else set()
    cut = {secret[:SHOWN] + CUT} if len(secret) > SHOWN + len(CUT) else set()
    return frozenset({*written, *in_url, encoded, *(line for line in lines if len(line) >= LINE_LEAST), *cut})


class Masking:
    """Replaces the secrets known so far, in all their forms."""

    def __init__(self) -> None:
        self.known: frozenset[str] = frozenset()
        self._pattern = _NOTHING

    def learn(self, value: Any) -> None:
        """Mask the secrets in ``value`` from now on."""
        self.add(find_secrets(value))

    def add(self, secrets: Iterable[str]) -> None:
        """Mask ``secrets`` from now on; of one that is a JSON object, such as a connection's extra, those in it too."""
        found = frozenset(secret for secret in secrets if secret and secret.lower() not in PLAIN)
        inside = frozenset().union(*(find_secrets(_parse_object(secret)) for secret in found))
        # All calls' arguments come by here, and the pattern is dear to compile.
        if found | inside <= self.known:
            return
        self.known |= found | inside
        # The longest first: of alternatives ``re`` takes the first that matches, and would leave a longer one's end.
        forms = sorted(
            {form for secret in self.known for form in list_forms(secret)}, key=lambda form: (-len(form), form)
        )
        self._pattern = re.compile("|".join(map(re.escape, forms)))

    def text(self, text: str) -> str:
        """``text`` without them, and without what looks like one."""
        text = _PARAMETER.sub(rf"\g<1>{MASK}", self._pattern.sub(MASK, text))
        return _ORACLE.sub(rf"\g<1>{MASK}\g<3>", _USERINFO.sub(rf"\g<1>{MASK}\g<3>", text))

    def value(self, value: Any, *, keys: bool = False) -> Any:
        """``value`` (JSON) with every string in it masked; the keys stay, unless ``keys`` are an author's too."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(key) if keys else key: self.value(item, keys=keys) for key, item in value.items()}
        return [self.value(item, keys=keys) for item in value] if isinstance(value, (list, tuple)) else value


def _parse_object(text: str) -> Any:
    """The JSON object that ``text`` is; None for anything else."""
    if text.lstrip().startswith("{"):
        with suppress(Unreadable):
            return load_json(text)
    return None
