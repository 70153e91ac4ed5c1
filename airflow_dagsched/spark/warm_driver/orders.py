"""What the host tells the keeper, and what the keeper answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_dagsched.launch.protocol.wire import decode_dataclass, encode_plain, load_json


@dataclass(frozen=True, slots=True)
class Order:
    """``prepare`` for a run, ``clean`` after it, or ``stop`` Spark."""

    kind: str
    environment: Mapping[str, str] | None = None
    """Of the run that is prepared."""
    sizes: Mapping[str, float] = field(default_factory=dict)
    """Setting -> what the run asks for."""


@dataclass(frozen=True, slots=True)
class Answer:
    """How the application stands afterwards."""

    application: str = ""
    trouble: str = ""
    """Why no run can be served, or no other one; empty: it can."""
    heap_mb: int = 0
    """That Java has in use, collected."""


def encode_order(value: Order | Answer) -> str:
    """As it goes to the other process."""
    return json.dumps(encode_plain(value))


def decode_order(text: str) -> Order:
    """What ``encode_order`` made; between two processes of one program nothing else comes."""
    return decode_dataclass(Order, _load(text))


def decode_answer(text: str) -> Answer:
    """What ``encode_order`` made."""
    return decode_dataclass(Answer, _load(text))


def _load(text: str) -> Any:
    return load_json(text)
