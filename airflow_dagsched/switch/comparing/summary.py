"""What a batch has in each window, so condensed that no rows are needed to tell whether two epochs have the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal


@dataclass(frozen=True, slots=True)
class Summary:
    """The rows of one window; equal rows give equal ones, whatever their order and their batches."""

    rows: int = 0
    sums: Mapping[str, str | None] = field(default_factory=dict)
    """Column with numbers -> their sum, in digits; null: it has none, or is too large."""
    digest: str = "0"
    """Sum of a digest of each row, over all columns that are exact."""


Summaries = Mapping[float, Summary]
"""Window, by its end in seconds since 1970 -> what is in it."""

_EXACT = Context(prec=100, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
"""More digits than any sum of Spark's has. Not a number plus anything is not a number, and no error."""


def merge_summaries(one: Summaries, other: Summaries) -> Summaries:
    """What two batches have together."""
    empty = Summary()
    return {window: _add_summary(one.get(window, empty), other.get(window, empty)) for window in {**one, **other}}


def list_unlike_sums(one: Summary, other: Summary) -> tuple[str, ...]:
    """Columns whose sums differ, or that one alone has."""
    names = sorted({*one.sums, *other.sums})
    return tuple(name for name in names if not _is_same(one.sums.get(name), other.sums.get(name)))


def is_same_summary(one: Summary, other: Summary) -> bool:
    """Whether both are of the same rows, as far as that is told."""
    return (one.rows, one.digest) == (other.rows, other.digest) and not list_unlike_sums(one, other)


def _add_summary(one: Summary, other: Summary) -> Summary:
    names = {**one.sums, **other.sums}
    sums = {name: _add_digits(one.sums.get(name), other.sums.get(name)) for name in names}
    return Summary(one.rows + other.rows, sums, str(int(one.digest) + int(other.digest)))


def _add_digits(one: str | None, other: str | None) -> str | None:
    if one is None or other is None:
        return one if other is None else other
    return str(_EXACT.add(Decimal(one), Decimal(other)))


def _is_same(one: str | None, other: str | None) -> bool:
    # 2.0E3 and 2000 are one number.
    return one == other or (one is not None and other is not None and Decimal(one) == Decimal(other))
