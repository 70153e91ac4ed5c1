"""Why a group's containers are as they are once a policy has placed it; why a policy chose them is in its own words."""

from __future__ import annotations

from msgspec import Struct

from airflow_dagsched.errors import DoesNotFit


class KeptAsSized(Struct, frozen=True):
    """The policy found no room beside the groups that run with this one, which keeps the planner's containers."""

    policy: str
    refusal: DoesNotFit
    is_offered: bool
    """Whether the containers were to be as large as offered."""


class LargeAsOffered(Struct, frozen=True):
    """Containers get what their workers offer, not what they need."""

    is_smallest: bool
    """Whether the workers differ: then the smallest counts."""
    cores: int
    """That a container has: as many as there is memory for."""
    offered_cores: int


class HandedOver(Struct, frozen=True):
    """An instance whose group keeps the planner's containers changes its worker."""

    source: str
    worker: str


PlacementReason = KeptAsSized | LargeAsOffered | HandedOver
