"""Ordinary tasks that fail, skip, branch, cut short or come late above steps with all kinds of trigger rules.

::

    fork ───┬► taken ──┐                  late ──┬► alarm   (one_failed)   ◄── bad
            └► left ───┴► joined (nf1)           ├► calm    (one_failed)
    bad ────┬► stopped ─► mended (all_done)      └► enough  (nf1)          ◄── absent
            └► anyway (all_done)
    absent ──► idle                              nf1 = none_failed_min_one_success
    shut ────► cut ─► cut_below (all_done)       joined ─► told,  stopped ─► untold   (ordinary)

All steps but ``joined``, ``mended`` and ``cut_below`` also read one more, ``source``: so they are one group. Each
writes a table, so a table that is there tells that its step ran.
"""

from airflow.sdk import dag, task
from airflow.sdk.exceptions import AirflowSkipException
from gates import GATES, TABLES, WORK, pass_through

from airflow_dagsched import SparkDataflow, Table

NF1 = "none_failed_min_one_success"


@task.branch
def fork():
    return "flow.taken"


@task
def bad():
    raise ValueError("bad on purpose")


@task
def absent():
    raise AirflowSkipException("nothing came")


@task.short_circuit
def shut():
    return False


@task
def late(gate):
    pass_through(gate)


@task
def told():
    return "told"


@task
def untold():
    return "untold"


def step(step_name, out, *rows, rule="all_success"):
    @task.spark_step(task_id=step_name, trigger_rule=rule, writes=Table(f"{out}/{step_name}"))
    def write(spark, source=None):
        return (spark.range(1) if source is None else source).selectExpr("id", f"'{step_name}' as step")

    return write(*rows)


def rules(name):
    out = f"{TABLES}/{name}"

    @dag(dag_id=name, schedule=None)
    def build():
        with SparkDataflow("flow", work_dir=str(WORK)):

            @task.spark_step
            def source(spark):
                return spark.range(3)

            rows = source()
            taken, left, stopped, idle, cut = (
                step(each, out, rows) for each in ("taken", "left", "stopped", "idle", "cut")
            )
            anyway, enough = step("anyway", out, rows, rule="all_done"), step("enough", out, rows, rule=NF1)
            alarm, calm = (step(each, out, rows, rule="one_failed") for each in ("alarm", "calm"))
            joined, mended = step("joined", out, rule=NF1), step("mended", out, rule="all_done")
            [taken, left] >> joined
            stopped >> mended
            cut >> step("cut_below", out, rule="all_done")

        failed, skipped, delayed = bad(), absent(), late(f"{GATES}/{name}")
        fork() >> [taken, left]
        failed >> [stopped, anyway, alarm]
        skipped >> [idle, enough]
        shut() >> cut
        delayed >> [alarm, calm, enough]
        joined >> told()
        stopped >> untold()

    build()


rules("rules")
rules("rules_per_step")
