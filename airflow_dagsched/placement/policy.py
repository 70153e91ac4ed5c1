"""A placement policy: what one is, those there are by name, and a user's own by its dotted path."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Protocol, TypeVar, runtime_checkable

from airflow_dagsched.errors import DoesNotFit, InvalidInput
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.state import State
from airflow_dagsched.placement.request import make_request
from airflow_dagsched.placement.settings import SPARK, PlacementSettings
from airflow_dagsched.placement.values import Offer, TaskSchedulePlan
from airflow_dagsched.placement.verify_schedule import find_fault

T = TypeVar("T")

# By dotted path: the policies import this file, and high availability is loaded only where it is asked for.
FOLDER = "airflow_dagsched.placement"
POLICIES: Mapping[str, str] = {
    "auto": f"{FOLDER}.policies.built_in.Auto",
    "round_robin": f"{FOLDER}.policies.built_in.RoundRobin",
    "first_fit": f"{FOLDER}.policies.built_in.FirstFit",
    "data_locality": f"{FOLDER}.policies.built_in.DataLocality",
    "cheapest": f"{FOLDER}.policies.built_in.Cheapest",
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


class BuiltInPolicy:
    """A policy that keeps nothing but its settings: those for Spark until it is told others."""

    def __init__(self) -> None:
        self.settings = SPARK

    def initialize(self, settings: PlacementSettings) -> None:
        """Place by these settings from now on."""
        self.settings = settings


def load_policy(name: str, settings: PlacementSettings) -> PlacementPolicy:
    """The initialized policy of that name, or of the class at that dotted path. Raises ``InvalidInput``."""
    path = POLICIES.get(name, name)
    module, _, attribute = path.rpartition(".")
    if not module:
        known = ", ".join(POLICIES)
        raise InvalidInput("placement", "", f"no policy is called {name!r}, only: {known}, or a class's dotted path")
    try:
        policy = getattr(import_module(module), attribute)()
    # A user's module may raise anything as it is imported: one error that names it, in a parse of a DAG file.
    except Exception as error:
        rule = f"no policy can be made of {name!r}: {_describe_error(error)}"
        raise InvalidInput("placement", "", rule) from error
    if not isinstance(policy, PlacementPolicy):
        raise InvalidInput("placement", "", f"{name!r} is no policy: it lacks initialize or schedule")
    # Tests hold ours to what a user's are held to at every plan.
    policy = policy if name in POLICIES else _UserPolicy(name, policy)
    policy.initialize(settings)
    return policy


class _UserPolicy:
    """A user's policy, held to what a policy promises: whatever it does wrong is one error that names its class."""

    def __init__(self, name: str, policy: PlacementPolicy) -> None:
        self._name, self._made, self._settings = name, policy, SPARK

    def initialize(self, settings: PlacementSettings) -> None:
        self._settings = settings
        self._call_policy("initialize", lambda: self._made.initialize(settings))

    def schedule(self, dataflow: Dataflow, workers: Sequence[Offer], state: State) -> TaskSchedulePlan:
        schedule = self._call_policy("schedule", lambda: self._made.schedule(dataflow, workers, state))
        fault = self._call_policy(
            "what it returned", lambda: find_fault(schedule, make_request(dataflow, workers, self._settings))
        )
        if fault:
            raise InvalidInput("placement", self._name, fault)
        return schedule

    def _call_policy(self, what: str, call: Callable[[], T]) -> T:
        """What ``call`` returns; a policy may refuse with these two errors, any other is a fault of the class."""
        try:
            return call()
        except (DoesNotFit, InvalidInput):
            raise
        except Exception as error:
            raise InvalidInput("placement", self._name, f"{what} failed: {_describe_error(error)}") from error


def _describe_error(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
