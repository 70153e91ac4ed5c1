"""Which keys may match a condition, all keys of one source taken together.

Together, since a column's type depends on all its values; and since one null or unreadable key turns pruning
off for the whole source, not for its own partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from airflow_dagsched.model.dataflow import Scalar
from airflow_dagsched.plan.pruning.conditions.condition import (
    Comparison,
    Condition,
    IsNull,
    Leaf,
    NullKey,
    evaluate_condition,
    list_leaves,
    walk_parts,
)
from airflow_dagsched.plan.pruning.conditions.readings import Kind, compare_values, infer_kinds
from airflow_dagsched.plan.pruning.conditions.truth import ANYTHING, TRUE, Truth, make_truth
from airflow_dagsched.plan.reasons.pruning import (
    ColumnMissing,
    ColumnNull,
    ComparesWithNull,
    ConditionObjection,
    ValueUnreadable,
)

NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""How a null is written in a folder's name."""
Key = Mapping[str, Scalar]
Verdicts = dict[Leaf, dict[Scalar, Truth]]
"""What a leaf is for each value of its column."""


def match_keys(condition: Condition, keys: Sequence[Key]) -> tuple[bool, ...] | ConditionObjection:
    """For each key whether ``condition`` may be true for its rows, or why none can be left out.

    A column that no key has is one of data, or of a deeper folder: unknown.
    """
    columns = [{name.lower(): _parse_stored(value) for name, value in key.items()} for key in keys]
    for problem in _find_problems(condition, columns):
        return problem
    verdicts = _judge_leaves(condition, columns)
    for problem in _list_unreadable(verdicts):
        return problem
    used = [tuple(key.get(leaf.column) for leaf in verdicts) for key in columns]
    # Once for each combination of values: 10,000 partitions by day and hour have few in the columns asked for.
    kept = {values: _may_match(condition, values, verdicts) for values in dict.fromkeys(used)}
    return tuple(kept[values] for values in used)


def _parse_stored(stored: Scalar) -> Scalar:
    # Declared keys may be spelled like folders.
    return None if stored == NULL_PARTITION else stored


def _find_problems(condition: Condition, keys: Sequence[Key]) -> Iterator[ConditionObjection]:
    for part in walk_parts(condition):
        if isinstance(part, NullKey):
            # Never true in SQL, so nothing would be read: more likely than that, the run lacks what its author meant.
            yield ComparesWithNull(str(part))
    for column in dict.fromkeys(leaf.column for leaf in list_leaves(condition)):
        having = [key for key in keys if column in key]
        # Mixed depths of folders: Spark refuses such a table, or reads it in a way that the keys do not tell.
        if having and len(having) < len(keys):
            yield ColumnMissing(column)
        if any(key[column] is None for key in having):
            yield ColumnNull(column)


def _judge_leaves(condition: Condition, keys: Sequence[Key]) -> Verdicts:
    found: Verdicts = {}
    for leaf in list_leaves(condition):
        values = list(dict.fromkeys(key[leaf.column] for key in keys if leaf.column in key))
        kinds = infer_kinds(values)
        found[leaf] = {value: _judge_leaf(leaf, value, kinds) for value in values}
    return found


def _judge_leaf(leaf: Leaf, value: Scalar, kinds: frozenset[Kind]) -> Truth:
    match leaf:
        case IsNull():
            return make_truth(value is None)
        case Comparison(_, sign, literal):
            return compare_values(value, sign, literal, kinds)


def _list_unreadable(verdicts: Verdicts) -> Iterator[ConditionObjection]:
    for leaf, found in verdicts.items():
        for value, truth in found.items():
            # Under some type the comparison cannot be judged: nothing of this column can be trusted then.
            if truth == ANYTHING:
                yield ValueUnreadable(str(leaf), leaf.column, value)


def _may_match(condition: Condition, values: Sequence[Scalar], verdicts: Verdicts) -> bool:
    """``values`` are those of the leaves' columns; a column without verdicts is unknown."""
    told = zip(verdicts.items(), values, strict=True)
    return bool(evaluate_condition(condition, {leaf: found[value] for (leaf, found), value in told if found}) & TRUE)
