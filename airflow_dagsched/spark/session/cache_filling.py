"""The job that computes a persisted DataFrame, and does nothing else.

::

    count      a plan above the kept rows: three jobs, and Spark plans it anew after each
    here       one job: each partition is computed and kept, and its rows are counted on the way

In both ways the rows' own plan is on Spark's page of queries, and who listens to queries hears of it; here, of a
failure that Java has wrapped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession

from airflow_dagsched.spark.java_objects import find_class, find_object, make_action
from airflow_dagsched.spark.session.plan_columns import find_relation
from airflow_dagsched.spark.session.sessions import plan_anew

_ACTION = "keep"
"""The name of this action: for who listens to queries, and of its stages."""
_BUILDER, _RDD = "org.apache.spark.sql.execution.columnar.CachedRDDBuilder", "org.apache.spark.rdd.RDD"
# The rows in batches, as they are kept. Nobody needs to know how many batches there are, but it takes them all.
_COMPUTE = ((_BUILDER, "cachedColumnBuffers", _RDD), (_RDD, "count", "long"))
_WRAPPED = "java.lang.reflect.UndeclaredThrowableException"


@dataclass(frozen=True, slots=True)
class Filled:
    """What is kept of a DataFrame."""

    rows: int
    size: int
    """Bytes."""
    plan: Any
    """Java's plan, in which Spark has found what it keeps."""


def fill_cache(kept: DataFrame) -> Filled:
    """Compute and keep all rows of ``kept``, which is persisted. Raises what any action on it would."""
    execution = plan_anew(kept, kept.sparkSession)
    plan = execution.withCachedData()
    relation = find_relation(plan)
    # None, where a step beside has cleared Spark's cache since: then nothing can be filled.
    rows = None if relation is None else _compute(kept.sparkSession, execution, relation.cacheBuilder())
    return Filled(kept.count() if rows is None else rows, int(plan.stats().sizeInBytes()), plan)


def _compute(session: SparkSession, execution: Any, builder: Any) -> int | None:
    """Run the job; how many rows there are, where Spark is sure of it."""
    # Before 4.2 Spark adds up rows each time that a partition is computed: twice, where an executor was lost.
    if "materializedRowCount" not in dir(builder):
        return None
    _execute(session, execution, make_action(session, builder, *_COMPUTE))
    # Asked before the other: none are counted, and loaded, any more once somebody has cleared the cache.
    rows = int(builder.materializedRowCount())
    return rows if builder.isCachedColumnBuffersLoaded() else None


def _execute(session: SparkSession, execution: Any, action: Any) -> None:
    """Run ``action`` with the settings of the session, as an action of ``execution``."""
    queries, context = find_object(session, "org.apache.spark.sql.execution.SQLExecution"), session.sparkContext._jsc
    # Else its stages are named after Java's way to call a handle.
    context.setCallSite(_ACTION)
    try:
        queries.withNewExecutionId(execution, find_class(session, "scala.Some")(_ACTION), action)
        return
    except Py4JJavaError as error:
        thrown = error.java_exception
        if thrown.getClass().getName() != _WRAPPED:
            raise
    finally:
        context.clearCallSite()
    # Thrown by Java once more, without what it was wrapped in: so PySpark knows it, as it does an action's.
    find_class(session, "scala.util.Failure")(thrown.getCause()).get()
