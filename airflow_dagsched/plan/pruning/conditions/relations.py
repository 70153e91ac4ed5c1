"""Which tables and views a SQL query reads, by their names: those of its ``WITH`` are its own.

WITH few AS (SELECT * FROM orders), orders AS (SELECT * FROM few) SELECT * FROM orders JOIN db.rates

orders, which few reads (the second orders is the WITH's own), and db.rates
"""

from __future__ import annotations

from collections.abc import Iterator

from airflow_dagsched.plan.pruning.conditions.query import QUERIES, read_table_name
from airflow_dagsched.plan.pruning.conditions.where import DIALECT, Node


def read_relations(sql: str) -> frozenset[str] | None:
    """Names in lower case, as written; None for what is not one query, or reads what has no name."""
    import sqlglot

    try:
        statements = sqlglot.parse(sql, dialect=DIALECT)
        root = statements[0] if len(statements) == 1 else None
        return None if root is None or type(root).__name__ not in QUERIES else _list_relations(root)
    except (sqlglot.errors.SqlglotError, RecursionError):
        return None


def _list_relations(query: Node) -> frozenset[str] | None:
    nodes = list(query.walk())
    tables = [node for node in nodes if type(node).__name__ == "Table"]
    # sqlglot keeps what it does not parse as a command: what that reads is not known.
    if any(type(node).__name__ == "Command" for node in nodes):
        return None
    if any(type(part).__name__ != "Identifier" for table in tables for part in table.parts):
        return None
    return frozenset(name for table in tables if (name := read_table_name(table)) not in _list_own_names(table))


def _list_own_names(node: Node) -> Iterator[str]:
    """Names that a ``WITH`` around ``node`` gives: to its query all, to each of its own those before it."""
    while (parent := node.parent) is not None:
        clause = parent if type(parent).__name__ == "With" else parent.args.get("with_")
        if clause is not None and clause is not node:
            for each in clause.expressions:
                if each is node:
                    break
                yield each.alias.lower()
        node = parent
