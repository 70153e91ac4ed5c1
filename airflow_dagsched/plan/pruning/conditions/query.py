"""What a SQL query says of the tables it reads: the condition its own ``WHERE`` puts on each, and when it is empty.

    SELECT o.id FROM orders o LEFT JOIN rates r ON ... WHERE o.day = '2013-01-01' AND r.kind = 'x'

    orders: day = '2013-01-01'       rates: true (a row of orders without rates would appear)

Both are conservative: a clause not understood puts no condition, and never makes anything empty.
Emptiness after Spark's ``PropagateEmptyRelation``.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from airflow_dagsched.plan.pruning.conditions.condition import ALWAYS, Condition, Some
from airflow_dagsched.plan.pruning.conditions.where import DIALECT, Node, Scope, translate_expression
from airflow_dagsched.plan.pruning.emptiness import Causes, find_causes_of_all, find_causes_of_any

QUERIES = frozenset({"Select", "Union", "Except", "Intersect", "Subquery"})
"""Kinds of statements that have rows and do nothing else."""
_WRITES = frozenset({"Insert", "Create"})
# fmt: off
_ROW_BY_ROW = frozenset(
    {
        "Alias",
        "Column",
        "Identifier",
        "Star",
        "Literal",
        "Null",
        "Boolean",
        "Paren",
        "DataType",
        "DataTypeParam",
        "Add",
        "Sub",
        "Mul",
        "Div",
        "Mod",
        "Neg",
        "EQ",
        "NEQ",
        "LT",
        "LTE",
        "GT",
        "GTE",
        "Is",
        "Not",
        "In",
        "Between",
        "And",
        "Or",
        "Cast",
        "TryCast",
        "Coalesce",
        "Case",
        "If",
        "Lower",
        "Upper",
        "Concat",
        "Trim",
        "Abs",
        "Round",
    }
)
"""What makes one row of one row. Anything else in a select list may be an aggregate: a row even of nothing."""
# fmt: on
_GROUPS_OF_NOTHING = frozenset({"Tuple", "Rollup", "Cube", "GroupingSets"})
"""With ``()`` among the groups there is a row of no rows."""
_PLAIN_JOINS = frozenset({"", "INNER", "CROSS"})


class Query(Struct, frozen=True):
    """Facts of one SQL text; names of tables in lower case, as written in it."""

    conditions: Mapping[str, Condition]
    """Of each table it reads: rows for which it cannot be true are of no matter."""
    empty_if: Causes
    """Over the tables; of a statement that writes, or of which it is not known: never."""


NOTHING_KNOWN = Query({}, ())


def read_query(sql: str) -> Query:
    """The facts of ``sql``, one rendered statement. Of what cannot be read nothing is known."""
    import sqlglot

    try:
        statements = sqlglot.parse(sql, dialect=DIALECT)
        root = statements[0] if len(statements) == 1 else None
        return NOTHING_KNOWN if root is None else _gather_facts(root)
    # A query that only Spark understands, or one of very deep nesting, still runs: it is merely not pruned by.
    except (sqlglot.errors.SqlglotError, RecursionError):
        return NOTHING_KNOWN


def _gather_facts(root: Node) -> Query:
    kind = type(root).__name__
    if kind in _WRITES and root.expression is not None and type(root.expression).__name__ in QUERIES:
        return Query(_gather_conditions(root), ())
    return Query(_gather_conditions(root), _find_causes(root, {})) if kind in QUERIES else NOTHING_KNOWN


def _gather_conditions(query: Node) -> dict[str, Condition]:
    """One read of a table twice needs what either needs. A name of a ``WITH`` counts as a table: nothing has it."""
    found: dict[str, list[Condition]] = {}
    for node in query.walk():
        # A hint names a table without reading it.
        if type(node).__name__ == "Table" and type(node.parent).__name__ != "JoinHint":
            found.setdefault(read_table_name(node), []).append(_scan_condition(node))
    return {name: each[0] if len(each) == 1 else Some(tuple(each)) for name, each in found.items()}


def read_table_name(table: Node) -> str:
    """``db.orders`` as written, in lower case."""
    return ".".join(part.name.lower() for part in table.parts)


def _scan_condition(table: Node) -> Condition:
    """The ``WHERE`` right above the scan, where each row of the result that it tests comes from a row of ``table``."""
    clause = table.parent
    select = clause and clause.parent
    if type(clause).__name__ not in ("From", "Join") or type(select).__name__ != "Select" or _is_changed(table):
        return ALWAYS
    where = select.args.get("where")
    # A lateral view's columns may hide the table's: a name in WHERE may then mean either.
    if where is None or select.args.get("laterals") or not _is_preserved(clause, select):
        return ALWAYS
    return translate_expression(where.this, Scope({}, table.alias_or_name.lower()))


def _is_changed(table: Node) -> bool:
    """Sampled, pivoted, of another time: the scan is not of the table's rows as they are."""
    alias = table.args.get("alias")
    renamed = alias is not None and alias.args.get("columns")
    # Whatever sqlglot knows besides the name: samples, pivots, time travel, and what later versions add.
    more = any(value for name, value in table.args.items() if name not in ("this", "db", "catalog", "alias"))
    return bool(more or renamed) or type(table.this).__name__ != "Identifier"


