"""Whether two tables hold the same rows, in any order, floating point to 1e-9 relative."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow.dataset

TOLERANCE = 1e-9
Row = tuple[Any, ...]


def read_rows(table: Path) -> list[Row]:
    """Rows of a Parquet table with or without partition folders, columns by name, sorted."""
    found = pyarrow.dataset.dataset(table, format="parquet", partitioning="hive").to_table()
    columns = [found.column(name).to_pylist() for name in sorted(found.column_names)]
    return sorted(zip(*columns, strict=True), key=_key)


def difference(one: Path, other: Path) -> str:
    """The first difference between two tables in words; empty if there is none."""
    left, right = read_rows(one), read_rows(other)
    if len(left) != len(right):
        return f"{len(left)} rows in {one}, {len(right)} in {other}"
    unequal = (pair for pair in zip(left, right, strict=True) if not same(*pair))
    return next((f"{a} in {one}, {b} in {other}" for a, b in unequal), "")


def same(one: Row, other: Row) -> bool:
    """Whether two rows are equal."""
    return len(one) == len(other) and all(_same(a, b) for a, b in zip(one, other, strict=True))


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=TOLERANCE) or (math.isnan(one) and math.isnan(other))
    return bool(one == other)


def _key(row: Row) -> tuple[list[str], list[str]]:
    """Exact columns first; floats rounded, so that the last digits don't decide the order."""
    exact = [str(value) for value in row if not isinstance(value, float)]
    return exact, [f"{value:.6g}" for value in row if isinstance(value, float)]
