"""What it saves to keep the columns that are read: ``python -m benchmarks.columns``.

::

    wide: the flights of a year with weather, plane, airline, airport   36 columns ──> by_carrier, by_weather, by_age
                                                                                       7 columns of it, together
    spark    all columns, compressed as Spark does it
    all      all columns, as they are kept where nobody knows which are read: where they fit, not compressed
    used     the seven

With ``--stored`` another application stores what the readers read, all or the seven. All ways in one session, in turn:
processor seconds of the steps, bytes that are kept, or stored. Java is told what launch tasks tell it. The first
round, in which Java learns, is left out of the medians.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import reduce
from pathlib import Path
from statistics import median
from typing import Any, Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from airflow_dagsched.launch.protocol.calls import ContextValue, Output
from airflow_dagsched.launch.protocol.events import StepDone
from airflow_dagsched.launch.protocol.manifest import Manifest, StepSpec
from airflow_dagsched.launch.protocol.payload import Call
from airflow_dagsched.spark.driver.engine import run_group
from airflow_dagsched.spark.session.compression import COMPRESSED
from airflow_dagsched.spark.session.opening import start_spark
from airflow_dagsched.spark.steps.payload import Payload
from airflow_dagsched.version import __version__
from benchmarks import data, machine
from benchmarks.home import LIGHT, MASTER
from benchmarks.processor_time import count_cpu_s
from benchmarks.results_file import RESULTS, put_down
from demo import flights_data

Way = Literal["spark", "all", "used"]
WEATHER = ("temp", "dewp", "humid", "wind_dir", "wind_speed", "wind_gust", "precip", "pressure", "visib")


def wide(spark: SparkSession, folder: str) -> DataFrame:
    """36 columns."""
    flights, weather, planes, airports, airlines = (
        spark.read.parquet(f"{folder}/{name}") for name in ("flights", "weather", "planes", "airports", "airlines")
    )
    made = planes.withColumnRenamed("year", "made")
    names = airports.select(sf.col("faa").alias("dest"), sf.col("name").alias("airport"))
    return (
        flights.join(weather.select("origin", "time_hour", *WEATHER), ["origin", "time_hour"], "left")
        .join(made, "tailnum", "left")
        .join(airlines.withColumnRenamed("name", "airline"), "carrier", "left")
        .join(names, "dest", "left")
    )


def by_carrier(wide: DataFrame) -> DataFrame:
    """Reads three columns."""
    return wide.groupBy("carrier").agg(sf.avg("dep_delay").alias("dep_delay"), sf.avg("arr_delay").alias("arr_delay"))


def by_weather(wide: DataFrame) -> DataFrame:
    """Reads three columns."""
    return wide.groupBy((sf.col("visib") < 5).alias("fog"), (sf.col("wind_speed") > 20).alias("wind")).agg(
        sf.avg("arr_delay").alias("arr_delay"), sf.count(sf.lit(1)).alias("flights")
    )


def by_age(wide: DataFrame) -> DataFrame:
    """Reads three columns."""
    return wide.where("distance > 500").groupBy("made").agg(sf.avg("arr_delay").alias("arr_delay"))


READ = ("arr_delay", "carrier", "dep_delay", "distance", "made", "visib", "wind_speed")
"""By all of them, as a run before has told."""
READERS: tuple[Callable[..., DataFrame], ...] = (by_carrier, by_weather, by_age)


def run_once(spark: SparkSession, folder: Path, scratch: Path, way: Way, *, stored: bool) -> dict[str, float]:
    """One run of all steps: its processor seconds, the bytes and columns that it kept, or stored."""
    shutil.rmtree(scratch, ignore_errors=True)
    ended: dict[str, StepDone] = {}

    def note(*events: Any) -> None:
        ended.update({event.step: event for event in events if isinstance(event, StepDone)})

    whole = _make_manifest(folder, scratch, way, stored=stored)
    before = count_cpu_s()
    for targets in (whole.targets[:1], whole.targets[1:]) if stored else (whole.targets,):
        assert run_group(spark, replace(whole, targets=targets), _make_payload(), note), ended
    metrics = ended["wide"].metrics
    return {
        "cpu_s": count_cpu_s() - before,
        "bytes": float(ended["wide"].bytes or 0) if stored else metrics["kept_bytes"],
        "columns": metrics.get("kept_columns", 36),
    }


def gather_input(spark: SparkSession, year: Path, folder: Path, times: int) -> Path:
    """The year's tables, of one file each, flights ``times`` times: a folder a day is another benchmark's matter."""
    for name in ("flights", *flights_data.TABLES):
        copies = [spark.read.parquet(str(year / name))] * (times if name == "flights" else 1)
        reduce(DataFrame.unionAll, copies).coalesce(1).write.mode("overwrite").parquet(str(folder / name))
    return folder


def _make_manifest(folder: Path, scratch: Path, way: Way, *, stored: bool) -> Manifest:
    narrow = {"": READ} if way == "used" else {}
    session = {"wide": {COMPRESSED: "true"}} if way == "spark" else {}
    steps = (
        StepSpec("wide", "wide", store=("",) if stored else (), way="this file", narrow=narrow),
        *(
            StepSpec(each.__name__, each.__name__, inputs=(Output("wide"),), upstream=("wide",), store=("",))
            for each in READERS
        ),
    )
    return Manifest(
        __version__, "3.11", "dag", "columns", "launch", "run", 1, 0, str(scratch), "", "2013",
        tuple(each.id for each in steps), steps, context={"folder": str(folder)}, session=session,
        keep_columns="used" if way == "used" else "all",
    )  # fmt: skip


def _make_payload() -> Payload:
    first = Call(wide, (), {"spark": ContextValue("spark"), "folder": ContextValue("folder")})
    return Payload({"wide": first, **{each.__name__: Call(each, (Output("wide"),), {}) for each in READERS}}, {})


def open_session() -> SparkSession:
    """As a launch task starts an application of this length."""
    spark = start_spark(settings={"spark.master": MASTER, "spark.ui.showConsoleProgress": "false", **LIGHT})
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def measure(spark: SparkSession, folder: Path, scratch: Path, rounds: int, *, stored: bool) -> dict[str, Any]:
    """The rounds of each way, their medians and what these are to each other."""
    ways: tuple[Way, ...] = ("all", "used") if stored else ("spark", "all", "used")
    runs: dict[Way, list[dict[str, float]]] = {way: [] for way in ways}
    for at in range(rounds + 1):
        # The other first in each round: who comes second finds more compiled.
        for way in ways if at % 2 else reversed(ways):
            runs[way].append(run_once(spark, folder, scratch / way, way, stored=stored))
            print(at, way, runs[way][-1], flush=True)
    medians = {way: {name: median(run[name] for run in each[1:]) for name in each[0]} for way, each in runs.items()}
    ratios = {f"used / {way}": _divide(medians["used"], medians[way]) for way in ways if way != "used"}
    return {"rounds": runs, "medians": medians, "ratios": ratios}


def _divide(used: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value / other[name], 3) for name, value in used.items()}


def main(arguments: Iterable[str] | None = None) -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.columns", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="default: %(default)s")
    parser.add_argument("--times", type=int, default=1, help="so often each flight (default: %(default)s)")
    parser.add_argument("--folder", type=Path, default=Path(".home/benchmarks"), help="input and scratch")
    parser.add_argument("--stored", action="store_true", help="for readers in another application")
    parser.add_argument("--json", type=Path, default=RESULTS / "columns.json", help="default: %(default)s")
    asked = parser.parse_args(None if arguments is None else [*arguments])
    folder = asked.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    spark = open_session()
    scratch = folder / "scratch" / "columns"
    tables = gather_input(spark, data.year(folder), scratch / "input", asked.times)
    measured = measure(spark, tables, scratch, asked.rounds, stored=asked.stored)
    print(json.dumps({**measured["medians"], **measured["ratios"]}, indent=1))
    case = f"{'stored' if asked.stored else 'kept'}, each flight {asked.times} times"
    put_down(asked.json, **{"machine": machine.facts(), case: measured})


if __name__ == "__main__":
    main()
