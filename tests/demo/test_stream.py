"""Departures as they are reported, and the proof that an hour is in the table once.

::

    epoch 1: late is over 15 min      ──> 11:00 ──> 12:00 |  epoch 2: over 30 min ──> 13:00
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from demo.stream.departures import HOUR, LONGEST_WAIT_MIN, MINUTE, Departure, add_file, list_files
from demo.stream.proof import Counts, Proof, Rule, prove, tell_proof

TEN = 10 * HOUR
RULES = (Rule(1, 15, TEN + 2 * HOUR), Rule(2, 30, None))
ROWS = [Departure(TEN + (20 + hour * 60) * MINUTE, TEN + hour * HOUR, "JFK", 20) for hour in range(3)] + [
    Departure(TEN, TEN, "JFK", None)
]
RIGHT = {
    (TEN + HOUR, "JFK"): Counts(2, 1),
    (TEN + 2 * HOUR, "JFK"): Counts(1, 1),
    (TEN + 3 * HOUR, "JFK"): Counts(1, 0),
}


def write_hours(table: Path, hours: list[tuple[int, str, int, int]]) -> None:
    table.mkdir(exist_ok=True)
    schema = pa.schema([
        ("hour", pa.timestamp("us", tz="UTC")), ("origin", pa.string()), ("flights", pa.int64()), ("late", pa.int64())
    ])  # fmt: skip
    columns = [pa.array(column, field.type) for column, field in zip(zip(*hours, strict=True), schema, strict=True)]
    pq.write_table(pa.table(columns, schema=schema), table / f"{len(list(table.iterdir()))}.parquet")


def prove_of(table: Path, hours: list[tuple[int, str, int, int]]) -> Proof:
    write_hours(table, hours)
    return prove(ROWS, table, RULES, TEN + 3 * HOUR)


def test_each_hour_is_counted_by_the_rule_of_its_owner(tmp_path: Path) -> None:
    proof = prove_of(tmp_path / "table", [(*key, *counts) for key, counts in RIGHT.items()])
    assert proof.expected == RIGHT
    assert proof.holds
    assert "3 hours, 3 rows: 0 lost, 0 twice, 0 unlike" in tell_proof(proof)


@pytest.mark.parametrize(
    ("hours", "verdict"),
    [
        ([(TEN + HOUR, "JFK", 2, 1), (TEN + 2 * HOUR, "JFK", 1, 1)], "1 lost, 0 twice, 0 unlike"),
        ([(*key, *counts) for key, counts in [*RIGHT.items()] * 2], "0 lost, 3 twice, 0 unlike"),
        # The last hour by the old rule.
        ([(*key, counts.flights, 1) for key, counts in RIGHT.items()], "0 lost, 0 twice, 1 unlike"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, hours: list[tuple[int, str, int, int]], verdict: str) -> None:
    proof = prove_of(tmp_path / "table", hours)
    assert not proof.holds
    assert verdict in tell_proof(proof)


def test_no_flight_is_reported_too_late_for_its_hour(tmp_path: Path) -> None:
    """A row may come half an hour behind the newest one: that is the stream's lateness."""
    noon = datetime(2013, 1, 15, 12, tzinfo=UTC)
    delays = [500, -30, None, 7, 0]
    flights = tmp_path / "flights" / "day=2013-01-15"
    flights.mkdir(parents=True)
    table = pa.table({
        "time_hour": pa.array([noon] * 5, pa.timestamp("us", "UTC")), "minute": [0, 10, 20, 30, 59],
        "origin": ["JFK"] * 5, "dep_delay": delays,
    })  # fmt: skip
    pq.write_table(table, flights / "part-0.parquet")
    files = list(list_files(tmp_path / "flights", date(2013, 1, 15), 1))
    newest = 0
    for number, file in enumerate(files):
        add_file(tmp_path / "source", number, file)
        for each in file:
            assert each.scheduled <= each.reported <= each.scheduled + LONGEST_WAIT_MIN * MINUTE
            assert each.scheduled > newest - 30 * MINUTE
            newest = max(newest, each.scheduled)
    read = pa.concat_tables(pq.read_table(each) for each in (tmp_path / "source").iterdir())
    assert sorted(map(str, read["dep_delay"].to_pylist())) == sorted(map(str, delays))
