"""A placement policy: what one is, those there are by name, and a user's own by its dotted path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Protocol, runtime_checkable

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.state import State
from airflow_dagsched.placement.settings import PlacementSettings
from airflow_dagsched.placement.values import Offer, TaskSchedulePlan

FOLDER = "airflow_dagsched.placement"
POLICIES: Mapping[str, str] = {
    "auto": f"{FOLDER}.built_in.Auto",
    "round_robin": f"{FOLDER}.built_in.RoundRobin",
    "first_fit": f"{FOLDER}.built_in.FirstFit",
    "data_locality": f"{FOLDER}.built_in.DataLocality",
    "cheapest": f"{FOLDER}.built_in.Cheapest",
    "high_availability": f"{FOLDER}.high_availability.schedule.HighAvailability",
}
"""Names and the classes they stand for."""


@runtime_checkable
class PlacementPolicy(Protocol):
    """Decides which step instance is in which container. After Twister2's ``ITaskScheduler``."""

    def initialize(self, settings: PlacementSettings) -> None:
        """Called once, first."""

    def schedule(self, dataflow: Dataflow, workers: Sequence[Offer], state: State) -> TaskSchedulePlan:
        """Every instance of every step in exactly one container, none above what its worker offers.

        Equal arguments, in any order, give equal plans. Raises ``DoesNotFit``, ``InvalidInput``.
        """


def policy_of(name: str, settings: PlacementSettings) -> PlacementPolicy:
    """The initialized policy of that name, or of the class at that dotted path. Raises ``InvalidInput``."""
    path = POLICIES.get(name, name)
    module, _, attribute = path.rpartition(".")
    if not module:
        known = ", ".join(POLICIES)
        raise InvalidInput("placement", "", f"no policy is called {name!r}, only: {known}, or a class's dotted path")
    try:
        made = getattr(import_module(module), attribute)()
    except (ImportError, AttributeError, TypeError) as error:
        raise InvalidInput("placement", "", f"no policy can be made of {name!r}: {error}") from error
    if not isinstance(made, PlacementPolicy):
        raise InvalidInput("placement", "", f"{name!r} is no policy: it lacks initialize or schedule")
    made.initialize(settings)
    return made
