"""Links a launch task shows in Airflow."""

from __future__ import annotations

from typing import Any

from airflow.sdk import BaseOperatorLink


class SparkUiLink(BaseOperatorLink):
    """The page of the launch task's latest application; pushed as soon as it is known."""

    name = "Spark UI"

    @property
    def xcom_key(self) -> str:
        """Where Airflow looks for the address; named, so that it can be pushed before the task ends."""
        return "dagsched_spark_ui"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """Airflow asks at a task's end and puts the answer in place of what was pushed: so it is the same once more."""
        return str(getattr(operator, "spark_ui", ""))
