"""What a standalone worker must offer so that applications can choose workers: one token for every slot but its own.

A running worker can't offer a new token, so tokens name *slots*, not hosts, and there are more of them than
workers: one that joins later takes a free slot, and can be kept out by tokens the others offer already.
"""

from __future__ import annotations

import json

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.plan.hosts import TOKEN_PREFIX

COMPONENT = "spark.worker"


def tokens_of(slot: int, slots: int) -> tuple[str, ...]:
    """Tokens that the worker in ``slot`` (from 1) of ``slots`` offers; raises ``InvalidInput``."""
    if not 1 <= slot <= slots:
        raise InvalidInput("dagsched worker-resources", "--slot", f"must be from 1 to {slots} (--slots), not {slot}")
    return tuple(f"{TOKEN_PREFIX}{other}" for other in range(1, slots + 1) if other != slot)


def resources_file(slot: int, slots: int, executors: int) -> str:
    """Text of the file for ``spark.worker.resourcesFile``: of each token one for each of ``executors``.

    Each executor takes one of every token it asks for: with fewer than the worker can hold, tokens would be
    what runs out first.
    """
    addresses = [str(at) for at in range(executors)]
    offered = [
        {"id": {"componentName": COMPONENT, "resourceName": token}, "addresses": addresses}
        for token in tokens_of(slot, slots)
    ]
    return json.dumps(offered, indent=1) + "\n"


def worker_properties(slot: int, slots: int, executors: int, resources: str) -> str:
    """Text of the worker's properties file (``--properties-file``, or lines for ``spark-defaults.conf``).

    ``resources``: absolute path, on the worker, of :func:`resources_file`.
    """
    amounts = [f"{COMPONENT}.resource.{token}.amount {executors}" for token in tokens_of(slot, slots)]
    return "\n".join([f"{COMPONENT}.resourcesFile {resources}", *amounts]) + "\n"
