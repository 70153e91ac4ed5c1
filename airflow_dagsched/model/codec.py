"""JSON files to values and back: what is refused names file, field and rule in one line."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec.structs import replace

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.model.dataflow import Dataflow, Step
from airflow_dagsched.model.foreign import drop_foreign
from airflow_dagsched.model.order import sort_naturally
from airflow_dagsched.model.ranges import Value

if TYPE_CHECKING:
    from pathlib import Path

V = TypeVar("V", bound=Value)

_ERROR = re.compile(r"(?P<rule>.*?)(?: - at `\$?\.?(?P<path>.*)`)?", re.DOTALL)
_NAMED = re.compile(r"Object (?P<what>contains unknown|missing required) field `(?P<field>.*)`", re.DOTALL)
_RULES = {"contains unknown": "unknown field", "missing required": "required field is missing"}


def read_file(kind: type[V], path: str | Path) -> V:
    """The value in the JSON file at ``path``; raises ``InvalidInput``, also if it can't be opened."""
    return decode_json(kind, read_content(path), str(path))


def read_content(path: str | Path) -> bytes:
    """What is in the file at ``path``; raises ``InvalidInput`` if it can't be opened."""
    try:
        # Not by ``pathlib``: with what that imports, a plan of JSON would take a twentieth longer to load.
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read()
    except OSError as error:
        raise InvalidInput(str(path), "", f"cannot be read: {error.strerror}") from None


def decode_json(kind: type[V], content: bytes, where: str) -> V:
    """The value in the JSON text ``content``; raises ``InvalidInput`` naming ``where``.

    Keys that start with ``x_`` are dropped where the format has fields; in free mappings they are data.
    """
    try:
        # Straight into types, which is much quicker than two passes; a foreign key may also be spelled with an escape.
        if b'"x_' not in content and b"\\u" not in content:
            return msgspec.json.decode(content, type=kind)
        return msgspec.convert(drop_foreign(kind, msgspec.json.decode(content)), kind)
    except msgspec.MsgspecError as error:
        raise InvalidInput(where, *_split_message(str(error))) from None
    except RecursionError:
        raise InvalidInput(where, "", "JSON is nested too deeply") from None
    except UnicodeError as error:
        raise InvalidInput(where, "", f"JSON is UTF-8: {error}") from None


def check_value(kind: type[V], value: V, where: str) -> V:
    """``value`` made in Python, with types and ranges checked as if read from a file."""
    try:
        return decode_json(kind, msgspec.json.encode(value), where)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(where, "", f"cannot be written as JSON: {error}") from None


def encode_value(value: Value) -> bytes:
    """Canonical JSON, one line: equal values give equal bytes."""
    return msgspec.json.encode(value, order="deterministic") + b"\n"


def format_json(value: Value) -> str:
    """Canonical JSON for people: indented."""
    return msgspec.json.format(encode_value(value), indent=1).decode() + "\n"


def digest_dataflow(dataflow: Dataflow) -> str:
    """sha256 of what the author declares, in any order: 64 hexadecimal digits.

    Runtimes, memory, bytes and partition listings are left out: they are measured anew at every run, and
    a plan stays the plan of its dataflow when they change.
    """
    lines = [b"dataflow %d %s" % (dataflow.version, msgspec.json.encode(dataflow.name))]
    parts: tuple[tuple[bytes, list[Any]], ...] = (
        (b"step", [_drop_measured(step) for step in dataflow.steps]),
        (b"channel", [replace(one, bytes=0) if one.bytes else one for one in dataflow.channels]),
        (b"task", [task.id for task in dataflow.tasks]),
        (b"dependency", list(dataflow.dependencies)),
    )
    encoder = msgspec.json.Encoder(order="deterministic")
    for kind, values in parts:
        # Sorted as text: the order of an author's lists means nothing.
        found = sorted(encoder.encode_lines(values).splitlines())
        if found:
            lines.append(kind + b" " + (b"\n" + kind + b" ").join(found))
    return hashlib.sha256(b"\n".join(lines)).hexdigest()


def _drop_measured(step: Step) -> Step:
    bare = replace(step, runtime_s=0.0, memory_mb=0)
    if not (step.pinned or step.sources):
        return bare
    sources = (replace(source, partitions=()) for source in step.sources)
    return replace(
        bare,
        pinned=tuple(sort_naturally(set(step.pinned))),
        sources=tuple(sorted(sources, key=msgspec.json.encode)),
    )


def _split_message(message: str) -> tuple[str, str]:
    """Field path and rule of a message such as ``Expected `int` >= 1 - at `$.steps[0].cores```."""
    match = _ERROR.fullmatch(message)
    rule, path = (match["rule"], match["path"] or "") if match else (message, "")
    named = _NAMED.fullmatch(rule)
    if not named:
        return path, _join_lines(rule)
    return _join_lines(".".join(part for part in (path, named["field"]) if part)), _RULES[named["what"]]


def _join_lines(text: str) -> str:
    return " ".join(text.split())
