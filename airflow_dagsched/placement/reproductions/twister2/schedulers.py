"""Which of Twister2's schedulers stands for a policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.placement.reproductions.twister2 import data_locality, first_fit, round_robin
from airflow_dagsched.placement.reproductions.twister2.levels import Children, list_children
from airflow_dagsched.placement.request import Request, make_request
from airflow_dagsched.placement.settings import TWISTER2_VALUES, PlacementSettings
from airflow_dagsched.placement.values import Offer, TaskSchedulePlan

STREAMING: Mapping[str, Callable[[Request], TaskSchedulePlan]] = {
    "round_robin": round_robin.place_streaming,
    "first_fit": first_fit.place_streaming,
    "data_locality": data_locality.place_streaming,
}
BATCH: Mapping[str, Callable[[Request, Children], TaskSchedulePlan]] = {
    "round_robin": round_robin.place_batch,
    "data_locality": data_locality.place_batch,
}
"""Twister2's schedulers by policy; those of batch go by levels."""


def place_compatibly(
    policy: str, dataflow: Dataflow, offers: Sequence[Offer], settings: PlacementSettings
) -> TaskSchedulePlan:
    """The plan that Twister2 makes. Raises ``DoesNotFit`` where it fails, ``InvalidInput`` without a scheduler."""
    request = make_compatible_request(policy, dataflow, offers, settings)
    if request.residency == "all" and policy in STREAMING:
        return STREAMING[policy](request)
    if request.residency == "slots" and policy in BATCH:
        return BATCH[policy](request, list_children(request, dataflow))
    form = "streaming" if request.residency == "all" else "batch"
    raise InvalidInput("placement", "twister2_compatible", f"Twister2 has no {policy} for {form} dataflows")


def make_compatible_request(
    policy: str, dataflow: Dataflow, offers: Sequence[Offer], settings: PlacementSettings
) -> Request:
    """The request; the sizes set for undeclared instances reach first fit alone.

    By data locality a task is placed as it is: how many instances its constraints name, the scheduler asks itself.
    """
    if policy != "first_fit":
        # Twister2 asks the vertex's own configuration, which is there and empty: the defaults come out.
        sizes = {name: TWISTER2_VALUES[name] for name in ("instance_memory_mb", "instance_disk_mb")}
        settings = replace(settings, **sizes)
    if policy == "data_locality":
        return replace(make_request(dataflow, offers, replace(settings, step_parallelism=None)), settings=settings)
    return make_request(dataflow, offers, settings)
