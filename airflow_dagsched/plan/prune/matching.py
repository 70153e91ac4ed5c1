"""Which keys may match a condition, all keys of one source taken together.

Together, since a column's type depends on all its values; and since one null or unreadable key turns pruning
off for the whole source, not for its own partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from airflow_dagsched.model.dataflow import Scalar
from airflow_dagsched.plan.prune.condition import (
    Comparison,
    Condition,
    IsNull,
    Leaf,
    NullKey,
    evaluate,
    leaves_of,
    walk,
)
from airflow_dagsched.plan.prune.readings import Kind, compare, kinds_of
from airflow_dagsched.plan.prune.truth import ANYTHING, TRUE, Truth, outcome

NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""How a null is written in a folder's name."""
Key = Mapping[str, Scalar]
Verdicts = dict[Leaf, dict[Scalar, Truth]]
"""What a leaf is for each value of its column."""


class Unprunable(Struct, frozen=True):
    """Why nothing is left out."""

    reason: str


def matching(condition: Condition, keys: Sequence[Key]) -> tuple[bool, ...] | Unprunable:
    """For each key whether ``condition`` may be true for its rows, or why none can be left out.

    A column that no key has is one of data, or of a deeper folder: unknown.
    """
    columns = [{name.lower(): _value(value) for name, value in key.items()} for key in keys]
    for problem in _problems(condition, columns):
        return Unprunable(problem)
    verdicts = _verdicts(condition, columns)
    for problem in _unreadable(verdicts):
        return Unprunable(problem)
    used = [tuple(key.get(leaf.column) for leaf in verdicts) for key in columns]
    kept = {values: _matches(condition, values, verdicts) for values in dict.fromkeys(used)}
    return tuple(kept[values] for values in used)


def _value(stored: Scalar) -> Scalar:
    return None if stored == NULL_PARTITION else stored


def _problems(condition: Condition, keys: Sequence[Key]) -> Iterator[str]:
    for part in walk(condition):
        if isinstance(part, NullKey):
            yield f"{part} compares with null"
    for column in dict.fromkeys(leaf.column for leaf in leaves_of(condition)):
        having = [key for key in keys if column in key]
        if having and len(having) < len(keys):
            yield f"not every partition says its {column}"
        if any(key[column] is None for key in having):
            yield f"{column} is null in a partition"


def _verdicts(condition: Condition, keys: Sequence[Key]) -> Verdicts:
    found: Verdicts = {}
    for leaf in leaves_of(condition):
        values = list(dict.fromkeys(key[leaf.column] for key in keys if leaf.column in key))
        kinds = kinds_of(values)
        found[leaf] = {value: _verdict(leaf, value, kinds) for value in values}
    return found


def _verdict(leaf: Leaf, value: Scalar, kinds: frozenset[Kind]) -> Truth:
    match leaf:
        case IsNull():
            return outcome(value is None)
        case Comparison(_, sign, literal):
            return compare(value, sign, literal, kinds)


def _unreadable(verdicts: Verdicts) -> Iterator[str]:
    for leaf, found in verdicts.items():
        for value, truth in found.items():
            if truth == ANYTHING:
                yield f"{leaf} cannot be told of {leaf.column} {value!r}"


def _matches(condition: Condition, values: Sequence[Scalar], verdicts: Verdicts) -> bool:
    """``values`` are those of the leaves' columns; a column without verdicts is unknown."""
    told = zip(verdicts.items(), values, strict=True)
    return bool(evaluate(condition, {leaf: found[value] for (leaf, found), value in told if found}) & TRUE)
