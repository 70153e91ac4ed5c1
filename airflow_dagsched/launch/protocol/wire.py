"""Frozen dataclasses to JSON and back, with nothing but the standard library.

The driver program may run where only Python and PySpark are installed, so what crosses that process
boundary must be readable there. Unknown fields are ignored on reading: a newer writer stops an older
reader by its version number, not by a stray field.

What another process wrote is read by :func:`parse_dataclass`, or :func:`fit_dataclass` where its JSON was parsed
already: it is of its type as deep as it goes, with texts that every database and file system takes and numbers that are
numbers, or it is None. :func:`decode_dataclass` looks at nothing: it is for what this process has just made, or knows
by its digest.
"""

from __future__ import annotations

import dataclasses
import json
import math
import sys
import types
import typing
from collections.abc import Callable, Hashable, Mapping
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from airflow_dagsched.launch.protocol.printable import is_clean

T = TypeVar("T")

_SCALARS = (str, int, float)

DEEPEST = 100
"""Levels of a value of any type: what looks through a value calls itself once or twice for each."""
LARGEST = sys.float_info.max
"""JSON has larger numbers: no clock, and no arithmetic, takes them."""
LONGEST = 2**63
"""Airflow sends integers below it; a step may return one that is less than twice as large."""


class Unreadable(ValueError):
    """A text that is torn, nested too deep, or something else than it should be."""


