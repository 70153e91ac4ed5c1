"""The TPC-H pipeline as one person would write it in one PySpark program: no Airflow, no planner.

Usage: spark-submit tpch.py DATA OUT
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

SQL = Path(__file__).parent.parent / "dags" / "tpch_sql"
QUESTIONS = ("q3", "q4", "q5", "q7", "q8", "q9", "q10", "q11", "q12", "q18")


def main(data: str, out: str) -> None:
    """Read the eight tables below ``data``, write the thirteen answers below ``out``."""
    spark = SparkSession.builder.getOrCreate()
    names = ("nation", "region", "part", "partsupp", "lineitem", "orders", "customer", "supplier")
    table = {name: spark.read.parquet(f"{data}/{name}") for name in names}
    lineitem, orders, part, nation = table["lineitem"], table["orders"], table["part"], table["nation"]

    sales = lineitem.join(orders, sf.col("l_orderkey") == sf.col("o_orderkey"))
    sales = sales.drop("o_orderkey", "l_comment", "o_comment", "o_clerk")
    sales = sales.withColumn("revenue", sf.col("l_extendedprice") * (1 - sf.col("l_discount"))).cache()

    places = nation.join(table["region"], sf.col("n_regionkey") == sf.col("r_regionkey"))
    customers = table["customer"].join(sf.broadcast(places), sf.col("c_nationkey") == sf.col("n_nationkey"))
    customers = customers.withColumnsRenamed({"n_name": "c_nation", "r_name": "c_region"}).select(
        "c_custkey", "c_name", "c_acctbal", "c_mktsegment", "c_nation", "c_region"
    )
    suppliers = table["supplier"].join(nation, sf.col("s_nationkey") == sf.col("n_nationkey"))
    suppliers = suppliers.withColumnRenamed("n_name", "s_nation").select("s_suppkey", "s_name", "s_nation")

    price = sf.col("l_extendedprice") * (1 - sf.col("l_discount"))
    q1 = (
        lineitem.where("l_shipdate <= date'1998-09-02'")
        .groupBy("l_returnflag", "l_linestatus")
        .agg(
            sf.sum("l_quantity").alias("quantity"),
            sf.sum("l_extendedprice").alias("base"),
            sf.avg("l_discount").alias("discount"),
            sf.sum(price).alias("price"),
            sf.sum(price * (1 + sf.col("l_tax"))).alias("charge"),
            sf.count("*").alias("lines"),
        )
    )
    small = lineitem.where("l_discount between 0.05 and 0.07 and l_quantity < 24 and year(l_shipdate) = 1994")
    q6 = small.agg(sf.sum(sf.col("l_extendedprice") * sf.col("l_discount")).alias("revenue"))
    month = sales.where("l_shipdate >= date'1995-09-01' and l_shipdate < date'1995-10-01'")
    promoted = sf.sum(sf.when(sf.col("p_type").like("PROMO%"), sf.col("revenue")).otherwise(0))
    q14 = month.join(part, sf.col("l_partkey") == sf.col("p_partkey")).agg(
        (100 * promoted / sf.sum("revenue")).alias("promoted")
    )

    views = {
        "sales": sales,
        "customers": customers,
        "suppliers": suppliers,
        "part": part,
        "partsupp": table["partsupp"],
    }
    for name, rows in views.items():
        rows.createOrReplaceTempView(name)
    answers = {"q1": q1, "q6": q6, "q14": q14} | {
        name: spark.sql((SQL / f"{name}.sql").read_text()) for name in QUESTIONS
    }
    for name, rows in answers.items():
        rows.write.mode("overwrite").parquet(f"{out}/{name}")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
