"""One Spark session a step: what one step registers or sets never meets another's.

All sessions share the application, its cached data and its catalog. A DataFrame handed from step to step is
the same plan in the reader's session (under a millisecond), so ``spark.sql`` finds its temporary view.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import wraps
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from airflow_dagsched.spark.java_objects import find_class
from airflow_dagsched.spark.session.current import CURRENT

SPARK_SESSION = "org.apache.spark.sql.classic.SparkSession"


def open_session(main: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """A session of its own in the application of ``main``. Its ``stop`` stops nothing: the application is shared."""
    session = main.newSession()
    session.stop = lambda: None  # type: ignore[method-assign]
    set_session(session, settings)
    return session


def set_session(session: SparkSession, settings: Mapping[str, str]) -> None:
    """Give ``session`` these SQL settings."""
    for name, value in settings.items():
        session.conf.set(name, value)


def make_frame(plan: Any, session: SparkSession) -> DataFrame:
    """A DataFrame of ``plan`` in ``session``."""
    datasets = find_class(session, "org.apache.spark.sql.classic.Dataset")
    return ClassicDataFrame(datasets.ofRows(session._jsparkSession, plan), session)


def rebind_frame(df: DataFrame, session: SparkSession) -> DataFrame:
    """``df`` in ``session``: the same plan, planned anew when executed, so that it finds what is cached by then."""
    # The analysed plan: names in it are resolved, so the reader's views and settings change nothing.
    return make_frame(df._jdf.logicalPlan(), session)


def plan_anew(df: DataFrame, session: SparkSession) -> Any:
    """A new execution of ``df`` in ``session``: in each one Spark looks only once for what is cached."""
    return rebind_frame(df, session)._jdf.queryExecution()


def enter_session(session: SparkSession, step: str, description: str) -> None:
    """Let this thread's jobs run in ``session``, in the step's fair pool, with a name a person can read."""
    sc = session.sparkContext
    # A pool each: a short step does not stand behind a long one's tasks. ``telling`` knows a stage's step by it.
    sc.setLocalProperty("spark.scheduler.pool", step)
    sc.setJobDescription(description)
    # Of this thread, in the JVM: SQL's own functions ask for it.
    find_class(session, SPARK_SESSION).setActiveSession(session._jsparkSession)


def share_builder() -> None:
    """Make ``SparkSession.builder.getOrCreate()`` inside a step return that step's session."""
    original = SparkSession.Builder.getOrCreate
    # ``wraps`` leaves this mark: hooked twice, a step would be asked for its session twice.
    if hasattr(original, "__wrapped__"):
        return

    @wraps(original)
    def get_or_create(builder: Any) -> SparkSession:
        if CURRENT.session is None:
            return original(builder)
        for key, value in builder._options.items():
            # As ``getOrCreate`` itself does with a session that is there.
            CURRENT.session.conf.set(key, value)
        return CURRENT.session

    SparkSession.Builder.getOrCreate = get_or_create  # type: ignore[method-assign, assignment]
