"""The Spark that a spark-submit would run, told from its files: before a JVM is started for it."""

from __future__ import annotations

import shutil
from pathlib import Path

from airflow_dagsched.class_archives.spark_home import find_spark_home
from airflow_dagsched.errors import LaunchRefused
from airflow_dagsched.launch.managers.spark_versions import find_jar_version, judge_version


def check_spark(group: str, spark_submit: str) -> None:
    """Raises :class:`LaunchRefused` for a Spark that must run no step. One that can't be told passes: the driver
    program asks the running Spark itself.
    """
    version = read_version_at(find_spark_home(Path(shutil.which(spark_submit) or spark_submit)))
    unfit = judge_version(version) if version else None
    if unfit is not None:
        raise LaunchRefused(group, unfit.reason, unfit.remedy)


def read_version_at(home: Path | None) -> str | None:
    """The version of the Spark in ``home``; None where its jars don't say."""
    try:
        return find_jar_version(path.name for path in (home / "jars").iterdir()) if home is not None else None
    except OSError:
        return None
