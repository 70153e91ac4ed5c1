"""Stored rows that are some of a dataset's: nobody gets them before it is known that he asks for no others.

::

    the author's plan     Filter carrier = AA              executed     Filter carrier = AA
                          +- SubqueryAlias s__0                         +- Project [carrier, ...]
                             +- fails, whatever is asked of it             +- the rows that are stored

A column that is not there fails whoever computes it (``outputs.narrowed``). A row that is not there fails nobody: so
all of them do, in any plan but one that was looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from airflow_dagsched.spark.java_objects import iterate_items
from airflow_dagsched.spark.outputs.commits import NOT_STORED
from airflow_dagsched.spark.outputs.narrowed import restore_whole
from airflow_dagsched.spark.session.plan_columns import find_marked, name_values, project_columns, replace_nodes
from airflow_dagsched.spark.session.sessions import make_frame


def hold_back(rows: DataFrame) -> DataFrame:
    """A frame with the columns of ``rows``, in its session, that fails whatever of it is executed."""
    # Another one each time, as far as Spark knows: it asks nothing of the row before, and leaves it out of no plan.
    failing = sf.assert_true(sf.monotonically_increasing_id() < 0, NOT_STORED).isNull()
    return restore_whole(rows.sparkSession.range(0, 1, 1, 1).where(failing).select(), rows.schema)


def give_back(df: DataFrame, held: Mapping[str, DataFrame]) -> DataFrame:
    """``df`` over the rows that were held back, by the marks that their datasets carry in it."""
    plan = df._jdf.queryExecution().analyzed()
    over = [(node, _stand_in(rows, node)) for mark, rows in held.items() for node in find_marked(df, plan, mark)]
    return make_frame(replace_nodes(df, plan, over), df.sparkSession) if over else df


def _stand_in(rows: DataFrame, node: Any) -> Any:
    """The plan of ``rows`` with the columns of ``node``, under the names and ids that they have in its plan."""
    plan = rows._jdf.queryExecution().analyzed()
    named = name_values(rows, iterate_items(plan.output()), iterate_items(node.output()))
    return project_columns(rows, [*named], plan)
