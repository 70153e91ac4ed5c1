# mypy: ignore-errors
"""The flights, joined in one group of steps; what the reports say of them follows an ordinary task, in another one."""

import os

from airflow.sdk import dag, task

from airflow_dagsched import SparkDataflow, SparkSqlStep, Table

DATA = os.environ.get("TWO_GROUPS_DATA", "/tmp/two_groups")
OUT = os.environ.get("TWO_GROUPS_OUT", "/tmp/two_groups_out")
WORK = os.environ.get("TWO_GROUPS_WORK", "/tmp/two_groups_work")
MEANS = "count(*) as flights, avg(dep_delay) as dep_delay, avg(arr_delay) as arr_delay"
SKY = "case when precip > 0 then 'rain' when visib < 5 then 'fog' when wind_speed > 20 then 'wind' else 'fair' end"
WORST = """select day, origin, dest, airport, flights, arr_delay from by_route join airports using (dest)
  where flights > 1 qualify row_number() over (partition by day order by arr_delay desc, origin, dest) <= 10"""


@dag(schedule=None)
def two_groups():
    def source(name, *columns):
        @task.spark_step(task_id=name)
        def read(spark):
            return spark.read.parquet(f"{DATA}/{name}").selectExpr(*columns)

        return read()

    def report(name, sql, *inputs):
        return SparkSqlStep(name, sql=sql, inputs=inputs, writes=Table(f"{OUT}/{name}", partition_by=["day"]))

    @task
    def look():
        """As a person would, before the reports go out."""

    with SparkDataflow("two_groups", conn_id="spark_default", work_dir=WORK):

        @task.spark_step(parallelism=2)
        def departures(spark, interval):
            days = f"day >= '{interval.start:%Y-%m-%d}' and day < '{interval.end:%Y-%m-%d}'"
            return spark.read.parquet(f"{DATA}/flights").where(days)

        @task.spark_step(parallelism=2)
        def enriched(flights, weather, planes):
            arrived = flights.where("arr_delay is not null")
            return arrived.join(weather, ["origin", "time_hour"], "left").join(planes, "tailnum", "left")

        weather = source("weather", "origin", "time_hour", "wind_speed", "precip", "visib")
        planes = source("planes", "tailnum", "2013 - year as age")
        flown = enriched(departures(), weather, planes)
        routes = report("by_route", f"select day, origin, dest, {MEANS} from enriched group by all", flown)
        carriers = report(
            "by_carrier", f"select day, carrier, {MEANS}, avg(age) as age from enriched group by all", flown
        )
        skies = report("by_weather", f"select day, {SKY} as sky, {MEANS} from enriched group by all", flown)
        report("worst", WORST, routes.output, source("airports", "faa as dest", "name as airport"))

    flown >> look() >> [routes, carriers, skies]


two_groups()
