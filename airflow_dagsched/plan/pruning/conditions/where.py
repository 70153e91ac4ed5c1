"""SQL text to conditions: ``where=`` of a declared source, and the expressions in a query's ``WHERE``.

Parsed by sqlglot, which is loaded only when there is a text. What is not a comparison of a bare column with a
literal (functions, casts, columns of data, subqueries) becomes ``Unknown``: it leaves nothing out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from msgspec import Struct

from airflow_dagsched.plan.pruning.conditions.condition import (
    Comparison,
    Condition,
    Constant,
    Every,
    IsNull,
    Negation,
    NullKey,
    Operator,
    Some,
    Unknown,
    Value,
)
from airflow_dagsched.plan.pruning.conditions.readings import read_moment

DIALECT = "spark"
Node = Any
"""An expression of sqlglot, told by the name of its class: the library is loaded where there is a text to parse."""
Names = Mapping[str, datetime | str | None]
"""What names such as ``interval.start`` stand for in this run; None: the run has none."""
Read = tuple[Value | None]
"""A literal's value, which may be null."""

_SIGNS: dict[str, Operator] = {"EQ": "=", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}
_FLIPPED: dict[Operator, Operator] = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_WHOLE = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT"})
_TIMES = frozenset({"TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ", "TIMESTAMPNTZ"})


class Scope(Struct, frozen=True):
    """What the names in an expression mean."""

    names: Names
    alias: str | None = None
    """Of the table the columns belong to; None: columns bear no qualifier."""


def parse_condition(text: str, names: Names) -> Condition:
    """The condition that ``text`` says, of columns and ``names``. A text that cannot be read is unknown."""
    import sqlglot

    try:
        parsed = sqlglot.parse_one(text, dialect=DIALECT, into=sqlglot.exp.Condition)
        return translate_expression(parsed, Scope(names))
    except (sqlglot.errors.SqlglotError, RecursionError) as error:
        # Unknown, not an error: a condition saves time, and Spark may well understand it.
        return Unknown(f"{text!r} cannot be read ({type(error).__name__})")


def translate_expression(node: Node, scope: Scope) -> Condition:
    """The condition of a parsed expression."""
    kind = type(node).__name__
    if kind in _SIGNS:
        return _translate_comparison(node, _SIGNS[kind], scope)
    found = _TRANSLATIONS.get(kind)
    return found(node, scope) if found else _make_unknown(node)


def _make_unknown(node: Node) -> Condition:
    return Unknown(_write_sql(node))


def _write_sql(node: Node) -> str:
    return str(node.sql(dialect=DIALECT))


def _translate_and(node: Node, scope: Scope) -> Condition:
    # Flattened: a chain of a thousand ANDs is a deep tree to sqlglot.
    return Every(tuple(translate_expression(part, scope) for part in node.flatten()))


def _translate_or(node: Node, scope: Scope) -> Condition:
    return Some(tuple(translate_expression(part, scope) for part in node.flatten()))


def _translate_not(node: Node, scope: Scope) -> Condition:
    return Negation(translate_expression(node.this, scope))


def _translate_parentheses(node: Node, scope: Scope) -> Condition:
    return translate_expression(node.this, scope)


def _translate_constant(node: Node, scope: Scope) -> Condition:
    return Constant(bool(node.this))


def _translate_comparison(node: Node, sign: Operator, scope: Scope) -> Condition:
    return _compare_sides(node.this, sign, node.expression, scope)


def _compare_sides(left: Node, sign: Operator, right: Node, scope: Scope) -> Condition:
    text = f"{_write_sql(left)} {sign} {_write_sql(right)}"
    if _read_column_name(left, scope) is None:
        left, right, sign = right, left, _FLIPPED[sign]
    column, read = _read_column_name(left, scope), _read_literal(right, scope)
    if column is None or read is None:
        return Unknown(text)
    return NullKey(text) if read[0] is None else Comparison(column, sign, read[0])


def _translate_unequal(node: Node, scope: Scope) -> Condition:
    return Negation(_translate_comparison(node, "=", scope))


def _translate_null_safe(node: Node, scope: Scope) -> Condition:
    """``<=>`` is never null: false where ``=`` is null."""
    found = _translate_comparison(node, "=", scope)
    return Every((Negation(IsNull(found.column)), found)) if isinstance(found, Comparison) else found


