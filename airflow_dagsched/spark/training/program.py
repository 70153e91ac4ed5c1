"""What drivers of launches do, once, on a few rows."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf

from airflow_dagsched.spark.driver.stop import Launcher, stop_now, stop_spark
from airflow_dagsched.spark.session.cache_filling import fill_cache
from airflow_dagsched.spark.session.executors import make_counter
from airflow_dagsched.spark.session.opening import start_spark
from airflow_dagsched.spark.session.plan_columns import find_use

LOOK_S = 1.0
SETTINGS = {
    "spark.scheduler.mode": "FAIR",
    "spark.sql.shuffle.partitions": "2",
    "spark.log.level": "ERROR",
}


def train(folder: Path, maker: int) -> None:
    """Do it in ``folder``, and end with the process ``maker``, should that be killed."""
    threading.Thread(target=_end_with, args=(Launcher(maker),), daemon=True).start()
    spark = start_spark(settings=SETTINGS)
    for part in PARTS:
        # What a Spark can't do its drivers don't either.
        with suppress(Exception):
            part(spark.newSession(), folder / part.__name__)
    stop_spark()


def _end_with(maker: Launcher) -> None:
    while not maker.is_gone():
        time.sleep(LOOK_S)
    stop_now(1)


def write_and_read(spark: SparkSession, folder: Path) -> None:
    """Each common format, with columns of each common type, and in partitions."""
    rows = _make_rows(spark).drop("at")
    for form in ("parquet", "csv", "json"):
        path = f"{folder}/{form}"
        rows.write.mode("overwrite").partitionBy("part").format(form).save(path)
        spark.read.format(form).load(path).where("part = 1").count()
    spark.read.schema(rows.schema).parquet(f"{folder}/parquet").where("amount > 3 and word is not null").collect()


def ask_in_sql(spark: SparkSession, folder: Path) -> None:
    """Joins of each kind, groups, windows, subqueries, dates and texts."""
    create_views(spark)
    for query in list_queries():
        with suppress(Exception):
            spark.sql(query).collect()
    spark.table("a").write.mode("overwrite").parquet(str(folder))


def create_views(spark: SparkSession) -> None:
    """What the queries are asked of."""
    _make_rows(spark).createOrReplaceTempView("a")
    _make_rows(spark).withColumnRenamed("word", "name").createOrReplaceTempView("b")


def list_queries() -> tuple[str, ...]:
    """All that are asked."""
    return (*QUERIES, *(JOIN.format(way) for way in ("merge", "broadcast", "shuffle_hash")))


def keep_and_shuffle(spark: SparkSession, folder: Path) -> None:
    """Rows in memory, read again, in other partitions; what a reader takes of them."""
    rows = _make_rows(spark).persist()
    fill_cache(rows)
    ranked = rows.selectExpr("*", "row_number() over (partition by part order by amount desc) rank")
    ranked.repartition(2, "part").coalesce(1).sortWithinPartitions("id").write.mode("overwrite").parquet(str(folder))
    rows.unionByName(rows).dropDuplicates(["word"]).limit(5).collect()
    rows.unpersist()
    marked = rows.alias("a__0")
    find_use(marked.where("id > 3 and word is not null").groupBy("part").count(), marked, "a__0")
    make_counter(spark)()


def call_python(spark: SparkSession, folder: Path) -> None:
    """Functions of rows, and of batches where Arrow is there."""
    rows = _make_rows(spark)
    rows.select(udf(lambda word: f"{word}!", "string")("word")).collect()
    rows.rdd.map(lambda row: (row["part"], 1)).reduceByKey(lambda one, other: one + other).collect()
    spark.createDataFrame([{"id": 1, "word": "a"}]).write.mode("overwrite").json(str(folder))
    if find_spec("pandas") and find_spec("pyarrow"):
        rows.groupBy("part").applyInPandas(lambda batch: batch.head(1), rows.schema).collect()
        rows.mapInPandas(lambda batches: batches, rows.schema).count()


def _make_rows(spark: SparkSession) -> DataFrame:
    return spark.range(200).selectExpr(
        "id",
        "concat('w', id % 7) word",
        "id * 1.5 amount",
        "date_add(date'2013-01-01', cast(id % 30 as int)) day",
        "current_timestamp() at",
        "cast(id % 2 as int) part",
    )


PARTS: tuple[Callable[[SparkSession, Path], None], ...] = (write_and_read, ask_in_sql, keep_and_shuffle, call_python)
JOIN = "select /*+ {}(b) */ a.part, count(distinct a.word) from a left join b on a.id = b.id group by a.part"
QUERIES = (
    "select part, sum(amount) s, max(day) d, min(word) w, count(*) n, avg(amount) from a group by part having n > 1",
    "select a.*, b.name from a join b on a.id = b.id and a.day <= b.day order by a.id desc limit 10",
    "select * from a where exists (select 1 from b where b.id = a.id) and id not in (select id from b where id > 100)",
    "select word, rank() over (partition by part order by amount) r, lag(id) over (order by id) l from a",
    "with c as (select distinct word from a union all select name from b) select count(*) from c",
    "select case when amount > 2 then upper(word) else coalesce(word, 'x') end, year(day), substr(word, 1, 1) from a",
    "select cast(amount as decimal(10, 2)), to_timestamp('2013-01-01'), regexp_replace(word, 'w', 'v') from a",
    "select part, collect_list(word), percentile_approx(amount, 0.5) from a group by cube(part, day)",
    "select * from a left anti join b on a.id = b.id + 1",
    "select id from a except select id from b",
)
