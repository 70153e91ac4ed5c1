"""Datasets with several readers: what is kept of them, when, and that nobody's answer depends on it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from airflow_dagsched.launch.protocol.events import StepRunning
from tests.spark.running import Flow, Ran, run
from tests.spark.wide import make_wide, rows


class Wide:
    """A flow that begins with a step of ten columns; counts how often one of them is computed."""

    def __init__(self, spark: SparkSession) -> None:
        self.flow = Flow()
        wide, self.seen = make_wide(spark)
        self.flow.step(wide)


@pytest.fixture
def wide(spark: SparkSession) -> Wide:
    return Wide(spark)


def kept_columns(ran: Ran, step: str = "wide") -> float | None:
    return ran.done[step].metrics.get("kept_columns")


@pytest.mark.parametrize("slots", [1, 2])
def test_a_first_run_keeps_what_its_readers_use(spark: SparkSession, tmp_path: Path, wide: Wide, slots: int) -> None:
    """wide -> one, two: their two columns are kept; the costly one is not computed at all."""

    def one(wide):
        return wide.groupBy("c1").count()

    def two(wide):
        return wide.select("c2").where("c2 > 4")

    wide.flow.step(one, store=("",))
    wide.flow.step(two, store=("",))
    before = list_kept(spark)
    ran = run(spark, tmp_path, wide.flow, slots=slots)
    assert ran.states == {"one": "success", "two": "success", "wide": "success"}
    assert (ran.done["wide"].rows, kept_columns(ran), wide.seen.value) == (20, 2, 0)
    assert ran.lines("wide") == ["kept 2 of 10 columns, those that are read: 0.20 of the bytes"]
    assert rows(spark, ran, "two") == [(2 * at,) for at in range(3, 20)]
    assert list_kept(spark) <= before


def list_kept(spark: SparkSession) -> set[int]:
    """What earlier tests left may go at any moment."""
    return {int(each) for each in spark.sparkContext._jsc.getPersistentRDDs().keySet()}


def test_all_columns_are_kept_where_the_author_says_so(spark: SparkSession, tmp_path: Path, wide: Wide) -> None:
    def one(wide):
        return wide.select("c1")

    def two(wide):
        return wide.select("c2")

    wide.flow.step(one)
    wide.flow.step(two)
    ran = run(spark, tmp_path, wide.flow, keep_columns="all")
    assert ran.ok
    assert (kept_columns(ran), wide.seen.value) == (None, 20)


def test_rows_that_no_reader_takes_are_not_kept(spark: SparkSession, tmp_path: Path, wide: Wide) -> None:
    """wide -> one, two: both ask for c1 > 9; the rows of the step are counted all the same."""

    def one(wide):
        return wide.where("c1 > 9 and c2 < 30").groupBy("c1").count()

    def two(wide):
        return wide.where("c1 > 9").select("c2")

    wide.flow.step(one, store=("",))
    wide.flow.step(two, store=("",))
    ran = run(spark, tmp_path, wide.flow)
    assert ran.ok
    assert ran.done["wide"].rows == 20
    assert (ran.done["wide"].metrics["kept_rows"], kept_columns(ran)) == (10, 2)
    assert ran.lines("wide") == [
        "kept 2 of 10 columns, those that are read: 0.20 of the bytes",
        "kept 10 of 20 rows, those that all its readers take",
    ]
    assert rows(spark, ran, "one") == [(at, 1) for at in range(10, 15)]
    assert rows(spark, ran, "two") == [(2 * at,) for at in range(10, 20)]


def test_readers_of_a_dataset_with_a_hint_for_joins(spark: SparkSession, tmp_path: Path) -> None:
    """wide, to be broadcast -> one, two."""
    flow = Flow()

    def wide(spark):
        return spark.range(20).selectExpr("id", *(f"id * {at} as c{at}" for at in range(5))).hint("broadcast")

    def one(spark, wide):
        return spark.range(5).join(wide, "id").select("id", "c1")

    def two(wide):
        return wide.select("c2").where("c2 > 30")

    flow.step(wide)
    flow.step(one, store=("",))
    flow.step(two, store=("",))
    ran = run(spark, tmp_path, flow)
    assert ran.states == {"one": "success", "two": "success", "wide": "success"}
    assert kept_columns(ran) == 3
    assert rows(spark, ran, "one") == [(at, at) for at in range(5)]
    assert rows(spark, ran, "two") == [(2 * at,) for at in range(16, 20)]


def test_readers_that_clear_sparks_cache(spark: SparkSession, tmp_path: Path, wide: Wide) -> None:
    """wide -> one, two, three: what is kept is forgotten before the last two have read it."""

    def one(wide):
        return wide.select("c1")

    def two(spark, wide):
        wide.limit(1).collect()
        spark.catalog.clearCache()
        return wide.select("c2").where("c2 > 4")

    def three(spark, wide):
        spark.catalog.clearCache()
        return wide.alias("x").join(wide.alias("y"), "id").select("x.c3")

    for each in (one, two, three):
        wide.flow.step(each, store=("",))
    ran = run(spark, tmp_path, wide.flow)
    assert ran.ok, ran.done
    assert rows(spark, ran, "one") == [(at,) for at in range(20)]
    assert rows(spark, ran, "two") == [(2 * at,) for at in range(3, 20)]
    assert rows(spark, ran, "three") == [(3 * at,) for at in range(20)]


def test_who_asks_for_other_rows_has_all_kept(spark: SparkSession, tmp_path: Path, wide: Wide) -> None:
    def one(wide):
        return wide.where("c1 > 9").select("c2")

    def two(wide):
        return wide.where("c1 > 8").select("c2")

    wide.flow.step(one, store=("",))
    wide.flow.step(two, store=("",))
    ran = run(spark, tmp_path, wide.flow)
    assert "kept_rows" not in ran.done["wide"].metrics
    assert rows(spark, ran, "two") == [(2 * at,) for at in range(9, 20)]


@pytest.mark.parametrize("how", ["count", "rdd", "pandas", "statement", "persist"])
def test_a_reader_that_acts_has_all_kept(spark: SparkSession, tmp_path: Path, wide: Wide, how: str) -> None:
    """Its plan is not ours to change: the rows are made once, whoever comes first."""

    def one(wide):
        return wide.select("c1")

    def two(spark, wide):
        match how:
            case "count":
                return {"n": wide.where("costly > 1").count()}
            case "rdd":
                return {"n": wide.rdd.filter(lambda row: row.costly > 1).count()}
            case "pandas":
                return {"n": int((wide.toPandas().costly > 1).sum())}
            case "statement":
                wide.createOrReplaceTempView("w")
                spark.sql("create or replace temporary view x as select * from w")
                spark.sql("cache table y as select * from w")
                return {"n": spark.table("y").where("costly > 1").count()}
            case "persist":
                return {"n": wide.persist().where("costly > 1").count()}

    wide.flow.step(one)
    wide.flow.step(two)
    ran = run(spark, tmp_path, wide.flow, slots=1)
    assert ran.states == {"one": "success", "two": "success", "wide": "success"}
    assert ran.done["two"].value == {"n": 18}
    assert (ran.done["wide"].rows, kept_columns(ran), wide.seen.value) == (20, None, 20)
    spark.catalog.clearCache()


def test_who_asks_for_more_later_gets_it(spark: SparkSession, tmp_path: Path, wide: Wide) -> None:
    """wide -> one -> (stored) -> late, wide -> two, late: late can't be called before one has been executed."""

    def one(wide):
        return wide.groupBy("c1").count()

    def two(wide):
        return wide.select("c2")

    def late(wide, one):
        return wide.join(one, "c1").select("c3", "costly")

    wide.flow.step(one, store=("",))
    wide.flow.step(two, store=("",))
    wide.flow.step(late, store=("",))
    ran = run(spark, tmp_path, wide.flow)
    assert ran.ok
    assert rows(spark, ran, "late") == [(3 * at, at) for at in range(20)]
    # Nothing is known of late: all is kept, at once.
    assert (kept_columns(ran), wide.seen.value) == (None, 20)


