"""The schema in a commit record."""

from __future__ import annotations

from pyspark.sql.types import StructType

from airflow_dagsched.launch.protocol.wire import load_json
from airflow_dagsched.spark.outputs.commits import Committed, OutputGone


def read_schema(committed: Committed) -> StructType:
    """The columns that were written. Raises ``OutputGone`` where the record does not say."""
    return _parse_schema(committed, committed.schema)


def read_whole(committed: Committed) -> StructType:
    """The columns that the step made, whether or not all were written. Raises ``OutputGone`` as ``read_schema``."""
    return _parse_schema(committed, committed.whole or committed.schema)


def _parse_schema(committed: Committed, text: str) -> StructType:
    try:
        return StructType.fromJson(load_json(text))
    # fromJson checks nothing: what it raises depends on what is wrong.
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise OutputGone(committed, f"its record has no schema that can be read ({type(error).__name__})") from None


def has_schema(committed: Committed) -> bool:
    """Whether the record says what the columns are."""
    try:
        return read_schema(committed) is not None and read_whole(committed) is not None
    except OutputGone:
        return False
