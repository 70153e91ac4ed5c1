"""What Airflow loads in every process: kept to nearly nothing."""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin

from airflow_dagsched.provider.links import SparkUiLink


class DagschedPlugin(AirflowPlugin):
    """Registers the link to the Spark UI."""

    name = "dagsched"
    operator_extra_links = [SparkUiLink()]
