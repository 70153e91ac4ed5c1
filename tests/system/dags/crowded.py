"""More mirrors than a small triggerer has slots, below a task that waits on it, beside others that do.

::

    crowded    waits ──► s0 ─► s1 ─► ... ─► s11     waits: deferred for some seconds
    watching   waits
    few        waits ──► one ─► two

``away`` passes a gate before its last step: a test can hold it there.
"""

from datetime import timedelta

from airflow.providers.standard.triggers.temporal import TimeDeltaTrigger
from airflow.sdk import BaseOperator, dag, task
from gates import GATES, TABLES, WORK, pass_through

from airflow_dagsched import SparkDataflow, Table

MIRRORS = 12
WAITS_S = 5
# Airflow takes a task that is deferred and back within a scheduler's turn for one that its executor lost, and fails it.
AGAIN = {"retries": 2, "retry_delay": timedelta(seconds=1)}


class Waits(BaseOperator):
    """Holds a slot of the triggerer for a while, as a deferrable sensor does."""

    def execute(self, context):
        self.defer(trigger=TimeDeltaTrigger(timedelta(seconds=WAITS_S)), method_name="conclude")

    def conclude(self, context, event=None):
        return None


@task.spark_step
def begin(spark):
    return spark.range(10).selectExpr("id", "0 as steps")


@task.spark_step
def go_on(above):
    return above.selectExpr("id", "steps + 1 as steps")


def end_at(table):
    @task.spark_step(writes=Table(table))
    def end(above):
        return above

    return end


@dag(dag_id="crowded", schedule=None)
def crowded():
    waits = Waits(task_id="waits", **AGAIN)
    with SparkDataflow("flow", work_dir=str(WORK), retries=1, retry_delay=timedelta(seconds=1)):
        rows = first = begin()
        for number in range(MIRRORS - 2):
            rows = go_on.override(task_id=f"go_on_{number}")(rows)
        end_at(f"{TABLES}/crowded")(rows)
    waits >> first


@dag(dag_id="watching", schedule=None)
def watching():
    Waits(task_id="waits", **AGAIN)


@dag(dag_id="few", schedule=None)
def few():
    waits = Waits(task_id="waits", **AGAIN)
    with SparkDataflow("flow", work_dir=str(WORK), retries=1, retry_delay=timedelta(seconds=1)):
        first = begin()
        end_at(f"{TABLES}/few")(first)
    waits >> first


@dag(dag_id="away", schedule=None)
def away():
    with SparkDataflow("flow", work_dir=str(WORK), retries=1, retry_delay=timedelta(seconds=20), lease_s=20.0):

        @task.spark_step(writes=Table(f"{TABLES}/away/early", mode="append"))
        def early(spark):
            return spark.range(5)

        @task.spark_step(writes=Table(f"{TABLES}/away/late", mode="append"))
        def late(early):
            print("before the gate")
            pass_through(f"{GATES}/away")
            print("behind the gate")
            return early.selectExpr("id * 2 as id")

        late(early())


crowded()
watching()
few()
away()
