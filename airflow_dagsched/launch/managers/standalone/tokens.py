"""What a standalone worker must offer so that applications can choose workers: one token for every slot but its own.

A running worker can't offer a new token, so tokens name *slots*, not hosts, and there are more of them than
workers: one that joins later takes a free slot, and can be kept out by tokens the others offer already.
"""

from __future__ import annotations

import json

from msgspec import Struct

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.plan.passes.pin_hosts import TOKEN_PREFIX

COMPONENT = "spark.worker"
SLOTS = 32
EXECUTORS = 32


class Offer(Struct, frozen=True):
    """Of one worker; raises ``InvalidInput`` for a slot that is none."""

    slot: int
    """From 1."""
    slots: int = SLOTS
    executors: int = EXECUTORS
    """Most executors it can hold: each takes one of every token it asks for, so with fewer tokens than that
    they would be what runs out first."""

    def __post_init__(self) -> None:
        for option, value, most in (("--slot", self.slot, self.slots), ("--executors", self.executors, 10_000)):
            if not 1 <= value <= most:
                raise InvalidInput("dagsched worker-resources", option, f"must be from 1 to {most}, not {value}")

    @property
    def tokens(self) -> tuple[str, ...]:
        """One for every slot but its own."""
        return tuple(f"{TOKEN_PREFIX}{other}" for other in range(1, self.slots + 1) if other != self.slot)


def format_resources(offer: Offer) -> str:
    """Text of the file for ``spark.worker.resourcesFile``."""
    # Each address is one piece; an executor takes one, so there are as many as executors.
    addresses = [str(at) for at in range(offer.executors)]
    offered = [
        {"id": {"componentName": COMPONENT, "resourceName": token}, "addresses": addresses} for token in offer.tokens
    ]
    return json.dumps(offered) + "\n"


def format_worker_properties(offer: Offer, resources: str) -> str:
    """Text of the worker's properties (its ``--properties-file``, or lines for ``spark-defaults.conf``).

    ``resources``: absolute path, on the worker, of :func:`format_resources`.
    """
    amounts = [f"{COMPONENT}.resource.{token}.amount {offer.executors}" for token in offer.tokens]
    return "\n".join([f"{COMPONENT}.resourcesFile {resources}", *amounts]) + "\n"
