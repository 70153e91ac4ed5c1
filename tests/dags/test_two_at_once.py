"""Two dataflows, launched at the same moment on a cluster with room for one, both finish."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.dags.conftest import Play, airflow_home
from tests.testbed.spark_cluster import standalone_cluster

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.spark, pytest.mark.airflow]


def test_both_finish_one_after_the_other(play: Play, tmp_path: Path) -> None:
    """One core: whoever comes second waits for the first, and gets the core then."""
    homes = [airflow_home(tmp_path / name) for name in ("one", "other")]
    with standalone_cluster(workers=1, cores=1, memory_mb=2048, tokens=True) as cluster:
        shared = {"AIRFLOW_CONN_SPARK_DEFAULT": cluster.connection(), "AIRFLOW__DAGSCHED__WORK_DIR": str(tmp_path)}

        def launch(home: Path) -> dict[str, Any]:
            return play("sql_steps", AIRFLOW_HOME=str(home), **shared)

        with ThreadPoolExecutor() as both:
            runs = list(both.map(launch, homes))
        assert [set(run["tasks"].values()) for run in runs] == [{"success"}, {"success"}]
        assert len(cluster.state()["completedapps"]) == len(homes)
    assert list((tmp_path / "reservations").rglob("*.json")) == []
