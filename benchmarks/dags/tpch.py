# mypy: ignore-errors
"""A pipeline over the TPC-H tables: 24 steps, 8 that load, 3 that join, 13 that answer TPC-H's questions."""

import os

from airflow.sdk import dag, task

from airflow_dagsched import SparkDataflow, SparkSqlStep, Table

DATA = os.environ.get("TPCH_DATA", "/tmp/tpch")
OUT = os.environ.get("TPCH_OUT", "/tmp/tpch_out")
WORK = os.environ.get("TPCH_WORK", "/tmp/tpch_work")


@dag(schedule=None)
def tpch():
    def load(name):
        @task.spark_step(task_id=name, reads=Table(f"{DATA}/{name}"))
        def read(spark):
            return spark.read.parquet(f"{DATA}/{name}")

        return read()

    def answer(name, *inputs):
        return SparkSqlStep(name, sql=f"tpch_sql/{name}.sql", inputs=inputs, writes=Table(f"{OUT}/{name}"))

    with SparkDataflow("tpch", conn_id="spark_default", work_dir=WORK):

        @task.spark_step(parallelism=2)
        def sales(lineitem, orders):
            rows = lineitem.join(orders, lineitem.l_orderkey == orders.o_orderkey)
            return rows.drop("o_orderkey", "l_comment", "o_comment", "o_clerk").selectExpr(
                "*", "l_extendedprice * (1 - l_discount) as revenue"
            )

        @task.spark_step
        def customers(customer, nation, region):
            from pyspark.sql.functions import broadcast

            places = nation.join(region, nation.n_regionkey == region.r_regionkey)
            rows = customer.join(broadcast(places), customer.c_nationkey == places.n_nationkey)
            return rows.selectExpr("c_custkey", "c_name", "c_acctbal", "c_mktsegment", "n_name as c_nation",
                                   "r_name as c_region")  # fmt: skip

        @task.spark_step
        def suppliers(supplier, nation):
            rows = supplier.join(nation, supplier.s_nationkey == nation.n_nationkey)
            return rows.selectExpr("s_suppkey", "s_name", "n_name as s_nation")

        @task.spark_step(writes=Table(f"{OUT}/q1"))
        def q1(lineitem):
            """Prices by return flag and line status."""
            from pyspark.sql.functions import expr

            sums = ("sum(l_quantity) as quantity", "sum(l_extendedprice) as base", "avg(l_discount) as discount",
                    "sum(l_extendedprice * (1 - l_discount)) as price",
                    "sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) as charge", "count(*) as lines")  # fmt: skip
            shipped = lineitem.where("l_shipdate <= date'1998-09-02'")
            return shipped.groupBy("l_returnflag", "l_linestatus").agg(*map(expr, sums))

        @task.spark_step(writes=Table(f"{OUT}/q6"))
        def q6(lineitem):
            """What a small discount would cost."""
            found = lineitem.where("l_discount between 0.05 and 0.07 and l_quantity < 24 and year(l_shipdate) = 1994")
            return found.selectExpr("sum(l_extendedprice * l_discount) as revenue")

        @task.spark_step(writes=Table(f"{OUT}/q14"))
        def q14(sales, part):
            """Share of promoted parts in the revenue of a month."""
            month = sales.where("l_shipdate >= date'1995-09-01' and l_shipdate < date'1995-10-01'")
            rows = month.join(part, month.l_partkey == part.p_partkey)
            return rows.selectExpr("100 * sum(if(p_type like 'PROMO%', revenue, 0)) / sum(revenue) as promoted")

        nation, region, part, partsupp = load("nation"), load("region"), load("part"), load("partsupp")
        lineitem = load("lineitem")
        sold = sales(lineitem, load("orders"))
        buyers = customers(load("customer"), nation, region)
        sellers = suppliers(load("supplier"), nation)
        q1(lineitem), q6(lineitem), q14(sold, part)
        answer("q3", sold, buyers)
        answer("q4", sold)
        answer("q5", sold, buyers, sellers)
        answer("q7", sold, buyers, sellers)
        answer("q8", sold, buyers, sellers, part)
        answer("q9", sold, sellers, part, partsupp)
        answer("q10", sold, buyers)
        answer("q11", partsupp, sellers)
        answer("q12", sold)
        answer("q18", sold, buyers)


tpch()
