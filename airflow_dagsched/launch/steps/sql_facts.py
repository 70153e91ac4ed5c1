"""What the text of a SQL step says of its inputs, named as the planner names them.

SELECT o.* FROM orders o JOIN parquet.`/data/rates` r ON ... WHERE r.day = '2013-01-01'

orders, a view    -> dataset ``orders/``              the join is empty if either is
/data/rates       -> its declared table, of which it needs the first of January
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from airflow_dagsched.launch.protocol.calls import Output
from airflow_dagsched.launch.protocol.payload import Call
from airflow_dagsched.launch.protocol.tables import Table
from airflow_dagsched.plan.pruning.conditions.condition import Condition
from airflow_dagsched.plan.pruning.conditions.query import read_query
from airflow_dagsched.plan.pruning.conditions.relations import read_relations
from airflow_dagsched.plan.pruning.emptiness import Causes
from airflow_dagsched.plan.pruning.steps import name_dataset


class SqlFacts(Struct, frozen=True):
    """Of one step."""

    conditions: Mapping[str, Condition]
    """Place of a declared table -> what the text asks of it."""
    empty_if: Causes
    """Over datasets and places; never, of a text that has a row even of nothing, or is not understood."""


def read_sql_facts(call: Call, reads: Iterable[Table]) -> SqlFacts:
    """The facts of a SQL step's rendered call."""
    query = read_query(call.sql or "")
    tables, views = _name_tables(reads), _name_views(call)
    conditions = {tables[name]: found for name, found in query.conditions.items() if name in tables}
    known = {**tables, **views}
    causes = (frozenset(known.get(name, name) for name in cause) for cause in query.empty_if)
    return SqlFacts(conditions, tuple(causes))


def has_declared_reads_only(call: Call, reads: Iterable[Table]) -> bool:
    """Whether a SQL step's rendered call is one query over inputs and declared tables, and no others."""
    found = read_relations(call.sql or "")
    return found is not None and found <= {*_name_tables(reads), *_name_views(call)}


def _name_tables(reads: Iterable[Table]) -> dict[str, str]:
    return {name: table.key for table in reads for name in _list_names(table)}


def _name_views(call: Call) -> dict[str, str]:
    inputs = {name: value for name, value in call.kwargs.items() if isinstance(value, Output)}
    # As Spark compares names, unless it is told to tell capitals apart.
    return {name.lower(): name_dataset(value.step, value.name) for name, value in inputs.items()}


def _list_names(table: Table) -> tuple[str, ...]:
    """How a query may name the table, in lower case."""
    if not table.is_path:
        return (table.location.lower(),)
    return tuple(f"{table.format}.{location}".lower() for location in (table.location, table.key))
