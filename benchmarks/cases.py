"""The pipelines that are compared: a DAG file, the program that does the same by hand, their input, and where."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow_dagsched.launch.protocol.interval import Interval
from benchmarks import data
from benchmarks.places import Kind

HERE = Path(__file__).parent
FIRST = datetime(2013, 1, 1, tzinfo=UTC)
DAYS = 7
REPORTS = ("by_route", "by_carrier", "by_weather", "worst")
INPUTS = ("nation", "region", "part", "partsupp", "lineitem", "orders", "customer", "supplier")
QUESTIONS = ("q1", "q3", "q4", "q5", "q6", "q7", "q8", "q9", "q10", "q11", "q12", "q14", "q18")
JANUARY = ("2013-01-01", "2013-02-01")
ALONE = ("per_step", "planned", "by_hand", "by_hand_light", "planned_light", "planned_warm")
SEVERAL = ("by_hand_light", "planned_light", "planned_warming")


@dataclass(frozen=True, slots=True)
class Case:
    """One pipeline."""

    name: str
    about: str
    dag_file: Path
    by_hand: Path
    intervals: tuple[Interval, ...]
    """One run each, one after another."""
    by_hand_arguments: tuple[tuple[str, ...], ...] = ((),)
    """What the program by hand takes after the folders of its input and output, a submit each."""
    by_hand_steps: tuple[str, ...] = ()
    """Steps that the program beside it takes, a submit each; none: there is no such program."""
    reports: tuple[str, ...] = ()
    """Tables that must come out equal."""
    flow: str = ""
    """Name of the dataflow, where it is another than the case's; in upper case it begins the DAG file's variables."""
    prepare: Callable[[Path, float], Path] = data.flights
    """Makes the input below a folder, at a scale factor."""
    is_scaled: bool = False
    place: Kind = "local"
    ways: tuple[str, ...] = ALONE
    """Those it is run in, unless others are asked for."""

    def choose_ways(self, asked: Sequence[str] | None) -> list[str]:
        """Those of ``asked``, else its own, that there are programs for."""
        return [way for way in asked or self.ways if way != "per_step_by_hand" or self.by_hand_steps]

    def variables(self, data: Path, out: Path, work: Path) -> dict[str, str]:
        """Environment that points the DAG file to folders."""
        folders = {"DATA": data, "OUT": out, "WORK": work}
        return {f"{(self.flow or self.name).upper()}_{name}": str(folder) for name, folder in folders.items()}


def make_day(start: datetime) -> Interval:
    """The interval of the day that begins then."""
    return Interval(f"{start:%Y-%m-%d}", start, start + timedelta(days=1))


def _list_days() -> tuple[Interval, ...]:
    return tuple(make_day(FIRST + timedelta(days=at)) for at in range(DAYS))


FLIGHTS = Case(
    name="flights",
    about="flights out of New York, January 2013",
    dag_file=HERE.parent / "dags" / "flights.py",
    by_hand=HERE / "floors" / "flights.py",
    intervals=(Interval("2013-01", FIRST, datetime(2013, 2, 1, tzinfo=UTC)),),
    by_hand_arguments=(JANUARY,),
    by_hand_steps=("departures", "clean", "weather", "planes", "enriched", *REPORTS[:3], "airports", REPORTS[3]),
    reports=REPORTS,
)
TPCH = Case(
    name="tpch",
    about="13 questions of TPC-H",
    dag_file=HERE / "dags" / "tpch.py",
    by_hand=HERE / "floors" / "tpch.py",
    intervals=(Interval("once"),),
    by_hand_steps=(*INPUTS, "sales", "customers", "suppliers", *QUESTIONS),
    reports=QUESTIONS,
    prepare=data.tpch,
    is_scaled=True,
)
TWO_GROUPS = Case(
    name="two_groups",
    about="the flights of January, an ordinary task before the reports",
    dag_file=HERE / "dags" / "two_groups.py",
    by_hand=FLIGHTS.by_hand,
    intervals=FLIGHTS.intervals,
    by_hand_arguments=((*JANUARY, "rows"), (*JANUARY, "reports")),
    reports=REPORTS,
    ways=(*SEVERAL, "planned_warm"),
)
BACKFILL = replace(
    FLIGHTS,
    name="backfill",
    about=f"the flights of {DAYS} days, a run each",
    intervals=_list_days(),
    by_hand_arguments=tuple((f"{day.start:%Y-%m-%d}", f"{day.end:%Y-%m-%d}") for day in _list_days()),
    flow="flights",
    prepare=data.year,
    ways=SEVERAL,
)
CLUSTER = replace(FLIGHTS, name="cluster", flow="flights", place="standalone")
CASES = {case.name: case for case in (FLIGHTS, TPCH, TWO_GROUPS, BACKFILL, CLUSTER)}
