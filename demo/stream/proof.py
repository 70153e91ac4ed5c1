"""Whether the table has each hour once, counted by the rule of the graph that owns it; computed without Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds

from demo.stream.departures import HOUR, Departure

SHOWN = 3
"""Hours on each side of the fence that are printed."""


class Counts(NamedTuple):
    """Of an hour and an airport."""

    flights: int
    late: int


Hours = Mapping[tuple[int, str], Counts]
"""(end of the hour in microseconds since 1970, airport) -> counts."""


@dataclass(frozen=True, slots=True)
class Rule:
    """How one epoch counts."""

    epoch: int
    late_min: int
    upto: int | None
    """The last hour that it owns; None: all behind those of the rules before it."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What the table has, beside what it must have."""

    expected: Hours
    table: Hours
    twice: frozenset[tuple[int, str]]
    """What the table has more than once."""
    rules: Sequence[Rule]

    @property
    def lost(self) -> list[tuple[int, str]]:
        """What the table must have, and has not."""
        return sorted(set(self.expected) - set(self.table))

    @property
    def unlike(self) -> list[tuple[int, str]]:
        """What the table has, and has otherwise or must not have."""
        return sorted(key for key in self.table if self.expected.get(key) != self.table[key])

    @property
    def holds(self) -> bool:
        """Whether the table is right, and has something."""
        return bool(self.expected) and not (self.lost or self.unlike or self.twice)


def prove(rows: Iterable[Departure], table: Path, rules: Sequence[Rule], upto: int) -> Proof:
    """Compare a table with the flights that were reported.

    :param upto: the last hour that the stream has closed.
    """
    expected = {key: counts for key, counts in count_hours(rows, rules).items() if key[0] <= upto}
    found = read_hours(table)
    twice = frozenset(key for key, times in Counter(key for key, _ in found).items() if times > 1)
    return Proof(expected, dict(found), twice, rules)


def count_hours(rows: Iterable[Departure], rules: Sequence[Rule]) -> dict[tuple[int, str], Counts]:
    """What a batch computation of the flights gives."""
    found: dict[tuple[int, str], Counts] = {}
    for each in rows:
        key = ((each.scheduled // HOUR + 1) * HOUR, each.origin)
        is_late = each.dep_delay is not None and each.dep_delay > find_rule(rules, key[0]).late_min
        before = found.get(key, Counts(0, 0))
        found[key] = Counts(before.flights + 1, before.late + is_late)
    return found


def find_rule(rules: Sequence[Rule], hour: int) -> Rule:
    """The rule by which an hour is counted."""
    return next(each for each in rules if each.upto is None or hour <= each.upto)


def read_hours(table: Path) -> list[tuple[tuple[int, str], Counts]]:
    """The rows of the stream's table."""
    if not any(table.glob("*.parquet")):
        return []
    rows = ds.dataset([str(each) for each in sorted(table.glob("*.parquet"))], format=ds.ParquetFileFormat()).to_table()
    hours = rows["hour"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_pylist()
    columns = (rows[name].to_pylist() for name in ("origin", "flights", "late"))
    return [
        ((hour, origin), Counts(flights, late)) for hour, origin, flights, late in zip(hours, *columns, strict=True)
    ]


def tell_proof(proof: Proof) -> str:
    """The hours on both sides of each fence, and what all of them come to."""
    hours = sorted({hour for hour, _ in {**proof.expected, **proof.table}})
    fences = [each.upto for each in proof.rules if each.upto is not None]
    shown = [hour for hour in hours if any(abs(hour - fence - HOUR / 2) < SHOWN * HOUR for fence in fences)]
    rows = len(proof.expected)
    verdict = f"{len(hours)} hours, {rows} rows: {len(proof.lost)} lost, {len(proof.twice)} twice, "
    return "\n".join([_HEAD, *(_tell_hour(proof, hour) for hour in shown), verdict + f"{len(proof.unlike)} unlike"])


_HEAD = "  hour until         epoch  late is over   flights  late    computed from the flights"


def _tell_hour(proof: Proof, hour: int) -> str:
    rule = find_rule(proof.rules, hour)
    has, must = (_add(each, hour) for each in (proof.table, proof.expected))
    moment = f"{datetime.fromtimestamp(hour / 1e6, UTC):%Y-%m-%d %H:%M}"
    told = f"{must.flights:>5} {must.late:>5}"
    return f"  {moment}  {rule.epoch:>6} {rule.late_min:>8} min {has.flights:>11} {has.late:>5}    {told}"


def _add(hours: Hours, hour: int) -> Counts:
    found = [counts for (each, _), counts in hours.items() if each == hour]
    return Counts(sum(each.flights for each in found), sum(each.late for each in found))
