"""The cluster behind a Spark connection: which manager it is, where to ask it, what it answers.

===========  ==================================  ===========================================================
master       asked                               extras of the connection
===========  ==================================  ===========================================================
local[n]     this machine
spark://     each Master's ``/json/``            ``master_ui``: addresses of the Masters' pages, if not port 8080
yarn         the ResourceManager's REST          ``yarn_resourcemanager_webapp_address``, ``queue``, ``node_label``
k8s://       the API server                      ``token_file``, ``ca_file``, ``tolerations`` (password: the token)
===========  ==================================  ===========================================================
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from airflow_dagsched.errors import ClusterUnknown, InvalidInput
from airflow_dagsched.launch.managers.kubernetes.live import read_kubernetes_cluster
from airflow_dagsched.launch.managers.kubernetes.objects import Toleration
from airflow_dagsched.launch.managers.local.live import is_local, make_local_cluster
from airflow_dagsched.launch.managers.standalone.live import list_masters, read_standalone_cluster
from airflow_dagsched.launch.managers.yarn.live import Where, read_yarn_cluster
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.codec import decode_json, read_file
from airflow_dagsched.model.ranges import Positive
from airflow_dagsched.model.validate import validate_cluster
from airflow_dagsched.provider.clusters.addresses import ask_in_turn, parse_addresses

log = logging.getLogger(__name__)

MASTER_UI_PORT = 8080
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds its own token and the certificate of its API server."""
ANSWER_WITHIN_S = 5.0
RESOURCE_MANAGER = "yarn_resourcemanager_webapp_address"
"""The extra that Airflow's Spark provider, too, has for this address."""


@dataclass(frozen=True, slots=True)
class Reached:
    """What a connection says about its cluster."""

    conn_id: str
    master: str
    """As spark-submit takes it."""
    password: str | None = field(default=None, repr=False)
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def answer_within_s(self) -> float:
        """Seconds that a manager or a store has for each answer: an extra; raises ``InvalidInput``."""
        return read_seconds(self, "answer_within_s", ANSWER_WITHIN_S)


def ask_live_cluster(reached: Reached) -> Cluster | None:
    """The cluster as it is now; None where there is nobody to ask. Raises :class:`ClusterUnknown`."""
    if is_local(reached.master):
        return _describe_this_machine(reached)
    if reached.master.startswith("spark://"):
        return _ask_standalone(reached)
    if reached.master == "yarn":
        return _ask_yarn(reached) if reached.extra.get(RESOURCE_MANAGER) else None
    return _ask_kubernetes(reached) if reached.master.startswith("k8s://") else None


def read_declared_cluster(reached: Reached) -> Cluster | None:
    """The connection's extra ``cluster``: the path of a cluster file, or its content; raises ``InvalidInput``."""
    declared = reached.extra.get("cluster")
    if declared is None:
        return None
    where = f"connection {reached.conn_id!r}, extra 'cluster'"
    if isinstance(declared, str) and not declared.lstrip().startswith("{"):
        return validate_cluster(read_file(Cluster, declared), declared)
    # As text, also what Airflow has parsed: the codec's errors then name the field.
    text = declared if isinstance(declared, str) else json.dumps(declared)
    return validate_cluster(decode_json(Cluster, text.encode(), where), where)


def read_tolerations(reached: Reached) -> tuple[Toleration, ...]:
    """Of the executors; raises ``InvalidInput``."""
    try:
        return msgspec.convert(parse_list(reached.extra.get("tolerations")), tuple[Toleration, ...])
    except msgspec.ValidationError as error:
        raise InvalidInput(f"connection {reached.conn_id!r}", "tolerations", str(error)) from None


def read_seconds(reached: Reached, extra: str, default: float) -> float:
    """Of the extra of that name, a number above zero, or text of one; raises ``InvalidInput``."""
    given = reached.extra.get(extra, default)
    try:
        return msgspec.convert(given, Positive, strict=False)  # not strict: a connection's form has text fields only
    except msgspec.ValidationError as error:
        raise InvalidInput(f"connection {reached.conn_id!r}", extra, f"{given!r}: {error}") from None


def parse_list(value: Any) -> list[Any]:
    """A list, or JSON text of one (a connection's form has text fields only); empty for nothing."""
    found = json.loads(value) if isinstance(value, str) and value.strip() else value
    return list(found) if isinstance(found, list) else []


def _describe_this_machine(reached: Reached) -> Cluster:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    return make_local_cluster(reached.master, os.cpu_count() or 1, memory)


def _ask_standalone(reached: Reached) -> Cluster:
    pages = parse_addresses(reached.extra.get("master_ui")) or [
        f"http://{master.rpartition(':')[0]}:{MASTER_UI_PORT}" for master in list_masters(reached.master)
    ]
    return ask_in_turn(
        [f"{page}/json/" for page in pages], lambda url: read_standalone_cluster(_ask_manager(url, reached), url)
    )


def _ask_yarn(reached: Reached) -> Cluster:
    where = Where(str(reached.extra.get("queue") or "default"), str(reached.extra.get("node_label") or ""))
    bases = [f"{page}/ws/v1/cluster" for page in parse_addresses(reached.extra.get(RESOURCE_MANAGER))]

    def answer(base: str) -> Cluster:
        return read_yarn_cluster(
            _ask_manager(f"{base}/nodes", reached), _ask_manager(f"{base}/scheduler", reached), base, where
        )

    return ask_in_turn(bases, answer)


def _ask_kubernetes(reached: Reached) -> Cluster:
    server = reached.master.removeprefix("k8s://").rstrip("/")
    server = server if "://" in server else f"https://{server}"
    rights: dict[str, Any] = {"headers": _build_auth_headers(reached), "ca_file": _find_certificate(reached)}
    nodes = _ask_manager(f"{server}/api/v1/nodes", reached, **rights)
    try:
        pods = _ask_manager(f"{server}/api/v1/pods", reached, **rights)
    except ClusterUnknown as error:
        log.warning("what is allocatable counts as free: %s", error)
        # Listing the pods of all namespaces is a right of its own, which many a token doesn't have.
        pods = None
    return read_kubernetes_cluster(nodes, pods, server, read_tolerations(reached))


def _build_auth_headers(reached: Reached) -> dict[str, str]:
    # Read for each question: Kubernetes renews the token in this file while its pod lives.
    file = Path(reached.extra.get("token_file") or SERVICE_ACCOUNT / "token")
    token = reached.password or (file.read_text().strip() if file.is_file() else "")
    return {"Authorization": f"Bearer {token}"} if token else {}


def _find_certificate(reached: Reached) -> str | None:
    given, own = reached.extra.get("ca_file"), SERVICE_ACCOUNT / "ca.crt"
    return str(given) if given else str(own) if own.is_file() else None


def _ask_manager(url: str, reached: Reached, **rights: Any) -> bytes:
    # Late: a local or declared cluster needs no HTTP client.
    from airflow_dagsched.provider.clusters.http_json import fetch_json

    return fetch_json(url, within_s=reached.answer_within_s, **rights)
