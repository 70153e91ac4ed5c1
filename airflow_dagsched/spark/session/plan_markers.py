"""Marks in a plan: which steps an execution would execute, and how often.

Rows handed over lazily carry an alias. It costs nothing, the optimizer drops it, and it is still in the
analysed plan of whatever the reader makes of them, in joins, views and subqueries::

    Join Inner, (id = id)
    :- SubqueryAlias clean__0        <- step clean, once
    +- SubqueryAlias clean__0        <- and twice: it has to be kept before this is executed

Where cached data stands in for a plan the marks below are gone: nothing is executed there.
"""

from __future__ import annotations

import re
from collections import Counter

from pyspark.sql import DataFrame, SparkSession

from airflow_dagsched.spark.java_objects import find_pattern
from airflow_dagsched.spark.session.sessions import plan_anew

_ALIAS = re.compile(r"SubqueryAlias `?(\w+__\d+)`?$", re.MULTILINE)
_NODE = re.compile(r"^[\s:|+-]*(\w+)(.*)$")
_PLAIN_COLUMNS = re.compile(r" \[(\w+#\d+L?( AS \w+#\d+L?)?(, )?)*\]")
# Row formats are not in it: they are parsed whole for one column, so reading them again is not cheap.
_COLUMNAR = re.compile(r"Relation [\w.`-]*\[.*\] (parquet|orc)$")


def make_mark(step: str, index: int) -> str:
    """The mark of the ``index``-th dataset, of step ``step``."""
    return f"{re.sub(r'[^0-9A-Za-z_]', '_', step)}__{index}"


def count_marks(df: DataFrame, session: SparkSession) -> Counter[str]:
    """How often each marked dataset would be executed if ``df`` were executed now."""
    return Counter(_ALIAS.findall(_print_plan(df, session)))


def _print_plan(df: DataFrame, session: SparkSession) -> str:
    # With what is cached put in: marks below that are gone. A new execution, for Spark computes one's plans only once.
    return str(plan_anew(df, session).withCachedData().toString())


def is_bare_scan(df: DataFrame) -> bool:
    """Whether the plan only takes rows and columns, as they are, out of columnar files."""
    plan = df._jdf.queryExecution().analyzed()
    lines = [match.groups() for line in plan.toString().splitlines() if (match := _NODE.match(line))]
    return bool(lines) and all(_is_plain(*line) for line in lines) and not _has_callbacks(df)


def _is_plain(node: str, rest: str) -> bool:
    if node == "Relation":
        return _COLUMNAR.match(node + rest) is not None
    return node in ("SubqueryAlias", "Filter") or (node == "Project" and _PLAIN_COLUMNS.fullmatch(rest) is not None)


def _has_callbacks(df: DataFrame) -> bool:
    """Whether the plan has functions of the author's, or ones that give other results another time."""
    plan = df._jdf.queryExecution().analyzed()
    # PLAN_EXPRESSION is a subquery, with a plan of its own.
    kinds = (find_pattern(df.sparkSession, name) for name in ("PYTHON_UDF", "SCALA_UDF", "PLAN_EXPRESSION"))
    return not plan.deterministic() or any(plan.containsPattern(kind) for kind in kinds)
