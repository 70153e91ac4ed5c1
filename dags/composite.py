"""A loop of steps as one composite step: PageRank, until no rank moves by a ten-thousandth.

links ------------.
start -> votes -> ranks -> top      votes and ranks run again and again,
           ^________|               inside one Spark application
"""

import os
from pathlib import Path

from airflow.sdk import dag, task

from airflow_dagsched import SparkDataflow, Table

HOME = os.environ.get("AIRFLOW_HOME", str(Path.home() / "airflow"))


@dag(schedule=None)
def composite():
    # Settings for the application: few rows need few partitions, in each of the rounds.
    few = {"spark.sql.shuffle.partitions": "2"}
    with SparkDataflow("pagerank", work_dir=f"{HOME}/dagsched", conf=few) as flow:

        @task.spark_step
        def links(spark):
            pairs = "explode(array(id * 7 % 20, id * id % 20, 3)) as target"
            return spark.range(20).selectExpr("id as page", pairs).distinct()

        @task.spark_step
        def start(links):
            return links.select("page").distinct().selectExpr("page", "1.0D as rank")

        @task.spark_step
        def votes(ranks, links):
            given = links.join(links.groupBy("page").count(), "page").join(ranks, "page")
            shares = given.selectExpr("target as page", "rank / count as share").groupBy("page").sum("share")
            return ranks.join(shares, "page", "left").selectExpr("page", "rank as before", "`sum(share)` as share")

        @task.spark_step
        def ranks(votes):
            now = votes.selectExpr("page", "before", "0.15D + 0.85D * coalesce(share, 0) as rank")
            return now.selectExpr("page", "rank", "abs(rank - before) as moved")

        @task.spark_step(writes=Table(f"{HOME}/tables/top_pages"))
        def top(ranks):
            return ranks.orderBy("rank", ascending=False).limit(5).select("page", "rank")

        edges = links()
        first = votes(start(edges), edges)
        last = ranks(first)
        # What `ranks` returns is the first argument of `votes` in the next round.
        flow.repeat([first, last], until=lambda ranks: ranks.where("moved > 1e-4").isEmpty(), max_iterations=50)
        top(last)


composite()
