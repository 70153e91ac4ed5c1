"""Conditions as text, for applications that come later: SQL over the names of a dataset's columns.

::

    a plan's      input[3] = AA  ──written──>  (carrier = 'AA')  ──read, where it is written the same again──>  rows
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame

from airflow_dagsched.spark.java_objects import iterate_items
from airflow_dagsched.spark.session.plan_columns import Conditions, find_use, make_leaf
from airflow_dagsched.spark.session.plan_conditions import put_columns

_MARK = "dagsched_asked"


def write_conditions(df: DataFrame, conditions: Conditions | None) -> frozenset[str]:
    """Those of ``conditions``, which are over the columns of ``df``, that mean the same wherever they are read.

    Not that a value is there: Spark asks that wherever it is compared with anything.
    """
    telling = [each for each in (conditions or {}).values() if each.nodeName() != "IsNotNull"]
    lasting = [each for each in telling if _is_lasting(each)]
    if not lasting:
        return frozenset()
    # Of a leaf: without the name of where they come from.
    columns = make_leaf(df).output().apply
    return frozenset(str(put_columns(df, each, columns).sql()) for each in lasting)


def _is_lasting(expression: Any) -> bool:
    # How a point in time is written depends on the session's time zone.
    is_moment = expression.dataType().typeName() == "timestamp"
    return not is_moment and all(map(_is_lasting, iterate_items(expression.children())))


def select_rows(df: DataFrame, written: Iterable[str]) -> DataFrame | None:
    """The rows of ``df`` that fulfil these conditions, which were written; None where they mean others here."""
    asked = sorted(written)
    marked = df.alias(_MARK)
    try:
        use = find_use(reduce(DataFrame.where, asked, marked), marked, _MARK)
        again = write_conditions(df, None if use is None else use.conditions)
    except (AnalysisException, ParseException):
        return None
    return reduce(DataFrame.where, asked, df) if again.issuperset(asked) else None
