"""The pipelines that are compared: a DAG file, the program that does the same by hand, and their input."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from airflow_dagsched.launch.protocol.interval import Interval

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Case:
    """One pipeline. ``name`` is that of the dataflow; in upper case it begins the DAG file's variables."""

    name: str
    about: str
    dag_file: Path
    by_hand: Path
    interval: Interval
    by_hand_arguments: tuple[str, ...] = ()
    """What the program by hand takes after the folders of its input and output."""
    reports: tuple[str, ...] = ()
    """Tables that must come out equal."""

    def variables(self, data: Path, out: Path, work: Path) -> dict[str, str]:
        """Environment that points the DAG file to folders."""
        folders = {"DATA": data, "OUT": out, "WORK": work}
        return {f"{self.name.upper()}_{name}": str(folder) for name, folder in folders.items()}


FLIGHTS = Case(
    name="flights",
    about="flights out of New York, January 2013",
    dag_file=HERE.parent / "dags" / "flights.py",
    by_hand=HERE / "floors" / "flights.py",
    interval=Interval("2013-01", datetime(2013, 1, 1, tzinfo=UTC), datetime(2013, 2, 1, tzinfo=UTC)),
    by_hand_arguments=("2013-01-01", "2013-02-01"),
    reports=("by_route", "by_carrier", "by_weather", "worst"),
)
TPCH = Case(
    name="tpch",
    about="13 questions of TPC-H",
    dag_file=HERE / "dags" / "tpch.py",
    by_hand=HERE / "floors" / "tpch.py",
    interval=Interval("once"),
    reports=("q1", "q3", "q4", "q5", "q6", "q7", "q8", "q9", "q10", "q11", "q12", "q14", "q18"),
)
CASES = {case.name: case for case in (FLIGHTS, TPCH)}
