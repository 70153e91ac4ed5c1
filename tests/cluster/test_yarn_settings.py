"""A recorded ResourceManager, a plan for it, and what a real spark-submit makes of its settings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from airflow_dagsched.launch.managers.settings import make_submission
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.provider.clusters.planner_hook import PlannerHook
from tests.cluster.submitting import result, start
from tests.plan.drawn import drawn
from tests.testbed.answers import Said, answering

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.spark]

RECORDED = Path(__file__).parents[1] / "launch" / "recorded"
REST = {"/ws/v1/cluster/nodes": "yarn_nodes.json", "/ws/v1/cluster/scheduler": "yarn_fair.json"}


def test_spark_submit_takes_the_settings_of_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """7 cores are left in the queue, all on node2: two waves on two containers of 3, and the other nodes excluded."""
    with answering({path: Said((RECORDED / name).read_bytes()) for path, name in REST.items()}) as (url, _):
        extra = {"yarn_resourcemanager_webapp_address": url}
        monkeypatch.setenv("AIRFLOW_CONN_CLUSTER", json.dumps({"conn_type": "spark", "host": "yarn", "extra": extra}))
        cluster = PlannerHook("cluster").cluster()
    group = plan(drawn("a", a={"parallelism": 12, "memory_mb": 1000}), cluster).groups[0]
    conf = make_submission(group, cluster).conf
    found = result(start("yarn", conf, "conf", env={"HADOOP_CONF_DIR": str(tmp_path)}))
    expected = {
        "spark.master": "yarn",
        "spark.executor.instances": "2",
        "spark.executor.cores": "3",
        "spark.executor.memory": "3000m",
        "spark.executor.memoryOverhead": "384m",
        "spark.yarn.exclude.nodes": "node1.example.com,node10.example.com",
        "spark.dynamicAllocation.enabled": "false",
    }
    assert {name: found.get(name) for name in expected} == expected
