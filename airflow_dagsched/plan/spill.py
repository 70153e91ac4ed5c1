"""A spill: apart from the other values of a plan, which a parse of a DAG file has no use for."""

from __future__ import annotations

from airflow_dagsched.model.ranges import Bytes, Id, Value


class Spill(Value, frozen=True, kw_only=True):
    """Pipelined channels of dataset ``(src, output)`` that were made buffered, to cut there."""

    src: Id
    output: str = ""
    dst: tuple[Id, ...]
    bytes: Bytes = 0
    reason: str