def _translate_in(node: Node, scope: Scope) -> Condition:
    column = _read_column_name(node.this, scope)
    reads = [_read_literal(item, scope) for item in node.expressions]
    if column is None or not reads or None in reads:
        return _make_unknown(node)
    values = [read[0] for read in reads if read]
    if None in values:
        return NullKey(_write_sql(node))
    return Some(tuple(Comparison(column, "=", value) for value in values if value is not None))


def _translate_between(node: Node, scope: Scope) -> Condition:
    if node.args.get("symmetric"):
        return _make_unknown(node)
    low, high = node.args["low"], node.args["high"]
    return Every((_compare_sides(node.this, ">=", low, scope), _compare_sides(node.this, "<=", high, scope)))


def _translate_is(node: Node, scope: Scope) -> Condition:
    column = _read_column_name(node.this, scope)
    return IsNull(column) if column and type(node.expression).__name__ == "Null" else _make_unknown(node)


_TRANSLATIONS: dict[str, Callable[[Node, Scope], Condition]] = {
    "And": _translate_and,
    "Or": _translate_or,
    "Not": _translate_not,
    "Paren": _translate_parentheses,
    "Boolean": _translate_constant,
    "NEQ": _translate_unequal,
    "NullSafeEQ": _translate_null_safe,
    "In": _translate_in,
    "Between": _translate_between,
    "Is": _translate_is,
}


def _read_column_name(node: Node, scope: Scope) -> str | None:
    """The column's name in lower case, if ``node`` is a bare column of the scope's table."""
    if type(node).__name__ != "Column" or _join_name(node) in scope.names:
        return None
    *qualifiers, column = _list_name_parts(node)
    return column if qualifiers in ([], [scope.alias]) else None


def _join_name(node: Node) -> str:
    """A dotted name; empty for one in backticks, which is always a column."""
    quoted = any(part.args.get("quoted") for part in node.parts)
    return "" if quoted else ".".join(_list_name_parts(node))


def _list_name_parts(node: Node) -> list[str]:
    return [part.name.lower() for part in node.parts]


def _read_literal(node: Node, scope: Scope) -> Read | None:
    """None if ``node`` is no literal."""
    readers: dict[str, Callable[[Node, Scope], Read | None]] = {
        "Null": lambda _node, _scope: (None,),
        "Boolean": lambda node, _scope: (bool(node.this),),
        "Literal": _read_plain,
        "Neg": _read_negative,
        "Paren": lambda node, scope: _read_literal(node.this, scope),
        "Column": _read_name,
        "Cast": _read_cast,
        "TryCast": _read_cast,
    }
    read = readers.get(type(node).__name__)
    return read(node, scope) if read else None


def _read_plain(node: Node, scope: Scope) -> Read | None:
    return _read_string(node.name) if node.is_string else _read_number(node.name)


def _read_string(text: str) -> Read | None:
    """None for a text whose meaning depends on how Spark is told to read quotes and escapes."""
    return None if any(sign in "'\"\\" or not sign.isprintable() for sign in text) else (text,)


def _read_number(text: str) -> Read | None:
    """Integers and plain decimals; others are doubles, where equality is a matter of rounding."""
    if text.isdecimal():
        return (int(text),)
    return (Decimal(text),) if text.replace(".", "", 1).isdecimal() else None


def _read_negative(node: Node, scope: Scope) -> Read | None:
    read = _read_literal(node.this, scope)
    value = read[0] if read else None
    return (-value,) if isinstance(value, int | Decimal) and not isinstance(value, bool) else None


def _read_name(node: Node, scope: Scope) -> Read | None:
    name = _join_name(node)
    return (scope.names[name],) if name in scope.names else None


def _read_cast(node: Node, scope: Scope) -> Read | None:
    """Typed literals: ``DATE '2013-01-01'``, ``TIMESTAMP '...'`` without zone, ``5L``."""
    read, kind = _read_literal(node.this, scope), node.args["to"].this.name
    value = read[0] if read else None
    if isinstance(value, str) and kind in {"DATE", *_TIMES}:
        moment = read_moment(value)
        return None if moment is None else (_convert_to_day(moment) if kind == "DATE" else moment,)
    return read if kind in _WHOLE and isinstance(value, int) and not isinstance(value, bool) else None


def _convert_to_day(moment: date) -> date:
    return moment.date() if isinstance(moment, datetime) else moment
