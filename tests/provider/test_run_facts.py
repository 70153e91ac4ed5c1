"""Which of the feeds that there are a launch task believes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG, task

from airflow_dagsched import SparkDataflow
from airflow_dagsched.launch.protocol.feed import Feed
from airflow_dagsched.launch.protocol.identity import TryId
from airflow_dagsched.provider.runtime.gather_facts import select_feeds

NOW, BEFORE, DELETED = TryId("2026", 1, 3), TryId("2026", 0, 1), TryId("2025", 1, 3)


@task.spark_step(isolate=True)
def step(spark: Any, above: Any = None) -> Any:
    return spark.range(1)


@pytest.mark.parametrize("old", [BEFORE, DELETED])
def test_feeds_of_another_round(dag: DAG, tmp_path: Path, old: TryId) -> None:
    """a ──> b ──> c, and d beside them: b was cleared with all below it, a and d were not begun again since."""
    with SparkDataflow("f", work_dir=str(tmp_path)) as flow:
        a = step.override(task_id="a")()
        step.override(task_id="c")(above=step.override(task_id="b")(above=a))
        step.override(task_id="d")()
    by_group = {launch.group.steps: launch.spec for launch in flow.launches()}
    feeds = {by_group[(name,)].task_id: Feed(name, old) for name in "acd"}

    def believed(name: str, found: dict[str, Feed]) -> set[str]:
        return {feed.nonce for feed in select_feeds(found, by_group[(name,)], NOW.round).values()}

    assert believed("b", feeds) == {"a"}, "what c and d say is of before the clear"
    fresh = {task_id: Feed(feed.nonce, NOW) for task_id, feed in feeds.items()}
    assert believed("b", fresh) == {"a", "c", "d"}
