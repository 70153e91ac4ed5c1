"""The printed page, and that each case points to files that are there."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from benchmarks.cases import CASES, FLIGHTS
from benchmarks.measure import Measured
from benchmarks.parse_time import Parse
from benchmarks.report import page, write
from benchmarks.ways import Run

MEASURED = Measured(
    FLIGHTS,
    steps=10,
    runs={
        "per_step": (Run(140.0, 170.0, 10), Run(150.0, 180.0, 10), Run(148.0, 175.0, 10)),
        "planned": (Run(18.5, 30.0, 1), Run(20.0, 31.0, 1), Run(18.0, 29.0, 1)),
        "by_hand": (Run(18.5, 28.0, 1), Run(18.0, 28.0, 1), Run(19.0, 28.0, 1)),
    },
    differences=(),
)
PAGE = """\
flights: 10 steps, flights out of New York, January 2013, local[2], median of 3
                              seconds  fastest  slowest    cpu s  applications
  one submit per step           148.0    140.0    150.0    175.0            10
  planned                        18.5     18.0     20.0     30.0             1
  hand-written application       18.5     18.0     19.0     28.0             1
  per_step / planned = 8.00
  planned / by_hand = 1.00
  equal outputs

Parse, processor seconds   plain operators   with planner     added
   1000 steps                        0.200          0.500     0.300

Import beyond Airflow and its Spark provider: 42 ms of processor time"""


def test_page() -> None:
    """148 / 18.5 = 8; medians, not means."""
    assert page([MEASURED], [Parse(1000, 0.2, 0.5)], 0.042) == PAGE


def test_differences_are_shown() -> None:
    found = dataclasses.replace(MEASURED, differences=("worst: 3 rows in a, 4 in b",))
    text = page([found], [], None)
    assert "worst: 3 rows in a, 4 in b" in text
    assert "equal outputs" not in text


def test_file(tmp_path: Path) -> None:
    content = json.loads(write(tmp_path, {"cores": 2}, [MEASURED], [], None).read_text())
    assert content["machine"] == {"cores": 2}
    assert content["cases"][0]["ratios"] == {"per_step / planned": 8.0, "planned / by_hand": 1.0}
    assert len(content["cases"][0]["runs"]["planned"]) == 3


@pytest.mark.parametrize("name", sorted(CASES))
def test_case_files_are_there(name: str) -> None:
    assert CASES[name].dag_file.is_file()
    assert CASES[name].by_hand.is_file()
