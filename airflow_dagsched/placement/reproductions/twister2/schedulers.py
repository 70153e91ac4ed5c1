"""Which of Twister2's schedulers stands for a policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.placement.reproductions.twister2 import data_locality, first_fit, round_robin
from airflow_dagsched.placement.request import Request, make_request
from airflow_dagsched.placement.settings import TWISTER2_VALUES, PlacementSettings
from airflow_dagsched.placement.values import Offer, TaskSchedulePlan

Scheduler = Callable[[Request], TaskSchedulePlan]

SCHEDULERS: Mapping[tuple[str, str], Scheduler] = {
    ("round_robin", "all"): round_robin.place_streaming,
    ("round_robin", "slots"): round_robin.place_batch,
    ("first_fit", "all"): first_fit.place_streaming,
    ("data_locality", "all"): data_locality.place_streaming,
    ("data_locality", "slots"): data_locality.place_batch,
}
"""Twister2's schedulers by policy and residency."""


def place_compatibly(
    policy: str, dataflow: Dataflow, offers: Sequence[Offer], settings: PlacementSettings
) -> TaskSchedulePlan:
    """The plan that Twister2 makes. Raises ``DoesNotFit`` where it fails, ``InvalidInput`` without a scheduler."""
    request = make_compatible_request(policy, dataflow, offers, settings)
    scheduler = SCHEDULERS.get((policy, request.residency))
    if scheduler is None:
        form = "streaming" if request.residency == "all" else "batch"
        raise InvalidInput("placement", "twister2_compatible", f"Twister2 has no {policy} for {form} dataflows")
    return scheduler(request)


def make_compatible_request(
    policy: str, dataflow: Dataflow, offers: Sequence[Offer], settings: PlacementSettings
) -> Request:
    """The request; the sizes set for undeclared instances reach first fit alone."""
    if policy != "first_fit":
        # Twister2 asks the vertex's own configuration, which is there and empty: the defaults come out.
        sizes = {name: TWISTER2_VALUES[name] for name in ("instance_memory_mb", "instance_disk_mb")}
        settings = replace(settings, **sizes)
    return make_request(dataflow, offers, settings)
