"""What the function of a stream's source may return."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import TimestampType

from airflow_dagsched.spark.steps.call_step import StepFault


def check_source_rows(answer: Any, event_time: str) -> DataFrame:
    """What the function of a source returned, if a watermark can be put on it. Raises ``StepFault``."""
    if not isinstance(answer, DataFrame):
        raise StepFault("is a source: it must return the DataFrame it is called with, or one made of it")
    types = {each.name.lower(): each.dataType for each in answer.schema}
    moment = types.get(event_time.lower())
    if moment is None:
        names = ", ".join(answer.columns)
        raise StepFault(f"returns no column {event_time!r}, which is its event_time: it has {names}")
    if not isinstance(moment, TimestampType):
        raise StepFault(
            f"returns {event_time!r}, its event_time, as {moment.simpleString()}, and windows are of timestamps: "
            f"return rows.withColumn({event_time!r}, col({event_time!r}).cast('timestamp'))"
        )
    return answer