def test_through_lazy_and_deferred_steps(spark: SparkSession, tmp_path: Path, wide: Wide) -> None:
    """wide -> lazy -> out, wide -> both -> left, right: of each what is used at the end of the way."""

    def lazy(wide):
        return wide.where("c1 > 3")

    def out(lazy):
        return lazy.select("c2")

    def both(wide):
        return wide.withColumn("more", sf.col("c3") + 1)

    def left(both):
        return both.select("more")

    def right(both):
        return both.select("c4")

    for each in (lazy, out, both, left, right):
        wide.flow.step(each, **({} if each.__name__ in ("lazy", "both") else {"store": ("",)}))
    ran = run(spark, tmp_path, wide.flow, slots=2)
    assert ran.ok
    assert (kept_columns(ran), kept_columns(ran, "both"), wide.seen.value) == (4, 2, 0)
    assert {step: ran.done[step].rows for step in ("wide", "both", "out", "left")} == {
        "wide": 20, "both": 20, "out": 16, "left": 20,
    }  # fmt: skip
    assert rows(spark, ran, "left") == [(3 * at + 1,) for at in range(20)]


def test_the_failure_is_the_steps_whose_rows_they_are(spark: SparkSession, tmp_path: Path) -> None:
    """bad -> one, two: its job runs in the turn of the first."""
    flow = Flow()

    def bad(spark):
        @sf.udf("long")
        def broken(x):
            return 1 // (x - x)

        return spark.range(3).selectExpr("id", "id a", "id b", "id c").withColumn("z", broken("id"))

    def one(bad):
        return bad.select("z")

    def two(bad):
        return bad.select("a")

    for each in (bad, one, two):
        flow.step(each)
    ran = run(spark, tmp_path, flow)
    assert ran.states == {"bad": "failed", "one": "upstream_failed", "two": "upstream_failed"}
    assert ran.done["bad"].failure is not None
    assert "ZeroDivisionError" in ran.done["bad"].failure.message


