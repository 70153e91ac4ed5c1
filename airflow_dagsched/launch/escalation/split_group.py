"""A group that is too large for the cluster, at launch: cut into few parts that each fit.

    a ──> b ──> c ──> d ──> e      too large: {a b c} is the longest beginning that fits, then {d e}

The parts run one after another, as applications of one launch task. They are consecutive in a topological
order, so that none waits for a later one. A part of what fits nearly always does, so taking the longest
beginning each time gives few parts; and each part is planned as it will be, so that it fits in any case.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.launch.escalation.group_fit import find_refusal
from airflow_dagsched.launch.planning.facts import Facts

Unit = tuple[str, ...]
"""Steps that no cut separates: one, or those of a repeat block."""


def cut_to_fit(units: Sequence[Unit], facts: Facts) -> tuple[Unit, ...]:
    """The steps of each part, for ``units`` in topological order; raises ``DoesNotFit`` for a unit too large alone."""
    return tuple(_cut_parts(units, facts))


def split_in_halves(units: Sequence[Unit]) -> tuple[Unit, ...]:
    """Two consecutive parts of about as many steps; one, where there is but one unit."""
    sizes = [len(unit) for unit in units]
    cuts = range(1, len(units))
    # Of two cuts as good, the earlier: equal groups are cut alike.
    at = min(cuts, key=lambda cut: (abs(2 * sum(sizes[:cut]) - sum(sizes)), cut), default=len(units))
    return tuple(_join_units(part) for part in (units[:at], units[at:]) if part)


def _cut_parts(units: Sequence[Unit], facts: Facts) -> Iterator[Unit]:
    left = units
    while left:
        count = _count_fitting(left, facts)
        yield _join_units(left[:count])
        left = left[count:]


def _count_fitting(units: Sequence[Unit], facts: Facts) -> int:
    """How many of the first units fit together: all, else by bisection, else (many instances may spread over
    more workers than one's) whatever does.
    """
    if find_refusal(facts, _join_units(units)) is None:
        return len(units)
    refused = find_refusal(facts, units[0])
    if refused is not None:
        return _count_any_fitting(units, facts, refused)
    # Invariant: the first ``fits`` units fit, as planned just now; the first ``too_many`` do not.
    fits, too_many = 1, len(units)
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if find_refusal(facts, _join_units(units[:middle])) is None:
            fits = middle
        else:
            too_many = middle
    return fits


def _count_any_fitting(units: Sequence[Unit], facts: Facts, refused: DoesNotFit) -> int:
    """The most that fit where the first alone does not."""
    # No bisection: here a count that does not fit says nothing of the next one.
    for count in range(len(units) - 1, 1, -1):
        if find_refusal(facts, _join_units(units[:count])) is None:
            return count
    raise refused


def _join_units(units: Sequence[Unit]) -> Unit:
    return tuple(chain.from_iterable(units))
