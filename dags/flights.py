"""Flights out of New York in 2013, a day at a time: ten PySpark steps, one Spark application."""

import os
from datetime import UTC, datetime
from pathlib import Path

from airflow.sdk import CronDataIntervalTimetable, dag, task

from airflow_dagsched import SparkDataflow, SparkSqlStep, Table, channel

HOME = os.environ.get("AIRFLOW_HOME", str(Path.home() / "airflow"))
DATA, OUT = os.environ.get("FLIGHTS_DATA", f"{HOME}/data"), os.environ.get("FLIGHTS_OUT", f"{HOME}/tables")
FIRST, LAST = datetime(2013, 1, 1, tzinfo=UTC), datetime(2013, 12, 31, tzinfo=UTC)
THESE_DAYS = "day >= interval.start and day < interval.end"
ROWS = {"works_without_input": False}  # a day without flights starts nothing
MEANS = "count(*) as flights, avg(dep_delay) as dep_delay, avg(arr_delay) as arr_delay"
SKY = "case when precip > 0 then 'rain' when visib < 5 then 'fog' when wind_speed > 20 then 'wind' else 'fair' end"
WORST = """select day, origin, dest, airport, flights, arr_delay from by_route join airports using (dest)
  where flights > 1 qualify row_number() over (partition by day order by arr_delay desc, origin, dest) <= 10"""


@dag(schedule=CronDataIntervalTimetable("@daily", timezone="UTC"), start_date=FIRST, end_date=LAST, catchup=False)
def flights():
    def source(name, *columns):
        @task.spark_step(task_id=name, reads=Table(f"{DATA}/{name}"), **ROWS)
        def read(spark):
            return spark.read.parquet(f"{DATA}/{name}").selectExpr(*columns)

        return read()

    def report(name, sql, *inputs):
        return SparkSqlStep(name, sql=sql, inputs=inputs, writes=Table(f"{OUT}/{name}", partition_by=["day"])).output

    with SparkDataflow("flights", conn_id="spark_default", work_dir=os.environ.get("FLIGHTS_WORK", f"{HOME}/dagsched")):

        @task.spark_step(parallelism=2, reads=Table(f"{DATA}/flights", where=THESE_DAYS), **ROWS)
        def departures(spark, interval):
            days = f"day >= '{interval.start:%Y-%m-%d}' and day < '{interval.end:%Y-%m-%d}'"
            return spark.read.parquet(f"{DATA}/flights").where(days)

        @task.spark_step(**ROWS)  # a cancelled or diverted flight has no arrival delay
        def clean(flights):
            return flights.where("arr_delay is not null")

        @task.spark_step(parallelism=2, **ROWS)
        def enriched(flights, weather, planes):
            return flights.join(weather, ["origin", "time_hour"], "left").join(planes, "tailnum", "left")

        weather = source("weather", "origin", "time_hour", "wind_speed", "precip", "visib")
        planes = source("planes", "tailnum", "2013 - year as age")
        flown = enriched(clean(departures()), weather, planes, routing={"planes": "broadcast"})
        routes = report("by_route", f"select day, origin, dest, {MEANS} from enriched group by all", flown)
        report("by_carrier", f"select day, carrier, {MEANS}, avg(age) as age from enriched group by all", flown)
        report("by_weather", f"select day, {SKY} as sky, {MEANS} from enriched group by all", flown)
        airports = source("airports", "faa as dest", "name as airport")
        report("worst", WORST, routes, channel(airports, routing="broadcast"))


flights()