def test_a_reader_that_fails_needs_nothing(spark: SparkSession, tmp_path: Path, wide: Wide) -> None:
    """Its function is called before its turn; its failure is told in it."""

    def one(wide):
        return wide.select("c1")

    def two(wide):
        raise ValueError("no such luck")

    wide.flow.step(one)
    wide.flow.step(two)
    ran = run(spark, tmp_path, wide.flow, slots=1)
    assert ran.states == {"one": "success", "two": "failed", "wide": "success"}
    assert kept_columns(ran) == 1


@pytest.mark.parametrize("slots", [1, 3])
def test_functions_are_called_once_and_act_in_their_turn(
    spark: SparkSession, tmp_path: Path, wide: Wide, slots: int
) -> None:
    """Two that act are called before their turns, where there is one slot: they act one after the other."""
    guard, at_work, most, calls = threading.Lock(), [0], [0], list[str]()

    def acting(name: str) -> Callable[..., Any]:
        def act(spark):
            with guard:
                at_work[0] += 1
                most[0] = max(most[0], at_work[0])
            found = spark.range(1000).repartition(3).count()
            with guard:
                at_work[0] -= 1
            calls.append(name)
            return found

        return act

    first, second = acting("two"), acting("three")

    def one(wide):
        calls.append("one")
        return wide.select("c1")

    def two(spark, wide):
        spark.range(3).count()
        first(spark)
        return wide.select("c2")

    def three(spark, wide):
        spark.range(3).count()
        second(spark)
        return wide.select("c3")

    for each in (one, two, three):
        wide.flow.step(each)
    ran = run(spark, tmp_path, wide.flow, slots=slots)
    assert ran.ok
    assert sorted(calls) == ["one", "three", "two"]
    assert ran.ran == ["one", "three", "two", "wide"]
    assert sum(isinstance(event, StepRunning) for batch in ran.batches for event in batch) == 4
    assert most[0] <= slots
