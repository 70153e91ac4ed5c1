"""The conditions that a plan puts on all rows of a dataset that it looks at, in a form that plans can be compared by.

::

    Project [b]                     of the leaf     over positions
    +- Filter a > 1 AND f(b) = 2    a > 1           input[0] > 1
       +- LogicalRDD [a, b]

Only such as cannot fail are read: one that a plan asks of few rows, as another has let the rest out before, would make
it fail where it is asked of all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame

from airflow_dagsched.spark.java_objects import find_class, iterate_items, make_scala_map
from airflow_dagsched.spark.session.sessions import make_frame

TOTAL = frozenset({
    "And", "BoundReference", "Contains", "EndsWith", "EqualNullSafe", "EqualTo", "GreaterThan", "GreaterThanOrEqual",
    "In", "InSet", "IsNotNull", "IsNull", "LessThan", "LessThanOrEqual", "Literal", "Not", "Or", "StartsWith",
})  # fmt: skip
"""Expressions that have a value for whatever values they are given, the same each time."""
_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"


def read_conditions(df: DataFrame, leaf: Any, filters: Iterable[Any]) -> dict[Any, Any]:
    """Those of ``filters``, which stand above ``leaf``, that ask for columns of it alone and cannot fail.

    Returns ``Conditions``: see ``plan_columns``.
    """
    columns = find_class(df.sparkSession, f"{_EXPRESSIONS}.package$AttributeSeq")(leaf.output())
    bind = find_class(df.sparkSession, f"{_EXPRESSIONS}.BindReferences").bindReference
    parts = (part for condition in filters for part in _split(condition))
    bound = (bind(part, columns, True) for part in parts)
    return {each.canonicalized(): each for each in bound if _is_total(each)}


def filter_rows(df: DataFrame, conditions: Mapping[Any, Any]) -> DataFrame:
    """The rows of ``df`` that fulfil all of ``conditions``, which are over its columns."""
    plan = df._jdf.queryExecution().analyzed()
    both = find_class(df.sparkSession, f"{_EXPRESSIONS}.And")
    kept = find_class(df.sparkSession, "org.apache.spark.sql.catalyst.plans.logical.Filter")
    columns = plan.output().apply
    unbound = [put_columns(df, each, columns) for each in conditions.values()]
    return make_frame(kept(reduce(both, unbound), plan), df.sparkSession)


def put_columns(df: DataFrame, condition: Any, columns: Callable[[int], Any]) -> Any:
    """The ``condition`` over these columns in the places of the dataset's positions."""
    leaves = (leaf for leaf in iterate_items(condition.collectLeaves()) if _get_kind(leaf) == "BoundReference")
    return condition.transform(make_scala_map(df.sparkSession, {leaf: columns(leaf.ordinal()) for leaf in leaves}))


def _split(condition: Any) -> Iterator[Any]:
    if _get_kind(condition) != "And":
        yield condition
        return
    yield from _split(condition.left())
    yield from _split(condition.right())


def _is_total(condition: Any) -> bool:
    return _get_kind(condition) in TOTAL and all(map(_is_total, iterate_items(condition.children())))


def _get_kind(expression: Any) -> str:
    return str(expression.getClass().getSimpleName())
