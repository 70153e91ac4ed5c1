"""Fingerprint of a flow: another one is another epoch. So two looks at one DAG file must find one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

Parts = Mapping[str, str]
"""What a part is called -> hex digest of it."""


@dataclass(frozen=True, slots=True)
class FlowCode:
    """What a flow is, part by part: to compare it, and to say where it differs."""

    steps: Mapping[str, Parts]
    """Code and arguments, as the author wrote them."""
    settings: Parts
    """What the author says of the stream, its sources, queries, sizes and Spark, and the version of this package."""


def fingerprint_step(parts: Parts) -> str:
    """Hex digest of a step's code and arguments."""
    return hash_value(dict(parts))


def fingerprint_flow(code: FlowCode) -> str:
    """Hex digest of all of it."""
    return hash_value([{name: dict(parts) for name, parts in code.steps.items()}, dict(code.settings)])


def list_differences(one: FlowCode, other: FlowCode) -> Iterator[tuple[str, str]]:
    """Steps and their parts that are not equal in both; of settings the step is empty."""
    for part in _list_unequal(one.settings, other.settings):
        yield "", part
    for step in {**one.steps, **other.steps}:
        for part in _list_unequal(one.steps.get(step, {}), other.steps.get(step, {})):
            yield step, part


def _list_unequal(one: Parts, other: Parts) -> tuple[str, ...]:
    return tuple(part for part in {**one, **other} if one.get(part) != other.get(part))


def hash_value(value: object) -> str:
    """Hex digest of a value that JSON has, texts for what it has not."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()
