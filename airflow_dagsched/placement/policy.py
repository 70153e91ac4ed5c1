"""A placement policy: what one is, those there are by name, and a user's own by its dotted path."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Protocol, TypeVar, runtime_checkable

from airflow_dagsched.errors import DoesNotFit, InvalidInput
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.state import State
from airflow_dagsched.placement.promised import fault_of
from airflow_dagsched.placement.request import request_of
from airflow_dagsched.placement.settings import SPARK, PlacementSettings
from airflow_dagsched.placement.values import Offer, TaskSchedulePlan

T = TypeVar("T")

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
    except Exception as error:
        rule = f"no policy can be made of {name!r}: {_told(error)}"
        raise InvalidInput("placement", "", rule) from error
    if not isinstance(made, PlacementPolicy):
        raise InvalidInput("placement", "", f"{name!r} is no policy: it lacks initialize or schedule")
    policy = made if name in POLICIES else _Own(name, made)
    policy.initialize(settings)
    return policy


class _Own:
    """A user's policy, held to what a policy promises: whatever it does wrong is one error that names its class."""

    def __init__(self, name: str, made: PlacementPolicy) -> None:
        self._name, self._made, self._settings = name, made, SPARK

    def initialize(self, settings: PlacementSettings) -> None:
        self._settings = settings
        self._heard("initialize", lambda: self._made.initialize(settings))

    def schedule(self, dataflow: Dataflow, workers: Sequence[Offer], state: State) -> TaskSchedulePlan:
        found = self._heard("schedule", lambda: self._made.schedule(dataflow, workers, state))
        fault = self._heard("what it returned", lambda: fault_of(found, request_of(dataflow, workers, self._settings)))
        if fault:
            raise InvalidInput("placement", self._name, fault)
        return found

    def _heard(self, what: str, call: Callable[[], T]) -> T:
        """What ``call`` returns; a policy may refuse with these two errors, any other is a fault of the class."""
        try:
            return call()
        except (DoesNotFit, InvalidInput):
            raise
        except Exception as error:
            raise InvalidInput("placement", self._name, f"{what} failed: {_told(error)}") from error


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
