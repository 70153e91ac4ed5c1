"""What Airflow loads in every process: kept to nearly nothing."""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin

from airflow_dagsched.provider import pools
from airflow_dagsched.provider.links import SparkUiLink


class DagschedPlugin(AirflowPlugin):
    """Registers the link to the Spark UI and what looks at a run before it starts."""

    name = "dagsched"
    operator_extra_links = [SparkUiLink()]
    listeners = [pools]
