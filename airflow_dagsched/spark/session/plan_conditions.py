"""The conditions that a plan puts on all rows of a dataset that it looks at, in a form that plans can be compared by.

::

    Project [b]                     of the leaf     over positions
    +- Filter a > 1 AND f(b) = 2    a > 1           input[0] > 1
       +- LogicalRDD [a, b]

Only such as cannot fail are read: one that a plan asks of few rows, as another has let the rest out before, would make
it fail where it is asked of all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame

from airflow_dagsched.spark.java_objects import find_class, iterate_items, make_scala_map
from airflow_dagsched.spark.session.plan_nodes import list_names, split_condition
from airflow_dagsched.spark.session.sessions import make_frame

TOTAL = frozenset({
    "And", "BoundReference", "Contains", "EndsWith", "EqualNullSafe", "EqualTo", "GreaterThan", "GreaterThanOrEqual",
    "In", "InSet", "IsNotNull", "IsNull", "LessThan", "LessThanOrEqual", "Literal", "Not", "Or", "StartsWith",
})  # fmt: skip
"""Expressions that have a value for whatever values they are given, the same each time."""
_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"


class Canonical:
    """An expression as equal ones are equal. Java is asked for its hash once, and not for each place in a table."""

    __slots__ = ("_expression", "_hash")

    def __init__(self, expression: Any) -> None:
        self._expression = expression.canonicalized()
        self._hash = hash(self._expression)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Canonical) and self._hash == other._hash and self._expression == other._expression


def read_conditions(df: DataFrame, leaf: Any, filters: Iterable[Any]) -> dict[Canonical, Any]:
    """Those of ``filters``, which stand above ``leaf``, that ask for columns of it alone and cannot fail.

    Returns ``Conditions``: see ``plan_columns``.
    """
    columns = find_class(df.sparkSession, f"{_EXPRESSIONS}.package$AttributeSeq")(leaf.output())
    bind = find_class(df.sparkSession, f"{_EXPRESSIONS}.BindReferences").bindReference
    parts = (part for condition in filters for part in iterate_items(split_condition(df.sparkSession, condition)))
    bound = (bind(part, columns, True) for part in parts)
    return {Canonical(each): each for each in bound if TOTAL.issuperset(list_names(df.sparkSession, each))}


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
    leaves = condition.collectLeaves()
    names = enumerate(list_names(df.sparkSession, leaves))
    places = (leaves.apply(at) for at, name in names if name == "BoundReference")
    return condition.transform(make_scala_map(df.sparkSession, ((leaf, columns(leaf.ordinal())) for leaf in places)))
