"""Stored datasets that have only the columns that were read of them: who asks for more gets all, made again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from airflow_dagsched.launch.protocol.events import ColumnsRead, LeftOut, MadeAgain
from tests.spark.running import Flow, Ran, run
from tests.spark.wide import make_wide, rows

READERS = ("one", "two")


class Wide:
    """wide ──(stored)──> one, two: in another application."""

    def __init__(self, spark: SparkSession, folder: Path, one: Callable[..., Any], two: Callable[..., Any]) -> None:
        self.spark, self.folder, self.flow = spark, folder, Flow()
        wide, self.seen = make_wide(spark)
        self.flow.step(wide, store=("",))
        self.flow.step(one, store=("",))
        self.flow.step(two, store=("",))
        self.know()

    def know(self, way: str = "the code", **narrow: tuple[str, ...]) -> None:
        """What the launch knows of the columns."""
        found = {name.strip("_"): columns for name, columns in narrow.items()}
        self.flow.specs["wide"] = replace(self.flow.specs["wide"], way=way, narrow=found)

    def know_rows(self, where: tuple[str, ...]) -> None:
        """What the launch knows that all ask of the rows."""
        self.flow.specs["wide"] = replace(self.flow.specs["wide"], where={"": where} if where else {})

    def write(self) -> Ran:
        return run(self.spark, self.folder, self.flow, targets=("wide",))

    def hand_on(self, *readers: Callable[..., Any]) -> tuple[str, ...]:
        """Steps that read what two hands over unstored; all steps below wide."""
        self.flow.specs["two"] = replace(self.flow.specs["two"], store=())
        for each in readers:
            self.flow.step(each, store=("",))
        return (*READERS, *(each.__name__ for each in readers))

    def read(self, wrote: Ran, targets: tuple[str, ...] = READERS, **more: Any) -> Ran:
        datasets = {"wide/": wrote.done["wide"].datasets[""]}
        return run(self.spark, self.folder, self.flow, targets=targets, **{"datasets": datasets, **more})

    def rows(self, ran: Ran, step: str) -> list[Any]:
        return rows(self.spark, ran, step)


def one(wide):
    return wide.groupBy("c1").count()


def two(wide):
    return wide.select("c2").where("c2 > 4")


def told(ran: Ran, kind: type[Any]) -> list[Any]:
    return [event for batch in ran.batches for event in batch if isinstance(event, kind)]


def stored_columns(path: str) -> list[str]:
    return pq.read_schema(next(Path(path).glob("*.parquet"))).names


def test_what_is_read_is_told_and_the_next_run_stores_no_more(spark: SparkSession, tmp_path: Path) -> None:
    case = Wide(spark, tmp_path, one, two)
    wrote = case.write()
    first = case.read(wrote)
    where = {"wide/": {"two": ("(c2 > 4L)",)}}
    assert told(first, ColumnsRead) == [ColumnsRead({"wide/": {"one": ("c1",), "two": ("c2",)}}, where)]
    assert (wrote.done["wide"].left_out, case.seen.value) == ({}, 20)
    case.know(_=("c1", "c2"))
    # Another run: nothing of the first is reused.
    case.folder = tmp_path / "next"
    case.folder.mkdir()
    again = case.write()
    assert stored_columns(again.done["wide"].datasets[""]) == ["c1", "c2"]
    assert again.done["wide"].left_out == {"": LeftOut(10, 2, 0.2)}
    assert again.lines("wide") == ["stored 2 of 10 columns, those that are read: 0.20 of the bytes"]
    assert case.seen.value == 20
    second = case.read(again)
    assert [case.rows(second, step) for step in READERS] == [case.rows(first, step) for step in READERS]
    assert told(second, ColumnsRead) == told(first, ColumnsRead)
    assert (told(second, MadeAgain), case.seen.value) == ([], 20)


def narrowed(spark: SparkSession, folder: Path, one: Callable[..., Any], two: Callable[..., Any]) -> tuple[Wide, Ran]:
    """c1 and c2 are stored."""
    case = Wide(spark, folder, one, two)
    case.know(_=("c1", "c2"))
    return case, case.write()


def test_readers_of_other_code_have_it_made_again_before_they_begin(spark: SparkSession, tmp_path: Path) -> None:
    def two(wide):
        return wide.select("c2", "costly")

    case, wrote = narrowed(spark, tmp_path, one, two)
    case.know(way="other code")
    ran = case.read(wrote)
    assert ran.states == {"one": "success", "two": "success"}
    assert told(ran, MadeAgain) == [MadeAgain("one", "wide/", "other_code", 2, 10)]
    assert case.rows(ran, "two") == [(2 * at, at) for at in range(20)]
    # A later group finds what was made again.
    assert told(case.read(wrote, dataflow="flow", run_id="run"), MadeAgain) == []


def ask_in_sql(spark, wide):
    wide.createOrReplaceTempView("w")
    return spark.sql("select c2, c3 from w where c3 >= 0")


def ask_rdd(spark, wide):
    return spark.createDataFrame(wide.rdd.map(lambda row: (row.c2, row.c3)), "c2 long, c3 long")


def ask_in_function(spark, wide):
    assert wide.where("c3 >= 0").count() == 20
    return wide.select("c2", "c3")


def ask_in_python(spark, wide):
    return spark.createDataFrame([(row.c2, row.c3) for row in wide.collect()], "c2 long, c3 long")


def ask_by_statement(spark, wide):
    wide.createOrReplaceTempView("w")
    spark.sql("cache table cached as select c2, c3 from w")
    return spark.table("cached")


def ask_unnoticed(spark, wide):
    assert wide.where("c3 >= 0")._jdf.count() == 20
    return wide.select("c2", "c3")


def ask_and_handle(spark, wide):
    try:
        rows = wide.collect()
    except BaseException:  # noqa: BLE001 - an author may write anything
        rows = []
    return spark.createDataFrame([(row.c2, row.c3) for row in rows], "c2 long, c3 long")


ASKING: dict[str, Callable[[SparkSession, DataFrame], DataFrame]] = {
    "select": lambda spark, wide: wide.select("c2", "c3"),
    "sql": ask_in_sql,
    "udf": lambda spark, wide: wide.select("c2", sf.udf(lambda x: x, "long")("c3").alias("c3")),
    "pandas": lambda spark, wide: wide.mapInPandas(lambda parts: parts, wide.schema).select("c2", "c3"),
    "dropna": lambda spark, wide: wide.dropna().select("c2", "c3"),
    "distinct": lambda spark, wide: wide.distinct().select("c2", "c3"),
    "rdd": ask_rdd,
    "count": ask_in_function,
    "python": ask_in_python,
    "statement": ask_by_statement,
    "unnoticed": ask_unnoticed,
    "handled": ask_and_handle,
}


@pytest.mark.parametrize("how", ASKING)
def test_equal_code_that_asks_for_more_gets_it(spark: SparkSession, tmp_path: Path, how: str) -> None:
    """As code does that goes another way on another day."""

    def two(spark, wide):
        return ASKING[how](spark, wide)

    case, wrote = narrowed(spark, tmp_path, one, two)
    ran = case.read(wrote)
    assert ran.ok, ran.done["two"].failure
    (again,) = told(ran, MadeAgain)
    assert again == MadeAgain(again.step, "wide/", "more_columns", 2, 10)
    # The next run knows.
    asked = [columns for event in told(ran, ColumnsRead) for columns in event.read["wide/"].values()]
    assert any(columns is None or "c3" in columns for columns in asked)
    assert ("c2", "c3") in asked or how not in ("select", "sql", "udf")
    assert case.rows(ran, "two") == [(2 * at, 3 * at) for at in range(20)]
    assert case.rows(ran, "one") == [(at, 1) for at in range(20)]
    spark.catalog.clearCache()


@pytest.mark.parametrize("slots", [1, 2])
def test_readers_of_readers_count(spark: SparkSession, tmp_path: Path, slots: int) -> None:
    """wide ──> two ──> three, four: what these ask for is asked of wide."""

    def two(wide):
        return wide.where("c2 >= 0")

    def three(two):
        return two.select("c2")

    def four(two):
        return two.select("c4")

    case, wrote = narrowed(spark, tmp_path, one, two)
    steps = case.hand_on(three, four)
    ran = case.read(wrote, steps, slots=slots)
    assert ran.ok
    assert [event.cause for event in told(ran, MadeAgain)] == ["more_columns"]
    assert case.rows(ran, "four") == [(4 * at,) for at in range(20)]
    case.folder = tmp_path / "whole"
    case.folder.mkdir()
    case.know()
    ran = case.read(case.write(), steps)
    where = {"wide/": {"two": ("(c2 >= 0L)",)}}
    assert told(ran, ColumnsRead) == [ColumnsRead({"wide/": {"one": ("c1",), "two": ("c2", "c4")}}, where)]


@pytest.mark.parametrize("how", ["count", "rdd", "collect"])
def test_who_acts_needs_all(spark: SparkSession, tmp_path: Path, how: str) -> None:
    def two(spark, wide):
        found = getattr(wide.select("c2"), how)
        if how != "rdd":
            found()
        return wide.select("c2")

    case = Wide(spark, tmp_path, one, two)
    ran = case.read(case.write())
    assert told(ran, ColumnsRead) == [ColumnsRead({"wide/": {"one": ("c1",), "two": None}})]


def test_readers_of_its_own_application_count_too(spark: SparkSession, tmp_path: Path) -> None:
    """one reads what is stored in the same application, and more than was known."""

    def one(wide):
        return wide.groupBy("c1", "c5").count()

    case = Wide(spark, tmp_path, one, two)
    case.know(_=("c1", "c2"))
    ran = run(spark, tmp_path, case.flow, targets=("wide", "one"))
    assert ran.ok
    assert [event.cause for event in told(ran, MadeAgain)] == ["more_columns"]
    assert len(stored_columns(ran.done["wide"].datasets[""])) == 10
    assert case.rows(ran, "one") == [(at, 5 * at, 1) for at in range(20)]


def test_a_retry_reuses_what_has_the_columns_that_are_wanted(spark: SparkSession, tmp_path: Path) -> None:
    case, _ = narrowed(spark, tmp_path, one, two)
    assert case.write().states == {"wide": "reused"}
    case.know(_=("c1",))
    assert case.write().states == {"wide": "reused"}
    case.know(_=("c1", "c3"))
    assert case.write().states == {"wide": "success"}
    case.know()
    assert case.write().states == {"wide": "success"}
    assert case.write().states == {"wide": "reused"}


def test_a_failed_or_partial_run_tells_nothing(spark: SparkSession, tmp_path: Path) -> None:
    def two(wide):
        raise ValueError("no")

    case = Wide(spark, tmp_path, one, two)
    ran = case.read(case.write())
    assert ran.states == {"one": "success", "two": "failed"}
    assert told(ran, ColumnsRead) == []
