"""Two runs of one dataflow: a step is the same in both only where nothing but what is known can be in its rows."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from airflow.sdk import DAG, task
from jinja2 import Template
from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as sf
from pyspark.sql.functions import current_date as plain_name

from airflow_dagsched import Interval, SparkDataflow, SparkSqlStep, Table
from airflow_dagsched.launch.protocol.identity import TryId
from airflow_dagsched.launch.protocol.manifest import Manifest
from airflow_dagsched.provider.spec.call_arguments import transform_leaves
from airflow_dagsched.provider.spec.run_facts import RunFacts
from airflow_dagsched.provider.submission.shipping import Paths, build_shipment
from airflow_dagsched.provider.submission.specs import Submit, build_parts
from airflow_dagsched.spark.reuse.filing import make_filing
from airflow_dagsched.spark.reuse.reusable_steps import compute_fingerprints

DATA = Path("/data")
ORDERS = Table("/data/orders")
Build = Callable[[], object]


def manifest(build: Build, day: str, run: str = "", **flow: Any) -> Manifest:
    """What a run for ``day`` submits of the dataflow that ``build`` makes."""
    run_id = run or f"scheduled__{day}"
    with (
        DAG("sales", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)),
        SparkDataflow("f", work_dir="/w", **flow) as made,
    ):
        build()
    start = datetime.fromisoformat(day).replace(tzinfo=UTC)
    context = {"ds": day, "run_id": run_id}
    facts = RunFacts("sales", run_id, TryId(run_id, 0, 1), 0.0, {}, Interval(day, start), context, {}, {}, {}, True)
    rendered = lambda value: transform_leaves(value, lambda leaf: _text(leaf, context))  # noqa: E731
    targets = tuple(made.graph.sort_steps())
    submit = Submit(made.spec, targets, facts, rendered, (Path(__file__).parent,))
    return build_shipment(submit, build_parts(submit), "launch", Paths(Path("/w"), Path("/p"))).manifest


def _text(leaf: Any, context: Mapping[str, Any]) -> Any:
    return Template(leaf).render(context) if isinstance(leaf, str) else leaf


def prints(made: Manifest) -> Mapping[str, str]:
    """Fingerprints of its steps, while no declared read changes."""
    return compute_fingerprints(made, "4.2.1", lambda table, *_: table.location)


def lasting(build: Build, **flow: Any) -> set[str]:
    """Steps that the run of another day reuses."""
    first, second = (manifest(build, day, **flow) for day in ("2026-01-01", "2026-01-02"))
    one, other = prints(first), prints(second)
    same = {step for step in one if one[step] == other[step]}
    keys, others = (
        {spec.id: make_filing(made, prints(made)).get_key(spec) for spec in made.steps} for made in (first, second)
    )
    assert same == {step for step in keys if keys[step] == others[step]}
    return same


def steps(functions: Iterable[Callable[..., Any]], **declared: Any) -> Build:
    """Each function over the rows of ``base``, which is the same every day."""

    def build() -> None:
        rows = task.spark_step(reads=[])(base)()
        for function in functions:
            task.spark_step(**declared)(function)(*[rows] * function.__code__.co_argcount)

    return build


def queries(*texts: str, **declared: Any) -> Build:
    """Each text as the step ``q<place>``, over the rows of ``base``."""

    def build() -> None:
        rows = task.spark_step(reads=[])(base)()
        for place, text in enumerate(texts):
            SparkSqlStep(f"q{place}", sql=text, inputs=[rows], **declared)

    return build


def base(spark):
    return spark.range(3)


def through_the_rows(base):
    return base.sparkSession.read.parquet("/data/orders")


def active_session():
    return SparkSession.getActiveSession().read.parquet("/data/orders")


def session_of_its_own():
    from pyspark.sql import SparkSession as Session

    return Session.builder.getOrCreate().table("db.orders")


def environment(base):
    import os

    return base.withColumn("day", sf.lit(os.environ["AIRFLOW_CTX_LOGICAL_DATE"]))


def current_day(base):
    return base.withColumn("day", sf.current_date())


def by_another_name(base):
    return base.withColumn("day", plain_name())


def in_a_text(base):
    return base.selectExpr("id", "current_date as day")


def called_in_a_text(base):
    return base.selectExpr("id", "my_function(id) as day")


def a_special_date(base):
    return base.withColumn("day", sf.lit("today").cast("date"))


def a_clock(base):
    return base.withColumn("day", sf.lit(datetime.now(UTC).day))


def in_a_helper(base):
    return base.where(f"id < {limit()}")


def limit():
    return datetime.now(UTC).day


def in_a_function_within(base):
    def add(value):
        return value + random.random()

    return base.withColumn("r", sf.udf(add)("id"))


def chance(base):
    return base.withColumn("r", sf.rand())


def a_file(base):
    with open("/data/rates") as file:  # noqa: PTH123 - as authors do
        return base.withColumn("rate", sf.lit(file.read()))


def a_file_by_its_path(base):
    return base.withColumn("rate", sf.lit((DATA / "rates").read_text()))


def a_setting(base):
    return base.withColumn("day", sf.lit(base.sparkSession.conf.get("spark.my.day")))


def substituted(spark):
    return spark.sql("select '${spark.my.day}' as day")


def an_unknown_library(base):
    return base.where(yaml.safe_load("id > 1"))


def imported_inside(base):
    import csv

    return base.where(next(csv.reader(["id > 1"]))[0])


def by_its_name(base):
    return base.withColumn("day", getattr(sf, "current" + "_date")())


UNDECLARED = (
    through_the_rows,
    active_session,
    session_of_its_own,
    environment,
    current_day,
    by_another_name,
    in_a_text,
    called_in_a_text,
    a_special_date,
    a_clock,
    in_a_helper,
    in_a_function_within,
    chance,
    a_file,
    a_file_by_its_path,
    a_setting,
    an_unknown_library,
    imported_inside,
    by_its_name,
)
VARYING = UNDECLARED[3:]
"""Those that see more than a session."""


@pytest.mark.parametrize("function", UNDECLARED, ids=lambda function: function.__name__)
def test_a_function_that_may_see_more_is_its_runs_own(function: Callable[..., Any]) -> None:
    build = steps([function])
    assert lasting(build) == {"base"}
    again = [prints(manifest(build, "2026-01-01", run))[function.__name__] for run in ("one", "other")]
    assert again[0] != again[1]


@pytest.mark.parametrize("function", VARYING, ids=lambda function: function.__name__)
def test_with_declared_reads_it_is_its_intervals_own(function: Callable[..., Any]) -> None:
    build = steps([function], reads=ORDERS)
    assert lasting(build) == {"base"}
    again = [prints(manifest(build, "2026-01-01", run))[function.__name__] for run in ("one", "other")]
    assert again[0] == again[1]


def test_a_declared_session_reads_what_is_declared() -> None:
    build = steps(UNDECLARED[:3], reads=ORDERS)
    assert lasting(build) == {"base", *(function.__name__ for function in UNDECLARED[:3])}


def test_substituted_text_of_a_declared_session_is_dated() -> None:
    def build() -> None:
        task.spark_step(reads=[])(substituted)()

    assert lasting(build) == set()


def plain(base):
    """Now (and then) a docstring says what a text must not."""
    ranked = sf.row_number().over(Window.partitionBy("shop").orderBy(sf.desc("amount")))
    kept = base.select("id", (sf.col("id") % 4).alias("shop"), sf.expr("coalesce(id, 0) as amount"))
    return kept.where("shop is not null and (id in (1, 2) or id > 2)").withColumn("rank", ranked)


def helped(base):
    return scaled(base, math.pi).groupBy("id").agg(sf.sum("v").alias("v"), sf.count("*").alias("n"))


def scaled(rows, factor):
    udf = sf.udf(lambda value: value * factor + math.sqrt(2), "double")
    return rows.withColumn("v", udf("id")).withColumn("at", sf.lit(datetime(2026, 1, 1, tzinfo=UTC)))


def located(base):
    return base.withColumn("place", sf.lit(str(DATA / "x")))


def test_a_function_of_its_rows_alone_is_the_same_for_every_run() -> None:
    """The 30 days of a backfill run it once."""
    assert lasting(steps([plain, helped, located])) == {"base", "plain", "helped", "located"}


@pytest.mark.parametrize(
    "text",
    [
        "select * from parquet.`/data/orders`",
        "select * from db.orders",
        "select *, '${spark.my.day}' as day from base",
        "select *, current_date() as day from base",
        "select *, current_date as day from base",
        "select *, now() as day from base",
        "select *, `now`() as day from base",
        "select *, rand/**/() as r from base",
        "select *, uuid() as r from base",
        "select *, date'today' as day from base",
        "select *, my_function(id) from base",
        "select *, db.upper(id) from base",
        "select * from base tablesample (10 percent)",
        "select * from base where id in (select id from orders)",
        "with base as (select * from base), orders as (select * from orders) select * from orders",
        "with o as (select * from orders) select * from o",
        "select * from base; select * from base",
        "insert into db.orders select * from base",
        "select (",
    ],
)
def test_a_text_that_may_see_more_is_its_runs_own(text: str) -> None:
    build = queries(text)
    assert lasting(build) == {"base"}
    again = [prints(manifest(build, "2026-01-01", run))["q0"] for run in ("one", "other")]
    assert again[0] != again[1]


def test_a_table_that_the_text_reads_and_no_one_declared_is_undeclared() -> None:
    """Whatever else is declared."""
    text = "select * from parquet.`/data/orders` join db.other using (id)"
    build = queries(text, reads=ORDERS)
    again = [prints(manifest(build, "2026-01-01", run))["q0"] for run in ("one", "other")]
    assert again[0] != again[1]
    assert lasting(queries(text, reads=[ORDERS, Table("db.other")])) == {"base", "q0"}


def test_a_text_over_its_rows_alone_is_the_same_for_every_run() -> None:
    texts = (
        "select * from base",
        "with few as (select id, count(*) n from base group by id), more as (select * from few) select * from more",
        "select b.id, row_number() over (partition by shop order by id) r from (select *, id % 2 shop from BASE) b",
        "select * from base where id in (select max(id) from base) and (id > 1 or id < 5)",
        "select upper(cast(id as string)) u, case when (id > 1) then 1 else (id + 2) * 3 end c from base -- all",
        "select id from base union all (select id from base)",
    )
    assert lasting(queries(*texts)) == {"base", *(f"q{place}" for place in range(len(texts)))}


def test_settings_that_differ_date_their_steps() -> None:
    """The dataflow's, and those of one step."""

    def build() -> None:
        rows = task.spark_step(reads=[])(base)()
        task.spark_step(application={"spark.sql.session.timeZone": "{{ 'UTC' if ds < '2026-01-02' else 'CET' }}"})(
            plain
        )(rows)
        task.spark_step(helped)(rows)

    assert lasting(build) == {"base", "helped"}
    assert lasting(steps([plain]), conf={"spark.my.day": "{{ ds }}"}) == set()


def test_settings_that_make_no_rows_do_not_count() -> None:
    """How large, how named, and by which credentials: those are not even in the digest."""
    names = ("spark.app.name", "spark.executor.memory", "spark.hadoop.fs.s3a.secret.key")
    conf = {name: f"{name} {{{{ ds }}}}" for name in names}
    assert lasting(steps([plain]), conf=conf) == {"base", "plain"}


def test_what_has_settings_by_the_run_is_not_kept_for_other_runs() -> None:
    def build() -> None:
        rows = task.spark_step(reads=[])(base)()

        @task.spark_step
        def day(base, ds):
            return base.withColumn("day", sf.lit(ds))

        day(rows)

    plainly, by_day = (manifest(build, "2026-01-01", conf=conf) for conf in ({}, {"spark.my.day": "{{ ds }}"}))
    assert [spec.share for made in (plainly, by_day) for spec in made.steps if spec.id == "base"] == [("",), ()]


def test_what_is_below_is_dated_too() -> None:
    """today ─> plain; in a loop, by its condition."""

    def build() -> None:
        rows = task.spark_step(reads=[])(base)()
        late = task.spark_step(current_day)(rows)
        task.spark_step(plain)(late)

    assert lasting(build) == {"base"}
