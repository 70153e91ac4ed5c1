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
from airflow_dagsched.launch.managers.kubernetes.live import kubernetes_cluster
from airflow_dagsched.launch.managers.kubernetes.objects import Toleration
from airflow_dagsched.launch.managers.local.live import is_local, local_cluster
from airflow_dagsched.launch.managers.standalone.live import masters, standalone_cluster
from airflow_dagsched.launch.managers.yarn.live import Where, yarn_cluster
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.codec import decode, read
from airflow_dagsched.model.ranges import Positive
from airflow_dagsched.model.validate import validate_cluster
from airflow_dagsched.provider.clusters.addresses import addresses, first

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
        return seconds(self, "answer_within_s", ANSWER_WITHIN_S)


def live_cluster(reached: Reached) -> Cluster | None:
    """The cluster as it is now; None where there is nobody to ask. Raises :class:`ClusterUnknown`."""
    if is_local(reached.master):
        return _local(reached)
    if reached.master.startswith("spark://"):
        return _standalone(reached)
    if reached.master == "yarn":
        return _yarn(reached) if reached.extra.get(RESOURCE_MANAGER) else None
    return _kubernetes(reached) if reached.master.startswith("k8s://") else None


def declared_cluster(reached: Reached) -> Cluster | None:
    """The connection's extra ``cluster``: the path of a cluster file, or its content; raises ``InvalidInput``."""
    declared = reached.extra.get("cluster")
    if declared is None:
        return None
    where = f"connection {reached.conn_id!r}, extra 'cluster'"
    if isinstance(declared, str) and not declared.lstrip().startswith("{"):
        return validate_cluster(read(Cluster, declared), declared)
    text = declared if isinstance(declared, str) else json.dumps(declared)
    return validate_cluster(decode(Cluster, text.encode(), where), where)


def tolerations(reached: Reached) -> tuple[Toleration, ...]:
    """Of the executors; raises ``InvalidInput``."""
    try:
        return msgspec.convert(listed(reached.extra.get("tolerations")), tuple[Toleration, ...])
    except msgspec.ValidationError as error:
        raise InvalidInput(f"connection {reached.conn_id!r}", "tolerations", str(error)) from None


def seconds(reached: Reached, extra: str, default: float) -> float:
    """Of the extra of that name, a number above zero, or text of one; raises ``InvalidInput``."""
    given = reached.extra.get(extra, default)
    try:
        return msgspec.convert(given, Positive, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"connection {reached.conn_id!r}", extra, f"{given!r}: {error}") from None


def listed(value: Any) -> list[Any]:
    """A list, or JSON text of one (a connection's form has text fields only); empty for nothing."""
    found = json.loads(value) if isinstance(value, str) and value.strip() else value
    return list(found) if isinstance(found, list) else []


def _local(reached: Reached) -> Cluster:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    return local_cluster(reached.master, os.cpu_count() or 1, memory)


def _standalone(reached: Reached) -> Cluster:
    pages = addresses(reached.extra.get("master_ui")) or [
        f"http://{master.rpartition(':')[0]}:{MASTER_UI_PORT}" for master in masters(reached.master)
    ]
    return first([f"{page}/json/" for page in pages], lambda url: standalone_cluster(_ask(url, reached), url))


def _yarn(reached: Reached) -> Cluster:
    where = Where(str(reached.extra.get("queue") or "default"), str(reached.extra.get("node_label") or ""))
    bases = [f"{page}/ws/v1/cluster" for page in addresses(reached.extra.get(RESOURCE_MANAGER))]

    def answer(base: str) -> Cluster:
        return yarn_cluster(_ask(f"{base}/nodes", reached), _ask(f"{base}/scheduler", reached), base, where)

    return first(bases, answer)


def _kubernetes(reached: Reached) -> Cluster:
    server = reached.master.removeprefix("k8s://").rstrip("/")
    server = server if "://" in server else f"https://{server}"
    rights: dict[str, Any] = {"headers": _bearer(reached), "ca_file": _certificate(reached)}
    nodes = _ask(f"{server}/api/v1/nodes", reached, **rights)
    try:
        pods = _ask(f"{server}/api/v1/pods", reached, **rights)
    except ClusterUnknown as error:
        log.warning("what is allocatable counts as free: %s", error)
        pods = None
    return kubernetes_cluster(nodes, pods, server, tolerations(reached))


def _bearer(reached: Reached) -> dict[str, str]:
    file = Path(reached.extra.get("token_file") or SERVICE_ACCOUNT / "token")
    token = reached.password or (file.read_text().strip() if file.is_file() else "")
    return {"Authorization": f"Bearer {token}"} if token else {}


def _certificate(reached: Reached) -> str | None:
    given, own = reached.extra.get("ca_file"), SERVICE_ACCOUNT / "ca.crt"
    return str(given) if given else str(own) if own.is_file() else None


def _ask(url: str, reached: Reached, **rights: Any) -> bytes:
    from airflow_dagsched.provider.clusters.http_json import ask

    return ask(url, within_s=reached.answer_within_s, **rights)
