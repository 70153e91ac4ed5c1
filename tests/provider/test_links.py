"""The link to Spark's own page, during a try and after it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG, task

from airflow_dagsched import SparkDataflow
from airflow_dagsched.launch.protocol.events import Started
from airflow_dagsched.launch.protocol.feed import Feed
from airflow_dagsched.provider.following.links import SparkUiLink
from airflow_dagsched.provider.following.reporting import open_follower
from airflow_dagsched.provider.following.standing import make_unrivalled


class TaskInstance:
    """Keeps what is pushed."""

    def __init__(self) -> None:
        self.pushed: dict[str, Any] = {}

    def xcom_push(self, key: str, value: Any) -> None:
        self.pushed[key] = value


def end_of_task(operator: Any, ti: TaskInstance) -> None:
    """As Airflow's task runner goes about the links at the end of every task, however it ended."""
    for link in operator.operator_extra_links:
        ti.xcom_push(key=link.xcom_key, value=link.get_link(operator=operator, ti_key=ti))


@pytest.mark.parametrize(
    ("pages", "last"),
    [
        ([], ""),
        (["http://w:4040"], "http://w:4040"),
        (["http://w:4040", None], "http://w:4040"),
        (["http://w:4040", "http://w:4041"], "http://w:4041"),
    ],
    ids=["no application", "one", "one without a page after it", "two"],
)
def test_the_link_stays_when_the_task_ends(dag: DAG, tmp_path: Path, pages: list[str | None], last: str) -> None:
    @task.spark_step
    def rows(spark):
        return spark.range(3)

    with SparkDataflow("f", work_dir=str(tmp_path)) as flow:
        rows()
    (launch,) = flow.launches()
    ti = TaskInstance()
    follower = open_follower(
        ti, {"rows": "f.rows"}, Feed("n"), make_unrivalled(), lambda page: setattr(launch, "spark_ui", page)
    )
    for page in pages:
        follower.take([Started("app", page)])
        assert page is None or ti.pushed[SparkUiLink().xcom_key] == page
    end_of_task(launch, ti)
    assert ti.pushed[SparkUiLink().xcom_key] == last
