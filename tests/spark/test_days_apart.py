"""Two scheduled days of one dataflow, from the DAG to the rows: what grew in between is there on the second day."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from airflow.sdk import DAG, task
from pyspark.sql import SparkSession

from airflow_dagsched import Interval, SparkDataflow, SparkSqlStep, Table
from airflow_dagsched.launch.protocol.identity import TryId
from airflow_dagsched.provider.spec.run_facts import RunFacts
from airflow_dagsched.provider.submission.specs import Parts, Submit, build_parts
from tests.spark.running import Flow, Ran, run

DAYS = {"2026-01-01": 3, "2026-01-02": 7}
"""Day -> rows in the source."""


def dataflow(folder: Path, day: str) -> SparkDataflow:
    """base ─┬─> setting, plain      by_text and active read the source, and declare nothing."""
    source = str(folder / "orders")
    with (
        DAG("sales", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)),
        SparkDataflow("f", work_dir=str(folder / "work")) as flow,
    ):

        @task.spark_step(reads=[])
        def base(spark):
            return spark.range(1)

        @task.spark_step(writes=Table(str(folder / "active")))
        def active():
            return SparkSession.getActiveSession().read.parquet(source)

        @task.spark_step(writes=Table(str(folder / "plain")))
        def plain(base):
            return base.withColumnRenamed("id", "number")

        rows = base()
        active()
        plain(rows)
        SparkSqlStep("by_text", sql=f"select * from parquet.`{source}`", writes=Table(str(folder / "by_text")))
        text = "select id, '${spark.my.day}' as day from base"
        SparkSqlStep(
            "setting", sql=text, inputs=[rows], writes=Table(str(folder / "setting")), application={"spark.my.day": day}
        )
    return flow


def parts(flow: SparkDataflow, day: str) -> Parts:
    start = datetime.fromisoformat(day).replace(tzinfo=UTC)
    context = {"ds": day}
    facts = RunFacts("sales", f"scheduled__{day}", TryId(day), 0.0, {}, Interval(day, start), context, {}, {}, {})
    targets = tuple(flow.graph.sort_steps())
    return build_parts(Submit(flow.spec, targets, facts, lambda value: value, (Path(__file__).parent,)))


def ran(spark: SparkSession, folder: Path, day: str) -> Ran:
    made = parts(dataflow(folder, day), day)
    steps: Mapping[str, object] = {"run_id": f"scheduled__{day}", "incarnation": day, "interval_key": day}
    return run(spark, folder, Flow({spec.id: spec for spec in made.specs}, dict(made.calls)), **steps)


def test_no_day_has_the_rows_of_another(spark: SparkSession, tmp_path: Path) -> None:
    """But what depends on nothing else than its code is there already."""
    settings = spark._jsc.sc().conf()
    states = {}
    for day, count in DAYS.items():
        spark.range(count).write.mode("overwrite").parquet(str(tmp_path / "orders"))
        settings.set("spark.my.day", day)
        states = ran(spark, tmp_path, day).states
        for table in ("by_text", "active"):
            assert spark.read.parquet(str(tmp_path / table)).count() == count
        assert [row.day for row in spark.read.parquet(str(tmp_path / "setting")).collect()] == [day]
    settings.remove("spark.my.day")
    assert {step for step, state in states.items() if state == "reused"} == {"plain"}
