"""Conditions as text, for applications that come later: SQL over the names of a dataset's columns.

::

    a plan's      input[3] = AA  ──written──>  (carrier = 'AA')  ──read, where it is written the same again──>  rows
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import partial, reduce
from typing import Any

from pyspark.sql import DataFrame

from airflow_dagsched.spark.java_objects import iterate_items
from airflow_dagsched.spark.session.plan_columns import Conditions, find_use, make_leaf
from airflow_dagsched.spark.session.plan_conditions import put_columns

log = logging.getLogger(__name__)

_MARK = "dagsched_asked"
LONGEST = 500
"""Characters of a condition that is worth writing: it goes into the history, and is read by people."""
KINDS = frozenset({
    "boolean", "byte", "date", "decimal", "double", "float", "integer", "long", "short", "string", "timestamp_ntz",
})  # fmt: skip
"""Types whose values are written alike in each session: not so a point in time, for the session has a time zone."""


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
    return frozenset(filter(_is_plain, (str(put_columns(df, each, columns).sql()) for each in lasting)))


def _is_lasting(expression: Any) -> bool:
    kind = str(expression.dataType().typeName()).partition("(")[0]
    return kind in KINDS and all(map(_is_lasting, iterate_items(expression.children())))


def _is_plain(written: str) -> bool:
    # What can't be shown may be shown as something else: two values with one text.
    return len(written) <= LONGEST and written.isprintable() and "\ufffd" not in written


def select_rows(df: DataFrame, written: Iterable[str]) -> tuple[DataFrame, tuple[str, ...]]:
    """The rows of ``df`` that fulfil these conditions, which were written; and those that are meant here as there."""
    asked = sorted(filter(partial(_means_itself, df), written))
    return reduce(DataFrame.where, asked, df), tuple(asked)


def _means_itself(df: DataFrame, written: str) -> bool:
    """Whether the condition, read in the session of ``df``, is written as it was."""
    marked = df.alias(_MARK)
    try:
        use = find_use(marked.where(written), marked, _MARK)
        return use is not None and written in write_conditions(df, use.conditions)
    except Exception as error:  # noqa: BLE001 - a condition that can't be read costs time, never an answer
        log.debug("all rows are stored, whatever %s: %s", written, error)
        return False
