"""Frozen dataclasses to JSON and back, with nothing but the standard library.

The driver program may run where only Python and PySpark are installed, so what crosses that process
boundary must be readable there. Unknown fields are ignored on reading: a newer writer stops an older
reader by its version number, not by a stray field.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Hashable
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


def encode(value: Any) -> Any:
    """Return ``value`` (dataclasses, tuples, mappings, JSON scalars) as plain JSON values."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: encode(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, typing.Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [encode(item) for item in (sorted(value) if isinstance(value, (set, frozenset)) else value)]
    return value


def decode(cls: type[T], raw: Any) -> T:
    """Return ``raw`` (parsed JSON) as an instance of the dataclass ``cls``.

    Raises ``TypeError`` where a field without a default is missing.
    """
    known = {name: _decode(hint, raw[name]) for name, hint in _hints(typing.cast(Hashable, cls)).items() if name in raw}
    return cls(**known)


@cache
def _hints(cls: Hashable) -> dict[str, Any]:
    kind = typing.cast(type, cls)
    hints = get_type_hints(kind)
    return {f.name: hints[f.name] for f in dataclasses.fields(kind)}


def _decode(hint: Any, raw: Any) -> Any:
    origin, args = get_origin(hint), get_args(hint)
    if raw is None:
        return None
    if origin in (Union, types.UnionType):
        present = [arg for arg in args if arg is not type(None)]
        return _decode(present[0], raw) if len(present) == 1 else raw
    if origin is tuple:
        inner = [args[0]] * len(raw) if len(args) == 2 and args[1] is Ellipsis else args
        return tuple(_decode(hint_, item) for hint_, item in zip(inner, raw, strict=True))
    if isinstance(origin, type) and issubclass(origin, typing.Mapping):
        return {key: _decode(args[1], item) for key, item in raw.items()}
    if dataclasses.is_dataclass(hint):
        return decode(typing.cast(type, hint), raw)
    return raw
