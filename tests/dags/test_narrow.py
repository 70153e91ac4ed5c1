"""Stored datasets with the columns that are read, through whole runs: Airflow, launches, history, real Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from airflow_dagsched.model.codec import read_file
from airflow_dagsched.model.state import State
from tests.dags.conftest import Play

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.airflow]
FILE = Path(__file__).parent / "files" / "narrow.py"
ALL, ROWS = 32, 1000


def run_day(play: Play, home: Path, day: str) -> tuple[list[str], int]:
    """The columns of the rows that the second group was given, and how many rows these are."""
    found = play(FILE, day)
    assert set(found["tasks"].values()) == {"success"}
    told: dict[str, Any] = found["told"]
    assert (told["flow.total"]["rows"], told["flow.days"]["rows"]) == (1, 7)
    assert told["flow.wide"]["rows"] == ROWS
    first = min(home.glob(f"dagsched/datasets/*wide*/{day}*/*"))
    files = [*first.glob("*.parquet")]
    names, rows = pq.read_schema(files[0]).names, sum(pq.read_metadata(each).num_rows for each in files)
    # Nobody is told where some of the rows are, who may take them for all.
    assert told["flow.wide"]["path"] == (str(first) if rows == ROWS else None)
    return names, rows


def test_each_day_stores_what_the_days_before_it_have_read(play: Play, home: Path) -> None:
    """The third day asks for a column that nobody read before: made again then, stored on the fourth. What all ask of
    the rows two days have to say.
    """
    names, rows = run_day(play, home, "2024-01-01")
    assert (len(names), rows) == (ALL, ROWS)
    assert run_day(play, home, "2024-01-02") == (["id", "c1", "day"], ROWS)
    known = read_file(State, home / "dagsched" / "history" / "narrow" / "flow.json")
    columns = known.measured["wide"].outputs[""].columns
    assert columns is not None
    assert (columns.kept, columns.columns, columns.measured, columns.share < 0.2) == (3, ALL, True, True)
    assert run_day(play, home, "2024-01-03") == (["id", "c1", "day"], 100)
    assert run_day(play, home, "2024-01-04") == (["id", "c1", "c9", "day"], 100)
    known = read_file(State, home / "dagsched" / "history" / "narrow" / "flow.json")
    columns = known.measured["wide"].outputs[""].columns
    assert columns is not None
    assert columns.where == ("(id >= 900L)",)
