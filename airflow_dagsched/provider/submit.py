"""Everything private of the Spark provider that we touch, in one place (its 6.x releases only).

* ``SparkSubmitHook._process_spark_submit_log``: the line iterator our events come through.
* ``SparkSubmitHook._submit_sp``: the child process, to stop its whole process group.
* ``SparkSubmitHook._connection``: what the connection says, after its own validation.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

from airflow_dagsched.errors import LaunchRefused

LEAVE_WITHIN_S = 5.0
"""Seconds a killed application has to leave its cluster."""
JAVA_MISSING = "install Java 17 or 21 (Debian: openjdk-17-jre-headless) or set JAVA_HOME"


class FollowedSubmit(SparkSubmitHook):
    """A spark-submit whose output lines pass a filter before they are logged."""

    on_line: Callable[[str], bool] = staticmethod(lambda line: False)
    """Returns whether the line was an event, which then is not logged."""

    def submit(self, application: str = "", **kwargs: Any) -> str | None:
        return super().submit(application, start_new_session=True, **kwargs)

    def _process_spark_submit_log(self, itr: Iterator[Any]) -> None:
        super()._process_spark_submit_log(line for line in itr if not self.on_line(line))

    @property
    def master(self) -> str:
        return str(self._connection["master"])

    def on_kill(self) -> None:
        """Stop the application: politely first, so that Spark tells its cluster."""
        child = getattr(self, "_submit_sp", None)
        if child is not None and child.poll() is None:
            _signal_group(child.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                child.wait(LEAVE_WITHIN_S)
        super().on_kill()
        if child is not None:
            _signal_group(child.pid, signal.SIGKILL)


def _signal_group(group: int, signum: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signum)


def find_spark_submit(group: str) -> str:
    """The ``spark-submit`` to run: on the path, else beside this Python; raises :class:`LaunchRefused`."""
    beside = Path(sys.executable).with_name("spark-submit")
    found = shutil.which("spark-submit") or (str(beside) if beside.exists() else None)
    if found is None:
        raise LaunchRefused(group, "there is no spark-submit on this Airflow worker", "pip install pyspark")
    return found


def check_java(group: str) -> None:
    """Raises :class:`LaunchRefused` where spark-submit would find no Java."""
    home = os.environ.get("JAVA_HOME")
    if home and os.access(Path(home, "bin", "java"), os.X_OK):
        return
    if home:
        raise LaunchRefused(group, f"JAVA_HOME is {home!r}, but there is no bin/java in it", JAVA_MISSING)
    if shutil.which("java") is None:
        raise LaunchRefused(group, "there is no Java on this Airflow worker", JAVA_MISSING)
