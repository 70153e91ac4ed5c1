"""Sixty steps that print 50 kB each, 3 MB together, and whatever a log, a line protocol or a database chokes on; and a
step that stands still for longer than it may.

::

    print_00 ─► print_01 ─► ... ─► print_59        each returns a value that PostgreSQL does not take

    held ▒▒▒▒▒▒ execution_timeout
"""

from datetime import timedelta

from airflow.sdk import dag, task
from gates import GATES, WORK, pass_through

from airflow_dagsched import SparkDataflow

STEPS, LINES = 60, 150
NASTY = "nul \0, escape \x1b[31m, half a pair \ud83d, return \r, C1 \x9b, line \u2028"


@dag(schedule=None)
def noisy():
    with SparkDataflow("noise", work_dir=str(WORK)):

        @task.spark_step
        def prints(spark, number, *, above=None):
            import os

            print(NASTY)
            for line in range(LINES):
                print(f"{number:02} {line:03} " + "x" * 330)
            os.write(1, b"bytes \xff\xfe of nobody\n")
            print(f"last of {number:02}")
            return {"said": NASTY, "number": number}

        above = None
        for number in range(STEPS):
            above = prints.override(task_id=f"print_{number:02}")(number, above=above)


@dag(schedule=None)
def stuck():
    with SparkDataflow("patience", work_dir=str(WORK), execution_timeout=timedelta(seconds=75), stall_s=3.0):

        @task.spark_step
        def held(spark):
            pass_through(f"{GATES}/stuck")

        @task.spark_step
        def after(spark, *, above=None):
            return None

        after(above=held())


noisy()
stuck()
