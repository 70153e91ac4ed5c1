"""Repeat blocks: a loop of steps as one composite step."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from airflow_dagsched.launch.protocol.events import StepDone
from airflow_dagsched.launch.protocol.manifest import Repeat
from airflow_dagsched.launch.protocol.payload import Call
from tests.spark.running import Flow, run


def loop(*, store: bool = False, **changes: Any) -> Flow:
    """init -> (double -> more) -> out: x doubles, then one is added."""
    flow = Flow()

    def init(spark):
        return spark.createDataFrame([(1,)], "x long")

    def double(init):
        print("doubling")
        return init.selectExpr("x * 2 AS x")

    def more(double):
        return double.selectExpr("x + 1 AS x")

    def out(more):
        return more.first().x

    flow.step(init)
    flow.step(double, repeat="l")
    flow.step(more, repeat="l", store=("",) if store else ())
    flow.step(out)
    return flow


BLOCK = Repeat("l", ("double", "more"), 6, {"double.init": "more"})


def test_a_block_runs_to_its_last_iteration(spark: SparkSession, tmp_path: Path) -> None:
    """x: 1 -> 3 -> 7 -> 15 -> 31 -> 63 -> 127; its steps end together; nothing is left kept."""
    before = spark.sparkContext._jsc.getPersistentRDDs().size()
    ran = run(spark, tmp_path, loop(), repeats=(BLOCK,))
    assert ran.ok
    assert ran.done["out"].value == 127
    assert ran.done["double"].metrics == {"iterations": 6.0}
    assert len(ran.lines("double")) == 6
    ends = [[event.step for event in batch if isinstance(event, StepDone)] for batch in ran.batches]
    assert ends[-1] == ["init", "double", "more", "out"]
    assert spark.sparkContext._jsc.getPersistentRDDs().size() - before <= 2


def test_until_ends_it_early(spark: SparkSession, tmp_path: Path) -> None:
    """The condition gets by name what it asks for."""
    flow = loop(store=True)
    flow.calls["repeat:l"] = Call(lambda more: more.first().x > 10)
    ran = run(spark, tmp_path, flow, repeats=(BLOCK,))
    assert (ran.done["out"].value, ran.done["more"].rows, ran.done["more"].metrics) == (15, 1, {"iterations": 3.0})
    assert run(spark, tmp_path, flow, repeats=(BLOCK,), try_number=2).states == {
        "double": "reused", "init": "reused", "more": "reused", "out": "reused",
    }  # fmt: skip


def test_a_failure_inside_ends_the_block(spark: SparkSession, tmp_path: Path) -> None:
    flow = loop()

    def broken(double):
        raise ValueError("not again")

    flow.calls["more"] = replace(flow.calls["more"], function=broken)
    ran = run(spark, tmp_path, flow, repeats=(BLOCK,))
    assert ran.states == {"double": "upstream_failed", "init": "success", "more": "failed", "out": "upstream_failed"}


def test_no_round_is_planned_with_those_before_it(spark: SparkSession, tmp_path: Path) -> None:
    """A step that reads rows twice would else double the plan, round by round."""

    def double(init):
        print(init._jdf.queryExecution().analyzed().treeString().count("\n"), "lines")
        return init.join(init.withColumnRenamed("x", "y"), init.x == 2, "left").selectExpr("x * 2 AS x")

    flow = loop()
    flow.calls["double"] = replace(flow.calls["double"], function=double)
    ran = run(spark, tmp_path, flow, repeats=(BLOCK,))
    assert ran.ok
    assert len({*ran.lines("double")[1:]}) <= 2, "kept in a cache, or cut off from how they were made"
