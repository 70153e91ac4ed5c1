"""What a batch has in each window, condensed in one pass over its rows: for epochs to be compared by."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql.functions import col, count, expr, lit, pmod, try_sum, unix_micros, xxhash64
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DoubleType,
    FloatType,
    IntegralType,
    MapType,
    NumericType,
    StructType,
    VariantType,
)

from airflow_dagsched.spark.session.observed import quote_name
from airflow_dagsched.spark.streams.output_window import OutputWindow
from airflow_dagsched.switch.comparing.summary import Summaries, Summary

_MICROS = 1_000_000
"""In a second."""
_WINDOW, _ROWS, _DIGEST = range(3)
"""Places of what is no sum among the columns that are asked for."""


def condense_windows(rows: DataFrame, column: OutputWindow, length_s: float) -> Summaries:
    """Each of the flow's windows, of so many seconds, that has rows -> what is in it."""
    fields = rows.schema.fields
    numbers = [each.name for each in fields if isinstance(each.dataType, NumericType)]
    exact = [each.name for each in fields if _is_exact(each.dataType)]
    sums = [_sum_digits(each.name, each.dataType) for each in fields if each.name in numbers]
    # Added, not xored: two equal rows would come to nothing.
    digest = try_sum(xxhash64(lit(0), *map(_name_column, exact)).cast("decimal(20,0)")).cast("string")
    grouped = rows.groupBy(_find_end(column, round(length_s * _MICROS)))
    found = grouped.agg(count(lit(1)), digest, *sums).collect()
    return {row[_WINDOW] / _MICROS: _make_summary(row, numbers) for row in found}


def _make_summary(row: Row, numbers: list[str]) -> Summary:
    # Numbered, not named: the author's columns may be called anything.
    return Summary(row[_ROWS], dict(zip(numbers, row[_DIGEST + 1 :], strict=True)), row[_DIGEST])


def _find_end(column: OutputWindow, length: int) -> Column:
    """As ``OutputWindow.find_flow_window``, in microseconds."""
    micros = unix_micros(expr(column.path))
    if column.part == "time":
        return micros - pmod(micros, lit(length)) + lit(length)
    moment = micros + lit(round(column.shift_s * _MICROS))
    return moment + pmod(-moment, lit(length))


def _sum_digits(name: str, kind: DataType) -> Column:
    value = _name_column(name)
    # Of whole numbers a sum may be too large for their type.
    return try_sum(value.cast("decimal(20,0)") if isinstance(kind, IntegralType) else value).cast("string")


def _name_column(name: str) -> Column:
    return col(quote_name(name))


def _is_exact(kind: DataType) -> bool:
    """Whether equal values have one digest, and the order of rows changes none; Spark takes none of a map."""
    if isinstance(kind, StructType):
        return all(_is_exact(each.dataType) for each in kind.fields)
    if isinstance(kind, ArrayType):
        return _is_exact(kind.elementType)
    return not isinstance(kind, (MapType, VariantType, FloatType, DoubleType))
