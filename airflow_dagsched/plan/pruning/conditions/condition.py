"""A condition on partition columns as a tree of values, and what it may turn out to be for a key.

    day >= '2013-01-01' and (hour in (1, 2) or amount > 5)

    Every ── Comparison(day, >=, '2013-01-01')
      └───── Some ── Comparison(hour, =, 1), Comparison(hour, =, 2), Unknown("amount > 5 ...")

``IN``, ``BETWEEN``, ``<>`` and ``<=>`` are spelled with these. What a key does not tell is *unknown*.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Literal, assert_never

from msgspec import Struct

from airflow_dagsched.plan.pruning.conditions.truth import (
    ANYTHING,
    Truth,
    combine_all_by_and,
    combine_all_by_or,
    make_truth,
    negate_truth,
)

Operator = Literal["=", "<", "<=", ">", ">="]
Value = str | int | Decimal | bool | date | datetime
"""Of a literal. A ``datetime`` without zone is the session's local time."""


class Comparison(Struct, frozen=True):
    """``column operator value``; the value is never null."""

    column: str
    """In lower case: Spark's names are not case-sensitive."""
    operator: Operator
    value: Value

    def __str__(self) -> str:
        return f"{self.column} {self.operator} {_show_value(self.value)}"


class IsNull(Struct, frozen=True):
    """``column IS NULL``."""

    column: str

    def __str__(self) -> str:
        return f"{self.column} is null"


class Constant(Struct, frozen=True):
    """``true`` or ``false``."""

    value: bool

    def __str__(self) -> str:
        return str(self.value).lower()


class Unknown(Struct, frozen=True):
    """What is not understood, or is no matter of partitions."""

    text: str

    def __str__(self) -> str:
        return self.text


class NullKey(Struct, frozen=True):
    """A comparison with null, or with a moment this run does not have: it turns pruning off."""

    text: str

    def __str__(self) -> str:
        return self.text


class Negation(Struct, frozen=True):
    """``NOT part``."""

    part: Condition

    def __str__(self) -> str:
        return f"not ({self.part})"


class Every(Struct, frozen=True):
    """``AND``; of no parts it is true."""

    parts: tuple[Condition, ...]

    def __str__(self) -> str:
        return " and ".join(_show_in_parentheses(part) for part in self.parts) or "true"


class Some(Struct, frozen=True):
    """``OR``; of no parts it is false."""

    parts: tuple[Condition, ...]

    def __str__(self) -> str:
        return " or ".join(_show_in_parentheses(part) for part in self.parts) or "false"


Leaf = Comparison | IsNull
Condition = Leaf | Constant | Unknown | NullKey | Negation | Every | Some
ALWAYS = Every(())


def evaluate_condition(condition: Condition, leaves: Mapping[Leaf, Truth]) -> Truth:
    """What ``condition`` may turn out to be where its leaves are as ``leaves`` says; one that is missing is unknown."""
    match condition:
        case Comparison() | IsNull():
            return leaves.get(condition, ANYTHING)
        case Constant(value):
            return make_truth(value)
        case Unknown() | NullKey():
            return ANYTHING
        case Negation(part):
            return negate_truth(evaluate_condition(part, leaves))
        case Every(parts):
            return combine_all_by_and(evaluate_condition(part, leaves) for part in parts)
        case Some(parts):
            return combine_all_by_or(evaluate_condition(part, leaves) for part in parts)
        case _:
            assert_never(condition)


def walk_parts(condition: Condition) -> Iterator[Condition]:
    """It and all its parts, from left to right."""
    yield condition
    match condition:
        case Negation(part):
            yield from walk_parts(part)
        case Every(parts) | Some(parts):
            for part in parts:
                yield from walk_parts(part)


def list_leaves(condition: Condition) -> tuple[Leaf, ...]:
    """The comparisons and null checks in it, each once."""
    return tuple(dict.fromkeys(part for part in walk_parts(condition) if isinstance(part, Comparison | IsNull)))


def find_values(condition: Condition, column: str) -> frozenset[Value] | None:
    """What ``column`` is one of wherever ``condition`` is true; None if that is not known.

    Equalities and ``IN``, through ``AND`` and ``OR``: as Spark finds the buckets to read (``FileSourceStrategy``).
    """
    match condition:
        case Comparison(name, "=", value):
            return frozenset({value}) if name == column else None
        case Every(parts):
            # A part that says nothing of the column takes nothing away from what the others say.
            known = [found for part in parts if (found := find_values(part, column)) is not None]
            return frozenset.intersection(*known) if known else None
        case Some(parts):
            each = [find_values(part, column) for part in parts]
            # One alternative without values may be true of any row.
            return None if None in each or not each else frozenset().union(*(found for found in each if found))
        case _:
            return None


def _show_in_parentheses(part: Condition) -> str:
    return f"({part})" if isinstance(part, Every | Some) else str(part)


def _show_value(value: Value) -> str:
    return str(value) if isinstance(value, int | Decimal) else f"'{value}'"
