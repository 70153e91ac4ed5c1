"""A plan in which today, and now, are values that nobody knows yet.

::

    asked for                                    optimised with the time of the look    with a time that is not known
    CASE WHEN current_date() = day1              b                                      CASE WHEN input[0] = day1
         THEN a ELSE b END                                                                   THEN a ELSE b END

The optimizer puts the time into a plan and leaves out what it makes needless. Executed after midnight, the same plan
may take another column.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame

from airflow_dagsched.spark.java_objects import find_class, iterate_items, make_scala_map


def hide_time(df: DataFrame, plan: Any, pattern: Any) -> Any:
    """The analysed ``plan`` with a value of its type for each time that it asks for: to be looked at, not executed.

    :param pattern: Spark's, of what is known when a plan is optimised: today, now, the user.
    """
    bound = find_class(df.sparkSession, "org.apache.spark.sql.catalyst.expressions.BoundReference")
    times = {*_find_times(plan, pattern)}
    # Each its own: the date of one zone is not that of another.
    unknown = {time: bound(at, time.dataType(), time.nullable()) for at, time in enumerate(times)}
    return plan.transformAllExpressionsWithSubqueries(make_scala_map(df.sparkSession, unknown.items()))


def _find_times(plan: Any, pattern: Any) -> Iterator[Any]:
    if not plan.containsPattern(pattern):
        return
    for expression in iterate_items(plan.expressions()):
        yield from _find_within(expression, pattern)
    for below in (plan.children(), plan.subqueries()):
        for each in iterate_items(below):
            yield from _find_times(each, pattern)


def _find_within(expression: Any, pattern: Any) -> Iterator[Any]:
    if expression.nodePatterns().contains(pattern):
        yield expression
    elif expression.containsPattern(pattern):
        for child in iterate_items(expression.children()):
            yield from _find_within(child, pattern)
