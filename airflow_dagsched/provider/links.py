"""Links a launch task shows in Airflow."""

from __future__ import annotations

from typing import Any

from airflow.sdk import BaseOperatorLink


class SparkUiLink(BaseOperatorLink):
    """The running application's own page; pushed as soon as it is known, not at the end."""

    name = "Spark UI"

    @property
    def xcom_key(self) -> str:
        return "dagsched_spark_ui"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """Airflow serves the pushed value; here is nothing to compute."""
        return ""
