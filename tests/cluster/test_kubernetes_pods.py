"""spark-submit against a server that plays the Kubernetes API: the executor pods that Spark itself asks for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_dagsched.launch.managers.kubernetes.submit import REQUIRED
from airflow_dagsched.launch.managers.settings import make_submission
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.provider.clusters.planner_hook import PlannerHook
from airflow_dagsched.provider.runtime.allocation import build_executor_pod, write_files
from demo.rest import until
from tests.cluster.submitting import result, start
from tests.plan.drawn import drawn
from tests.testbed.kubernetes_api import Api, kubernetes_api

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.spark]

RECORDED = Path(__file__).parents[1] / "launch" / "recorded"
NODES = ("worker2", "worker10")
TOLERATED = {"key": "team", "operator": "Equal", "value": "spark", "effect": "NoSchedule"}
AUTHORS = """
metadata:
  labels: {team: sales}
spec:
  priorityClassName: nightly
"""


def settings(api: Api, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Of a plan with a container of one core and 1000 + 384 MiB on each of the nodes."""
    connection = {"conn_type": "spark", "host": f"k8s://{api.url}", "extra": {"tolerations": [TOLERATED]}}
    monkeypatch.setenv("AIRFLOW_CONN_CLUSTER", json.dumps(connection))
    hook = PlannerHook("cluster")
    cluster = hook.cluster()
    steps = {f"s{at}": {"pinned": (node,), "mode": "streaming", "memory_mb": 1000} for at, node in enumerate(NODES)}
    group = plan(drawn("s0 == s1", **steps), cluster).groups[0]
    (folder / "authors.yaml").write_text(AUTHORS)
    pod = build_executor_pod(str(folder / "authors.yaml"), hook.tolerations())
    asked = make_submission(group, cluster, pod=pod)
    own = {"spark.kubernetes.container.image": "spark:test", "spark.scheduler.maxRegisteredResourcesWaitingTime": "1s"}
    return {**asked.conf, **own, **write_files(asked.files, folder)}


def test_executor_pods_have_the_plan_s_nodes_and_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = {f"/api/v1/{kind}": (RECORDED / f"kubernetes_{kind}.json").read_bytes() for kind in ("nodes", "pods")}
    gate = tmp_path / "seen"
    with kubernetes_api(recorded) as api:
        running = start(f"k8s://{api.url}", settings(api, tmp_path, monkeypatch), "idle", str(gate))
        try:
            pods = until("two pods", lambda: api.pods if len(api.pods) > 1 else None, timeout_s=120.0)
        finally:
            gate.touch()
            result(running)
    for pod in pods:
        _check(pod)


def _check(pod: dict[str, Any]) -> None:
    spec = pod["spec"]
    (container,) = spec["containers"]
    terms = spec["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    assert terms == [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": list(NODES)}]}]
    assert container["resources"]["requests"] == {"cpu": "1", "memory": "1384Mi"}
    assert (pod["metadata"]["labels"]["team"], spec["priorityClassName"]) == ("sales", "nightly")
    assert TOLERATED in spec["tolerations"]
