"""What the built-in policies have in common: a rule that makes places of a request, and what it is measured by."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module

from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.state import State
from airflow_dagsched.placement.exhaustive_search import Placement
from airflow_dagsched.placement.policies.effort import Effort
from airflow_dagsched.placement.policies.price import Measure
from airflow_dagsched.placement.policy import BuiltInPolicy
from airflow_dagsched.placement.request import Request, make_request
from airflow_dagsched.placement.schedule import make_schedule
from airflow_dagsched.placement.settings import PlacementSettings
from airflow_dagsched.placement.values import Offer, TaskSchedulePlan


class RulePolicy(BuiltInPolicy):
    """A policy that is a function from a request to places."""

    name: str
    reason: str
    rule: Callable[[Request], Placement]

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
            return _place_compatibly(self.name, dataflow, workers, self.settings)
        request = make_request(dataflow, workers, self.settings, beside)
        return make_schedule(request, type(self).rule(request), self.reason)


class MeasuredPolicy(RulePolicy):
    """A policy that says how good its placements are: of several shapes of container it is to have the best."""

    measure: Callable[[Request, Placement], Measure]
    """What is to be the least, in order of weight."""
    bound: Callable[[Request], Measure]
    """No placement of the request measures less."""
    search: Callable[[Request, Measure, Effort], Placement]
    """The rule, told what is to be beaten; empty: nothing is known."""

    def place(self, request: Request, known: Measure, effort: Effort) -> tuple[Measure, TaskSchedulePlan]:
        """A placement that measures less than ``known`` if one is found. Raises ``DoesNotFit``."""
        places = type(self).search(request, known, effort)
        return type(self).measure(request, places), make_schedule(request, places, self.reason)


def _place_compatibly(
    policy: str, dataflow: Dataflow, workers: Sequence[Offer], settings: PlacementSettings
) -> TaskSchedulePlan:
    # By path: reproductions build on high availability, which deals by round robin, so no policy imports them.
    schedulers = import_module("airflow_dagsched.placement.reproductions.twister2.schedulers")
    schedule: TaskSchedulePlan = schedulers.place_compatibly(policy, dataflow, workers, settings)
    return schedule
