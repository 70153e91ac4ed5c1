"""The built-in policies: from dataflow and offers to a request, from a rule's places to a schedule."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.state import State
from airflow_dagsched.placement.auto import suitable
from airflow_dagsched.placement.cheapest import cheapest
from airflow_dagsched.placement.data_locality import data_locality
from airflow_dagsched.placement.exact import Places
from airflow_dagsched.placement.first_fit import first_fit
from airflow_dagsched.placement.policy import policy_of
from airflow_dagsched.placement.request import Request, request_of
from airflow_dagsched.placement.round_robin import round_robin
from airflow_dagsched.placement.schedule import schedule_of
from airflow_dagsched.placement.settings import SPARK, PlacementSettings
from airflow_dagsched.placement.twister2.schedulers import compatible
from airflow_dagsched.placement.values import Offer, TaskSchedulePlan


class RuledPolicy:
    """A policy that is a function from a request to places; keeps nothing but its settings."""

    name: str
    reason: str
    rule: Callable[[Request], Places]

    def __init__(self) -> None:
        self.settings = SPARK

    def initialize(self, settings: PlacementSettings) -> None:
        """Place by these settings from now on."""
        self.settings = settings

    def schedule(
        self,
        dataflow: Dataflow,
        workers: Sequence[Offer],
        state: State,
        *,
        beside: Mapping[str, str] | None = None,
    ) -> TaskSchedulePlan:
        """See ``PlacementPolicy``; ``beside`` maps ``step/index`` to the worker that the instance has to be on."""
        if self.settings.twister2_compatible:
            return compatible(self.name, dataflow, workers, self.settings)
        request = request_of(dataflow, workers, self.settings, beside)
        return schedule_of(request, type(self).rule(request), self.reason)


class RoundRobin(RuledPolicy):
    """Worker after worker in turn."""

    name, reason, rule = "round_robin", "workers in turn", staticmethod(round_robin)


class FirstFit(RuledPolicy):
    """As few containers as can be."""

    name, reason, rule = "first_fit", "the first container with room", staticmethod(first_fit)


class DataLocality(RuledPolicy):
    """Near what is read."""

    name, reason, rule = "data_locality", "nearest to what is read", staticmethod(data_locality)


class Cheapest(RuledPolicy):
    """At the least cost."""

    name, reason, rule = "cheapest", "least cost of cores and of bytes moved", staticmethod(cheapest)


class Auto:
    """Whichever suits."""

    def __init__(self) -> None:
        self.settings = SPARK

    def initialize(self, settings: PlacementSettings) -> None:
        """Place by these settings from now on."""
        self.settings = settings

    def schedule(self, dataflow: Dataflow, workers: Sequence[Offer], state: State) -> TaskSchedulePlan:
        """See ``PlacementPolicy``."""
        name, why = suitable(request_of(dataflow, workers, self.settings))
        made = policy_of(name, self.settings).schedule(dataflow, workers, state)
        return replace(made, reason=f"{name}, since {why}: {made.reason}")
