"""What a condition may turn out to be: a set of SQL's three truth values, as bits.

A partition's key tells some columns and not others, so a condition on it has a set of possible outcomes.
A partition is left out only if *true* is not among them: that is sound whatever is unknown, under ``NOT`` too.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

Truth = int
"""A set of outcomes."""

NEVER: Truth = 0
TRUE: Truth = 1
FALSE: Truth = 2
NULL: Truth = 4
ANYTHING: Truth = TRUE | FALSE | NULL


def make_truth(value: bool) -> Truth:
    """The set of one outcome."""
    return TRUE if value else FALSE


def negate_truth(one: Truth) -> Truth:
    """``NOT``: true and false change places, null stays."""
    return (TRUE if one & FALSE else 0) | (FALSE if one & TRUE else 0) | one & NULL


def combine_by_and(one: Truth, other: Truth) -> Truth:
    """Kleene's ``AND`` of every pair of outcomes."""
    # Null and false is false, so null takes something true, or null, on the other side.
    null = (one & NULL and other & (TRUE | NULL)) or (other & NULL and one & (TRUE | NULL))
    return (one & other & TRUE) | ((one | other) & FALSE) | (NULL if null else 0)


def combine_all_by_and(parts: Iterable[Truth]) -> Truth:
    """``AND`` over ``parts``; of none it is true."""
    return reduce(combine_by_and, parts, TRUE)


def combine_all_by_or(parts: Iterable[Truth]) -> Truth:
    """``OR`` over ``parts``; of none it is false."""
    return negate_truth(combine_all_by_and(negate_truth(part) for part in parts))  # De Morgan holds in Kleene's logic
