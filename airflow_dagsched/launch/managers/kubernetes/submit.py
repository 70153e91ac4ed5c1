"""A group on Kubernetes: a template for executor pods whose node affinity names the planned nodes.

The template is the author's own, if there is one, with the affinity added to it (node selector terms are
alternatives, so it is added to each).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from airflow_dagsched.launch.managers.executors import Executors, Submission, name_sizes
from airflow_dagsched.launch.managers.kubernetes.live import HOSTNAME
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.order import sort_naturally

TEMPLATE = "spark.kubernetes.executor.podTemplateFile"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
POD: Mapping[str, Any] = {"apiVersion": "v1", "kind": "Pod"}


def make_kubernetes_submission(
    asked: Executors, cluster: Cluster, pod: Mapping[str, Any], *, exact: bool
) -> Submission:
    """``exact``: on the planned nodes only; ``pod``: the template to start from, which may be empty."""
    hosts = sort_naturally({worker.host for worker in cluster.workers if worker.id in asked.on})
    template = make_pod_template(pod, hosts) if exact else {**POD, **pod}
    return Submission(name_sizes(asked), {TEMPLATE: json.dumps(template, indent=1, sort_keys=True) + "\n"})


def make_pod_template(pod: Mapping[str, Any], hosts: Sequence[str]) -> dict[str, Any]:
    """``pod`` for nodes with one of these host names only. JSON is YAML, which is what Spark reads."""
    spec = pod.get("spec") or {}
    affinity = spec.get("affinity") or {}
    nodes = affinity.get("nodeAffinity") or {}
    required = {"nodeSelectorTerms": _add_hosts_to_terms(nodes.get(REQUIRED) or {}, hosts)}
    return {**POD, **pod, "spec": {**spec, "affinity": {**affinity, "nodeAffinity": {**nodes, REQUIRED: required}}}}


def _add_hosts_to_terms(required: Mapping[str, Any], hosts: Sequence[str]) -> list[dict[str, Any]]:
    # Spark's own node selectors are all to be met at once; only an affinity can say: one of these hosts.
    on_hosts = {"key": HOSTNAME, "operator": "In", "values": list(hosts)}
    # Terms are alternatives, so each gets the hosts; where there is none, an empty one gets them.
    terms = required.get("nodeSelectorTerms") or [{}]
    return [{**term, "matchExpressions": [*(term.get("matchExpressions") or ()), on_hosts]} for term in terms]
