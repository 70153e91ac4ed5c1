"""The printed page, what is kept of it, and that each case points to files that are there."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from benchmarks.cases import BACKFILL, CASES, FLIGHTS, TPCH
from benchmarks.clock import Taken
from benchmarks.measure import Measured
from benchmarks.parse_time import Parse
from benchmarks.report import NAMES, Results, page
from benchmarks.ways import WAYS, Run

MEASURED = Measured(
    FLIGHTS,
    steps=10,
    runs={
        "per_step": (Run(140.0, 170.0, 10), Run(150.0, 180.0, 10), Run(148.0, 175.0, 10)),
        "by_hand_light": (Run(18.5, 28.0, 1), Run(18.0, 28.0, 1), Run(19.0, 28.0, 1)),
        "planned_light": (Run(18.5, 30.0, 1), Run(20.0, 31.0, 1), Run(18.0, 29.0, 1)),
    },
    differences=(),
)
GROWN = Measured(
    TPCH,
    steps=24,
    runs={"by_hand_light": (Run(40.0, 60.0, 1),), "planned_light": (Run(30.0, 45.0, 1),)},
    differences=(),
    scale=0.1,
)
PAGE = """\
flights: 10 steps, flights out of New York, January 2013, local[2], median of 3
                              seconds  fastest  slowest    cpu s  applications
  one submit per step           148.0    140.0    150.0    175.0            10
  by hand, same archive          18.5     18.0     19.0     28.0             1
  planned cold                   18.5     18.0     20.0     30.0             1
  equal outputs

tpch SF 0.1: 24 steps, 13 questions of TPC-H, local[2], median of 1
                              seconds  fastest  slowest    cpu s  applications
  by hand, same archive          40.0     40.0     40.0     60.0             1
  planned cold                   30.0     30.0     30.0     45.0             1
  equal outputs

Medians of the rounds' ratios: seconds (cpu seconds)
                                                               flights     tpch SF 0.1
  planned cold / by hand, same archive                     1.00 (1.07)     0.75 (0.75)
  one submit per step / planned cold                       7.57 (5.81)               -

Parse, processor seconds   plain operators   with planner     added
   1000 steps                        0.200          0.500     0.300

Import beyond Airflow and its Spark provider: 42 ms of processor time"""


def test_page() -> None:
    """Medians, not means; of ratios, those of one round: 140 / 18.5, 150 / 20, 148 / 18."""
    assert page([MEASURED, GROWN], [Parse(1000, 0.2, 0.5)], 0.042) == PAGE


def test_differences_are_shown() -> None:
    found = dataclasses.replace(MEASURED, differences=("worst: 3 rows in a, 4 in b",))
    text = page([found], [], None)
    assert "worst: 3 rows in a, 4 in b" in text
    assert "equal outputs" not in text


def test_days_after_the_first_are_told_of() -> None:
    days = Run(24.0, 34.0, 1, intervals=(Taken(16.0, 20.0), Taken(4.0, 8.0), Taken(4.0, 6.0)))
    three = dataclasses.replace(BACKFILL, intervals=BACKFILL.intervals[:3])
    found = Measured(three, 10, {"planned_warming": (days,)}, ())
    assert "planned, warm from the 1st, later intervals / the first = 0.25 (cpu 0.35)" in page([found], [], None)


def test_a_ratio_without_its_ways_is_left_out() -> None:
    alone = dataclasses.replace(MEASURED, runs={"per_step": MEASURED.runs["per_step"]})
    assert "ratios" not in page([alone], [], None)


def test_what_was_measured_is_kept_as_it_comes(tmp_path: Path) -> None:
    results = Results(tmp_path, {"cores": 2})
    results.keep(import_s=0.1)
    results.keep(cases=[MEASURED.as_json()])
    content = json.loads(results.file.read_text())
    assert (content["machine"], content["import_s"]) == ({"cores": 2}, 0.1)
    ratio = content["cases"][0]["ratios"]["planned_light / by_hand_light"]
    assert ratio == {"seconds": 1.0, "cpu_s": pytest.approx(30 / 28)}
    assert len(content["cases"][0]["runs"]["planned_light"]) == 3


def test_each_way_has_a_name() -> None:
    assert NAMES.keys() == WAYS.keys()


@pytest.mark.parametrize("name", sorted(CASES))
def test_case_files_are_there(name: str) -> None:
    assert CASES[name].dag_file.is_file()
    assert CASES[name].by_hand.is_file()
    assert set(CASES[name].ways) <= WAYS.keys()
