"""How many of a number of like instances each worker has when the load is level.

Level is where no move is asked for: no worker has relatively more than another would have with one more. So the
instances are dealt one by one to the worker that has relatively least with it, after D'Hondt::

    capacity 1  w1 |1    |2          the i-th of a worker stands at i / capacity; the five that stand lowest
    capacity 2  w2 |½ |1 |1½ |2      are dealt, and the last of them is the line: here 1½, w1 has 1, w2 has 3
                   0     1     2

Several workers may have one that stands right on the line: any of them may go without.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from fractions import Fraction

from msgspec import Struct


class FairShares(Struct, frozen=True):
    """The least and the most that each worker has."""

    least: Sequence[float]
    most: Sequence[float]


def find_fair_line(count: int, capacity: Sequence[int]) -> Fraction:
    """Where the last instance dealt stands. Ties are exact.

    First each worker has its share rounded down: no deal gives it less.
    """
    total = sum(capacity)
    floors = [count * has // total for has in capacity]
    # Floats would part ties: 3 x 1/3 and 1 stand on one line.
    waiting = [(Fraction(had + 1, has), has) for had, has in zip(floors, capacity, strict=True)]
    heapq.heapify(waiting)
    last = max(Fraction(had, has) for had, has in zip(floors, capacity, strict=True))
    for _ in range(count - sum(floors)):
        last, has = waiting[0]
        heapq.heapreplace(waiting, (last + Fraction(1, has), has))
    return last


def list_fair_shares(last: Fraction, capacity: Sequence[int]) -> FairShares:
    """The shares of workers that have all that stands below the line, and may have what stands on it."""
    up, down = last.numerator, last.denominator
    # ceil(line x capacity) - 1: what stands strictly below the line.
    least = [max(0, -(-up * has // down) - 1) for has in capacity]
    return FairShares(least, [up * has // down for has in capacity])
