"""Steps in a unit test: results by step, inputs given, errors raised."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_dagsched.errors import LaunchRefused
from airflow_dagsched.launch.managers import spark_versions
from airflow_dagsched.launch.protocol.interval import Interval
from airflow_dagsched.launch.protocol.tables import Table
from airflow_dagsched.local import run_local
from tests.spark.running import Flow
from tests.spark.test_repeat import BLOCK, loop


def local(spark: SparkSession | None, flow: Flow, **options: Any) -> dict[str, Any]:
    options = {"interval": Interval("2013-01-01"), "context": {}, "inputs": {}, **options}
    return run_local(tuple(flow.specs.values()), flow.calls, spark=spark, **options)


def sample() -> Flow:
    """a -> b -> c, b declares a table."""
    flow = Flow()

    def a(spark):
        raise RuntimeError("only where the data is")

    def b(a, interval):
        assert interval.key == "2013-01-01"
        return a.where("x > 1")

    def c(b):
        return {"n": b.count()}

    flow.step(a)
    flow.step(b, writes=Table("/never/written"))
    flow.step(c)
    flow.sql("d", "select max(x) m from b", "b")
    return flow


def test_results_by_step(spark: SparkSession) -> None:
    """Rows are given as a list of dicts; no table is written."""
    found = local(spark, sample(), inputs={"a": [{"x": 1}, {"x": 2}, {"x": 3}]})
    assert [row.x for row in found["b"].orderBy("x").collect()] == [2, 3]
    assert found["c"] == {"n": 2}
    assert found["d"].first().m == 3


def test_what_a_step_raises_is_raised(spark: SparkSession) -> None:
    with pytest.raises(RuntimeError, match="only where the data is"):
        local(spark, sample())


def test_a_loop(spark: SparkSession) -> None:
    assert local(spark, loop(), repeats=(BLOCK,))["out"] == 127


@pytest.mark.parametrize("passed", [True, False])
def test_a_spark_that_must_run_no_step_runs_none(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, passed: bool
) -> None:
    """The session that was passed, or the one there is: refused in one line, where it would hang."""
    monkeypatch.setitem(spark_versions.BROKEN, spark.version, "it was seen to hang")
    with pytest.raises(LaunchRefused) as refused:
        local(spark if passed else None, sample())
    assert str(refused.value).startswith(
        f"run_local: Spark {spark.version} is refused: it was seen to hang (pip install"
    )
    assert "\n" not in str(refused.value)
