"""The TPC-H pipeline as one person would write it in one PySpark program: no Airflow, no planner.

Usage: spark-submit tpch.py DATA OUT
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

SQL = Path(__file__).parent.parent / "dags" / "tpch_sql"
TABLES = ("nation", "region", "part", "partsupp", "lineitem", "orders", "customer", "supplier")
QUESTIONS = ("q3", "q4", "q5", "q7", "q8", "q9", "q10", "q11", "q12", "q18")
VIEWS = ("sales", "customers", "suppliers", "part", "partsupp")
"""What the questions in SQL read."""


def main(data: str, out: str) -> None:
    """Read the eight tables below ``data``, write the thirteen answers below ``out``."""
    spark = SparkSession.builder.getOrCreate()
    table = {name: spark.read.parquet(f"{data}/{name}") for name in TABLES}
    sales = join_sales(table).cache()
    joined = {"sales": sales, "customers": join_customers(table), "suppliers": join_suppliers(table)}
    for name in VIEWS:
        (table | joined)[name].createOrReplaceTempView(name)
    answers = {"q1": q1(table["lineitem"]), "q6": q6(table["lineitem"]), "q14": q14(sales, table["part"])} | {
        name: ask(spark, name) for name in QUESTIONS
    }
    for name, rows in answers.items():
        rows.write.mode("overwrite").parquet(f"{out}/{name}")
    spark.stop()


def join_sales(table: Mapping[str, DataFrame]) -> DataFrame:
    """Lines with their orders and their revenue."""
    rows = table["lineitem"].join(table["orders"], sf.col("l_orderkey") == sf.col("o_orderkey"))
    rows = rows.drop("o_orderkey", "l_comment", "o_comment", "o_clerk")
    return rows.withColumn("revenue", sf.col("l_extendedprice") * (1 - sf.col("l_discount")))


def join_customers(table: Mapping[str, DataFrame]) -> DataFrame:
    """Customers with their nation and region."""
    places = table["nation"].join(table["region"], sf.col("n_regionkey") == sf.col("r_regionkey"))
    rows = table["customer"].join(sf.broadcast(places), sf.col("c_nationkey") == sf.col("n_nationkey"))
    return rows.withColumnsRenamed({"n_name": "c_nation", "r_name": "c_region"}).select(
        "c_custkey", "c_name", "c_acctbal", "c_mktsegment", "c_nation", "c_region"
    )


def join_suppliers(table: Mapping[str, DataFrame]) -> DataFrame:
    """Suppliers with their nation."""
    rows = table["supplier"].join(table["nation"], sf.col("s_nationkey") == sf.col("n_nationkey"))
    return rows.withColumnRenamed("n_name", "s_nation").select("s_suppkey", "s_name", "s_nation")


def q1(lineitem: DataFrame) -> DataFrame:
    """Prices by return flag and line status."""
    price = sf.col("l_extendedprice") * (1 - sf.col("l_discount"))
    shipped = lineitem.where("l_shipdate <= date'1998-09-02'")
    return shipped.groupBy("l_returnflag", "l_linestatus").agg(
        sf.sum("l_quantity").alias("quantity"),
        sf.sum("l_extendedprice").alias("base"),
        sf.avg("l_discount").alias("discount"),
        sf.sum(price).alias("price"),
        sf.sum(price * (1 + sf.col("l_tax"))).alias("charge"),
        sf.count("*").alias("lines"),
    )


def q6(lineitem: DataFrame) -> DataFrame:
    """What a small discount would cost."""
    small = lineitem.where("l_discount between 0.05 and 0.07 and l_quantity < 24 and year(l_shipdate) = 1994")
    return small.agg(sf.sum(sf.col("l_extendedprice") * sf.col("l_discount")).alias("revenue"))


def q14(sales: DataFrame, part: DataFrame) -> DataFrame:
    """Share of promoted parts in the revenue of a month."""
    month = sales.where("l_shipdate >= date'1995-09-01' and l_shipdate < date'1995-10-01'")
    promoted = sf.sum(sf.when(sf.col("p_type").like("PROMO%"), sf.col("revenue")).otherwise(0))
    return month.join(part, sf.col("l_partkey") == sf.col("p_partkey")).agg(
        (100 * promoted / sf.sum("revenue")).alias("promoted")
    )


def ask(spark: SparkSession, question: str) -> DataFrame:
    """The answer to a question in SQL, whose views are there."""
    return spark.sql((SQL / f"{question}.sql").read_text())


if __name__ == "__main__":
    main(*sys.argv[1:])
