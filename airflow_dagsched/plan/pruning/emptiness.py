"""When a step has no rows to work on, as sets of inputs: it has none if all inputs of any one set are empty.

inner join a, b     {a} {b}      either is enough          union a, b   {a, b}   both must be
a left join b       {a}          b does not matter         count(*)              never
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

Causes = tuple[frozenset[str], ...]
"""The least sets of inputs, each of which empties the whole; of none: never."""

MOST = 64
"""Of more sets than these nothing is claimed: emptiness need not be found."""


def find_causes_of_any(each: Iterable[Causes]) -> Causes:
    """Empty if any of them is."""
    return _keep_minimal(cause for causes in each for cause in causes)


def find_causes_of_all(each: Sequence[Causes]) -> Causes:
    """Empty if all of them are."""
    found: Causes = (frozenset(),)
    for causes in each:
        found = _keep_minimal(one | other for one, other in product(found, causes))
    return found if each else ()  # of nothing: not empty by anything


def _keep_minimal(causes: Iterable[frozenset[str]]) -> Causes:
    """Without those that contain another, in an order that depends on nothing else."""
    # Small sets first: whatever contains another comes behind it.
    ordered = sorted(set(causes), key=lambda cause: (len(cause), sorted(cause)))
    kept: list[frozenset[str]] = []
    for cause in ordered:
        if not any(other <= cause for other in kept):
            kept.append(cause)
    # Products of causes grow exponentially with the joins of a query.
    return tuple(kept) if len(kept) <= MOST else ()
