"""Running steps in a unit test, without Airflow and without committing anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_dagsched.launch.protocol.interval import Interval
    from airflow_dagsched.launch.protocol.payload import Call
    from airflow_dagsched.launch.streams.rehearsal import Rehearsal
from airflow_dagsched.errors import LaunchRefused
from airflow_dagsched.launch.managers.spark_versions import judge_version
from airflow_dagsched.launch.protocol.manifest import Repeat, StepSpec


def run_local(
    specs: tuple[StepSpec, ...],
    calls: Mapping[str, Call],
    *,
    interval: Interval,
    context: Mapping[str, Any],
    inputs: Mapping[str, Any],
    repeats: tuple[Repeat, ...] = (),
    stream: Rehearsal | None = None,
    spark: SparkSession | None = None,
) -> dict[str, Any]:
    """Run the steps, in the order given, in this process; tables are not written.

    :param calls: by step id, and by ``repeat:<id>`` the condition that ends a block.
    :param inputs: results by step id, instead of running it: a DataFrame (Spark's or pandas', or a list of
        dicts), a dict of named ones, or a plain value.
    :param stream: what its functions are given besides, where the steps are a stream's.
    :param spark: the session to run in; else the one there is, else a new ``local[2]``.
    :returns: what each step returned, by step id; DataFrames are not executed. None for a skipped step.

    Raises what a step's code raises, and ``LaunchRefused`` where the session is of a Spark that must run no step.
    """
    # Here, not above: a DAG file's parse reaches this module, and must not load PySpark.
    from airflow_dagsched.spark.driver.rehearse import rehearse_steps

    session = spark or _find_session()
    unfit = judge_version(session.version)
    if unfit is not None:
        raise LaunchRefused("run_local", unfit.reason, unfit.remedy)
    if stream is not None:
        from airflow_dagsched.spark.driver.rehearse_stream import hand_in_rows

        calls = hand_in_rows(stream, calls, session)
    return rehearse_steps(
        specs, calls, interval=interval, context=context, inputs=inputs, repeats=repeats, spark=session
    )


def _find_session() -> SparkSession:
    from pyspark.sql import SparkSession

    found = SparkSession.getActiveSession()
    return found or SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