def encode_plain(value: Any) -> Any:
    """Return ``value`` (dataclasses, tuples, mappings, JSON scalars) as plain JSON values."""
    if value is None or isinstance(value, _SCALARS):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: encode_plain(getattr(value, name)) for name in _list_names(type(value))}
    if isinstance(value, Mapping):
        return {str(key): encode_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        # Sets come in another order in each process; equal manifests are equal bytes.
        return [encode_plain(item) for item in (sorted(value) if isinstance(value, (set, frozenset)) else value)]
    return value


def decode_dataclass(cls: type[T], raw: Any) -> T:
    """Return ``raw`` (parsed JSON) as an instance of the dataclass ``cls``.

    Raises ``TypeError`` where a field without a default is missing, or something is no object or list that should be.
    """
    if not isinstance(raw, Mapping):
        raise TypeError(f"an object is expected, not {type(raw).__name__}")
    known = {
        name: _decode_with(decode, raw[name])
        for name, decode in _make_decoders(typing.cast(Hashable, cls))
        if name in raw
    }
    return cls(**known)


def load_json(text: str) -> Any:
    """The JSON value in ``text``. Raises ``Unreadable``."""
    try:
        return json.loads(text)
    # Python's parser calls itself for each level of the JSON.
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{type(error).__name__}: {error}") from None


def parse_dataclass(cls: type[T], text: str) -> T | None:
    """The dataclass ``cls`` from JSON; None where the text is torn, empty, or something else than it should be."""
    try:
        return fit_dataclass(cls, load_json(text))
    except Unreadable:
        return None


def fit_dataclass(cls: type[T], raw: Any) -> T | None:
    """The dataclass ``cls`` from parsed JSON; None where that is something else than it should be."""
    try:
        value = decode_dataclass(cls, raw)
    # Whatever a field's conversion may raise: what another process wrote can be anything.
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return None
    return value if _make_check(typing.cast(Hashable, cls))(value) else None


def is_plain(value: Any, levels: int = DEEPEST) -> bool:
    """Whether ``value`` is JSON of so many levels at most, with clean texts and finite numbers."""
    if isinstance(value, str):
        return is_clean(value)
    if isinstance(value, Mapping):
        return levels > 0 and all(is_clean(key) and is_plain(item, levels - 1) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return levels > 0 and all(is_plain(item, levels - 1) for item in value)
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or (isinstance(value, int) and -LONGEST <= value < 2 * LONGEST)


@cache
def _make_check(hint: Any) -> Callable[[Any], bool]:
    """A function that says whether a value is of the type ``hint``, as deep as JSON goes."""
    # Made once a type: to look at the hint again for each value takes most of the time of a read.
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any:
        return is_plain
    if origin is typing.Literal:
        return lambda value: value in args
    if origin in (Union, types.UnionType):
        return _make_union_check(args)
    if origin is tuple:
        return _make_tuple_check(args)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        check_key, check_item = map(_make_check, args)
        return lambda value: (
            isinstance(value, Mapping) and all(check_key(key) and check_item(item) for key, item in value.items())
        )
    if dataclasses.is_dataclass(hint):
        return _make_dataclass_check(typing.cast(type, hint))
    return _SCALAR_CHECKS.get(hint) or (lambda value: isinstance(value, hint))


def _make_union_check(args: tuple[Any, ...]) -> Callable[[Any], bool]:
    checks = [_make_check(each) for each in args if each is not types.NoneType]
    has_none = len(checks) < len(args)
    if len(checks) == 1:
        (check,) = checks
        return lambda value: (value is None and has_none) or check(value)
    return lambda value: (value is None and has_none) or any(check(value) for check in checks)


def _make_tuple_check(args: tuple[Any, ...]) -> Callable[[Any], bool]:
    checks = [_make_check(each) for each in args if each is not Ellipsis]
    if len(args) == 2 and args[1] is Ellipsis:
        return lambda value: isinstance(value, tuple) and all(map(checks[0], value))
    return lambda value: (
        isinstance(value, tuple)
        and len(value) == len(checks)
        and all(check(each) for check, each in zip(checks, value, strict=True))
    )


def _make_dataclass_check(kind: type) -> Callable[[Any], bool]:
    checks = [(name, _make_check(hint)) for name, hint in _read_hints(typing.cast(Hashable, kind)).items()]

    def check(value: Any) -> bool:
        if not isinstance(value, kind):
            return False
        # No ``all`` over a generator: half of the time would be its own.
        for name, check_field in checks:  # noqa: SIM110
            if not check_field(getattr(value, name)):
                return False
        return True

    return check


def _is_integer(value: Any) -> bool:
    # To Python True is an int.
    return isinstance(value, int) and not isinstance(value, bool) and -LONGEST <= value < LONGEST


def _is_number(value: Any) -> bool:
    # The comparison is false of NaN, too.
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= LARGEST


_SCALAR_CHECKS: Mapping[Any, Callable[[Any], bool]] = {str: is_clean, int: _is_integer, float: _is_number}


@cache
def _read_hints(cls: Hashable) -> dict[str, Any]:
    kind = typing.cast(type, cls)
    hints = get_type_hints(kind)
    return {f.name: hints[f.name] for f in dataclasses.fields(kind)}


@cache
def _list_names(kind: Hashable) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(typing.cast(Any, kind)))


@cache
def _make_decoders(cls: Hashable) -> tuple[tuple[str, Callable[[Any], Any] | None], ...]:
    """Each field's name and decoder."""
    return tuple((name, _make_decoder(hint)) for name, hint in _read_hints(cls).items())


@cache
def _make_decoder(hint: Any) -> Callable[[Any], Any] | None:
    """A function that makes a value of the type ``hint`` of parsed JSON; None where JSON has it as it is."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        present = [arg for arg in args if arg is not type(None)]
        return _make_decoder(present[0]) if len(present) == 1 else None
    if origin is tuple:
        return _make_tuple_decoder(args)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        decode_item = _make_decoder(args[1])
        return lambda raw: {_decode_key(args[0], key): _decode_with(decode_item, item) for key, item in raw.items()}
    if dataclasses.is_dataclass(hint):
        return lambda raw: decode_dataclass(typing.cast(type, hint), raw)
    return None


def _make_tuple_decoder(args: tuple[Any, ...]) -> Callable[[Any], Any]:
    decoders = [_make_decoder(each) for each in args if each is not Ellipsis]
    is_endless = len(args) == 2 and args[1] is Ellipsis

    def decode(raw: Any) -> tuple[Any, ...]:
        # A text would pass for the list of its letters.
        if not isinstance(raw, (list, tuple)):
            raise TypeError(f"a list is expected, not {type(raw).__name__}")
        inner = decoders * len(raw) if is_endless else decoders
        return tuple(_decode_with(each, item) for each, item in zip(inner, raw, strict=True))

    return decode


def _decode_with(decode: Callable[[Any], Any] | None, raw: Any) -> Any:
    return raw if raw is None or decode is None else decode(raw)


def _decode_key(hint: Any, key: Any) -> Any:
    """JSON has texts for keys."""
    return int(key) if hint is int else key
