"""How a group's executors come to the workers that the plan names."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class NodesExcluded(Struct, frozen=True):
    """YARN leaves so many nodes out of the application."""

    count: int


class NodesAvoided(Struct, frozen=True):
    """Kubernetes' node affinity leaves so many nodes out."""

    count: int


class KeptOutByTokens(Struct, frozen=True):
    """Tokens keep the executors off all other workers of a standalone cluster."""

    workers: int
    tokens: int


class MasterChooses(Struct, frozen=True):
    """The standalone Master may take other workers as well."""

    workers: int
    """So many, that no token keeps out."""


PlannedWorkers = KeptOutByTokens | Literal["all workers"]
"""No others than the planned ones."""


class DealtEvenly(Struct, frozen=True):
    """These workers, but not the planned numbers on each: the Master gives one executor to each in turn."""

    workers: PlannedWorkers
    executors: int
    """On all of them."""


HostsReason = (
    NodesExcluded | NodesAvoided | KeptOutByTokens | DealtEvenly | MasterChooses | Literal["no choice", "all workers"]
)
