"""What spark-submit's options are called as settings: by a file they reach it unseen, on a command line they do not.

Spark reads either (``SparkSubmitArguments``), and takes an option before the setting.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

from airflow_dagsched.launch.protocol.class_path import DRIVER_CLASS_PATH
from airflow_dagsched.launch.protocol.executor_settings import CORES, INSTANCES, MEMORY, MOST_CORES

OPTIONS = {
    "_archives": "spark.archives",
    "_driver_class_path": DRIVER_CLASS_PATH,
    "_driver_memory": "spark.driver.memory",
    "_exclude_packages": "spark.jars.excludes",
    "_executor_cores": CORES,
    "_executor_memory": MEMORY,
    "_files": "spark.files",
    "_jars": "spark.jars",
    "_name": "spark.app.name",
    "_num_executors": INSTANCES,
    "_packages": "spark.jars.packages",
    "_py_files": "spark.submit.pyFiles",
    "_repositories": "spark.jars.repositories",
    "_total_executor_cores": MOST_CORES,
}
"""By the provider's hook, where the author gives them."""
CONNECTION = {"keytab": "spark.kerberos.keytab", "principal": "spark.kerberos.principal", "queue": "spark.yarn.queue"}
"""By the connection, as the hook understands it."""


def collect_options(hook: SparkSubmitHook) -> dict[str, str]:
    """The settings in place of the options of ``hook``'s spark-submit."""
    return {setting: str(value) for setting, value in _list_options(hook) if value}


def _list_options(hook: SparkSubmitHook) -> Iterator[tuple[str, Any]]:
    # What the hook makes of the connection: its own checks, and defaults, have been applied.
    connection = hook._connection
    yield from ((setting, getattr(hook, name)) for name, setting in OPTIONS.items())
    yield from ((setting, connection[name]) for name, setting in CONNECTION.items())
    if hook._is_kubernetes:
        yield "spark.kubernetes.namespace", connection["namespace"]
    if hook._use_krb5ccache:
        yield "spark.kerberos.renewal.credentials", "ccache"
