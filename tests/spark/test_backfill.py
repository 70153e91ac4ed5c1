"""Many intervals of one dataflow: what is the same for all of them is made once, and the rows are the same.

::

    names (sees no interval) ─┬─> day (asks for it) ─> (a partition of the table)
                              └─> whole ─> (a table that is replaced as a whole)
"""

from __future__ import annotations

import io
import logging
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from airflow_dagsched.launch.protocol.manifest import Manifest
from airflow_dagsched.launch.protocol.tables import Table
from airflow_dagsched.launch.secrecy.masking import Masking
from airflow_dagsched.spark.driver.application import Application
from airflow_dagsched.spark.driver.engine import make_application, make_interval, run_application
from airflow_dagsched.spark.outputs.group_outputs import Outputs
from airflow_dagsched.spark.reuse.ends import Ends
from airflow_dagsched.spark.reuse.select_reusable import select_reusable
from airflow_dagsched.spark.steps.payload import Payload
from airflow_dagsched.spark.telling.emitter import Emitter
from tests.spark.running import Flow, Ran, manifest_of, run

STATIC = {"dated": False, "within_run": False}


def shop(tables: Path, called: list[str], *, share: bool) -> Flow:
    """The dataflow above, its tables in ``tables``, a new folder; each call is noted in ``called``."""
    tables.mkdir(exist_ok=True)
    flow = Flow()

    def names(spark):
        called.append("names")
        return spark.range(20).groupBy((sf.col("id") % 4).alias("shop")).agg(sf.sum("id").alias("weight"))

    def day(names, ds):
        called.append("day")
        return names.withColumn("day", sf.lit(ds)).withColumn("amount", sf.col("weight") * int(ds[-2:]))

    def whole(names):
        called.append("whole")
        return names.where("shop > 1")

    flow.step(names, share=("",) if share else (), store=() if share else ("",), **STATIC)
    flow.step(day, writes=Table(str(tables / "day"), partition_by=("day",)))
    flow.step(whole, writes=Table(str(tables / "whole")), **STATIC)
    return flow


def days(count: int) -> list[dict[str, Any]]:
    """What is different in the manifests of so many days."""
    dates = [f"2026-01-{number:02d}" for number in range(1, count + 1)]
    return [{"run_id": f"backfill {day}", "interval_key": day, "context": {"ds": day}} for day in dates]


def rows(spark: SparkSession, table: Path) -> list[tuple[Any, ...]]:
    """The table's rows, in order."""
    return sorted(map(tuple, spark.read.parquet(str(table)).select("shop", "weight").collect())) + sorted(
        map(tuple, spark.read.parquet(str(table)).collect()), key=str
    )


@pytest.mark.parametrize("count", [3, pytest.param(30, marks=pytest.mark.slow)])
def test_a_backfill_makes_once_what_every_day_needs(spark: SparkSession, tmp_path: Path, count: int) -> None:
    """The tables are those of one submit a step, each day alone in a work dir of its own."""
    called: list[str] = []
    flow = shop(tmp_path / "planned", called, share=True)
    ran = [run(spark, tmp_path / "planned", flow, **day) for day in days(count)]
    assert [each.states for each in ran] == [
        dict.fromkeys(("day", "names", "whole"), "success"),
        *[{"day": "success", "names": "reused", "whole": "reused"}] * (count - 1),
    ]
    assert sorted(called) == ["day"] * count + ["names", "whole"]
    alone = shop(tmp_path / "alone", [], share=False)
    for number, day in enumerate(days(count)):
        work = {"work_dir": str(tmp_path / "alone" / f"work {number}")}
        for step in alone.specs:
            assert run(spark, tmp_path / "alone", alone, targets=(step,), **day, **work).ok
    for table in ("day", "whole"):
        assert rows(spark, tmp_path / "planned" / table) == rows(spark, tmp_path / "alone" / table)


class Waiting(logging.Handler):
    """Notices that a driver waits for another."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if "waiting for run" in record.getMessage():
            self.seen.set()


def begun(spark: SparkSession, folder: Path, flow: Flow, made: Manifest) -> tuple[Application, Outputs]:
    """The application of a manifest, before its first turn."""
    outputs = Outputs.open(spark, made)
    emitter = Emitter(None, "", io.StringIO(), Masking())
    ends = Ends(outputs.store, made, lambda value: value)
    reusable = select_reusable(spark, made, make_interval(made), outputs, ends)
    return make_application(spark, made, Payload(flow.calls, {}), emitter.emit, outputs, reusable), outputs


def test_a_run_waits_for_another_that_makes_what_both_need(spark: SparkSession, tmp_path: Path) -> None:
    """
    day 1   names, whole ▒▒▒▒▒▒▒▒ written
    day 2        waits ..........└─ both are there
    """
    called: list[str] = []
    flow, waiting = shop(tmp_path, called, share=True), Waiting()
    manifests = [replace(manifest_of(tmp_path, flow), **day) for day in days(2)]
    first, outputs = begun(spark, tmp_path, flow, manifests[0])
    found: list[tuple[Application, Outputs]] = []
    other = threading.Thread(target=lambda: found.append(begun(spark, tmp_path, flow, manifests[1])))
    leases = logging.getLogger("airflow_dagsched.spark.outputs.leases")
    level = leases.level
    leases.setLevel(logging.INFO)
    leases.addHandler(waiting)
    try:
        other.start()
        assert waiting.seen.wait(60)
        assert run_application(first)
        other.join(60)
    finally:
        leases.removeHandler(waiting)
        leases.setLevel(level)
        outputs.close()
    second, others = found[0]
    assert set(second.reused) == {"names", "whole"}
    assert run_application(second)
    others.close()
    assert sorted(called) == ["day", "day", "names", "whole"]


def test_what_was_not_written_is_let_go(spark: SparkSession, tmp_path: Path) -> None:
    """names fails: the next run of the same step need not wait for the end of this application."""
    flow = Flow()

    def names(spark):
        raise ValueError("no")

    def day(names, ds):
        return names

    flow.step(names, share=("",), **STATIC)
    flow.step(day)
    app, outputs = begun(spark, tmp_path, flow, replace(manifest_of(tmp_path, flow), **days(1)[0]))
    assert not run_application(app)
    key = app.filing.get_key(flow.specs["names"])
    lease = outputs.keeper.find_newest("dag/flow/names/", key)
    outputs.close()
    assert lease is not None
    assert lease.expires == 0


def test_a_scan_is_not_copied_for_other_runs(spark: SparkSession, tmp_path: Path) -> None:
    """Reading the columns a day needs again costs less."""
    flow, path = Flow(), str(tmp_path / "in")
    spark.range(10).write.parquet(path)

    def names(spark):
        return spark.read.parquet(path)

    def day(names, ds):
        return names.where(f"id = {ds[-1]}")

    flow.step(names, share=("",), reads=(Table(path),), **STATIC)
    flow.step(day)
    ran: list[Ran] = [run(spark, tmp_path, flow, **each) for each in days(2)]
    assert [each.states for each in ran] == [{"day": "success", "names": "success"}] * 2
    assert not (tmp_path / "work" / "datasets").exists()
