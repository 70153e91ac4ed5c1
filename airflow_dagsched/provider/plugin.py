"""What Airflow loads in every process: kept to nearly nothing."""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin

from airflow_dagsched.provider.following import lost_tries
from airflow_dagsched.provider.following.links import SparkUiLink
from airflow_dagsched.provider.mirrors import pools


class DagschedPlugin(AirflowPlugin):
    """Registers the link to the Spark UI, what looks at a run before it starts, and what looks at a failed try."""

    name = "dagsched"
    operator_extra_links = [SparkUiLink()]
    listeners = [pools, lost_tries]