def _is_preserved(clause: Node, select: Node) -> bool:
    """Whether no join of the select makes up rows in which the columns of this clause's table are null."""
    joins = select.args.get("joins") or []
    at = next((at for at, join in enumerate(joins) if join is clause), -1)
    if at >= 0 and not (_is_plain(joins[at]) or _is_right(joins[at])):
        return False
    # A later RIGHT or FULL join makes rows in which all tables before it are null.
    return all(_is_plain(join) or join.side == "LEFT" for join in joins[at + 1 :])


def _is_plain(join: Node) -> bool:
    return not join.side and join.kind in _PLAIN_JOINS


def _is_right(join: Node) -> bool:
    return join.side == "RIGHT" and join.kind in ("", "OUTER")


def _find_causes(query: Node, names: Mapping[str, Causes]) -> Causes:
    # Inner names hide outer ones, as in SQL.
    names = {**names, **_resolve_common_tables(query, names)}
    match type(query).__name__:
        case "Subquery":
            # What stands behind the parentheses is not looked at.
            return () if query.args.get("pivots") or query.args.get("joins") else _find_causes(query.this, names)
        case "Select":
            return _find_select_causes(query, names)
        case "Union":
            return find_causes_of_all([_find_causes(query.left, names), _find_causes(query.right, names)])
        case "Intersect":
            return find_causes_of_any([_find_causes(query.left, names), _find_causes(query.right, names)])
        case "Except":
            return _find_causes(query.left, names)
        case "Table":
            return _find_table_causes(query, names)
        case _:
            return ()


def _find_table_causes(table: Node, names: Mapping[str, Causes]) -> Causes:
    name = read_table_name(table)
    return () if _is_changed(table) else names.get(name, (frozenset({name}),))


def _resolve_common_tables(query: Node, names: Mapping[str, Causes]) -> dict[str, Causes]:
    """Of the query's ``WITH``: each name sees those before it; of recursive ones nothing is known."""
    found: dict[str, Causes] = {}
    clause = query.args.get("with_")
    for each in clause.expressions if clause is not None else []:
        recursive = clause is not None and clause.args.get("recursive")
        # Of a recursive one the anchor may have rows where the whole seems to need itself.
        found[each.alias.lower()] = () if recursive else _find_causes(each.this, {**names, **found})
    return found


def _find_select_causes(select: Node, names: Mapping[str, Causes]) -> Causes:
    source = select.args.get("from_")
    if source is None or not _is_row_by_row(select):
        return ()
    found = _find_causes(source.this, names)
    for join in select.args.get("joins") or []:
        found = _join_causes(found, join, _find_causes(join.this, names))
    return found


def _join_causes(left: Causes, join: Node, right: Causes) -> Causes:
    # Without rows on the right an anti join keeps all of the left.
    if join.kind == "ANTI" or (join.side == "LEFT" and join.kind != "SEMI"):
        return left
    if join.side == "RIGHT":
        return right
    if join.side == "FULL":
        return find_causes_of_all([left, right])
    return find_causes_of_any([left, right]) if join.kind in {*_PLAIN_JOINS, "SEMI"} else ()


def _is_row_by_row(select: Node) -> bool:
    """Whether no row comes of no rows: grouped by something, or without aggregates."""
    group = select.args.get("group")
    if group is not None:
        plain = all(type(item).__name__ not in _GROUPS_OF_NOTHING for item in group.expressions)
        more = any(value for name, value in group.args.items() if name not in ("expressions", "all"))
        named = bool(group.expressions) if not group.args.get("all") else _has_plain_column(select)
        return named and plain and not more  # of no rows there are no groups
    nodes = (node for item in select.expressions for node in item.walk())
    return select.args.get("having") is None and all(type(node).__name__ in _ROW_BY_ROW for node in nodes)


def _has_plain_column(select: Node) -> bool:
    """Then ``GROUP BY ALL`` groups by it; without any, all may be aggregates, and the one group is there always."""
    return any(type(item.unalias()).__name__ == "Column" for item in select.expressions)
