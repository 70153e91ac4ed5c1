"""The built-in policies: from dataflow and offers to a request, from a rule's places to a schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.state import State
from airflow_dagsched.placement.policies.auto import RIVALS, choose_policy, describe_comparison, is_comparable
from airflow_dagsched.placement.policies.cheapest import bound_price, measure_price, place_cheapest, search_cheapest
from airflow_dagsched.placement.policies.data_locality import measure_distance, place_near_data
from airflow_dagsched.placement.policies.first_fit import place_first_fit
from airflow_dagsched.placement.policies.round_robin import place_round_robin
from airflow_dagsched.placement.policies.rule_policy import MeasuredPolicy, RulePolicy
from airflow_dagsched.placement.policy import BuiltInPolicy, load_policy
from airflow_dagsched.placement.request import make_request
from airflow_dagsched.placement.values import Offer, TaskSchedulePlan


class RoundRobin(RulePolicy):
    """Worker after worker in turn."""

    name, reason, rule = "round_robin", "workers in turn", staticmethod(place_round_robin)


class FirstFit(RulePolicy):
    """As few containers as can be."""

    name, reason, rule = "first_fit", "the first container with room", staticmethod(place_first_fit)


class DataLocality(MeasuredPolicy):
    """Near what is read."""

    name, reason, rule = "data_locality", "nearest to what is read", staticmethod(place_near_data)
    measure, bound = staticmethod(measure_distance), staticmethod(lambda request: (0.0, 0.0))
    search = staticmethod(lambda request, known, effort: place_near_data(request))


class Cheapest(MeasuredPolicy):
    """At the least cost."""

    name, reason, rule = "cheapest", "least cost of cores and of bytes moved", staticmethod(place_cheapest)
    measure, bound, search = staticmethod(measure_price), staticmethod(bound_price), staticmethod(search_cheapest)


class Auto(BuiltInPolicy):
    """Whichever suits."""

    def schedule(self, dataflow: Dataflow, workers: Sequence[Offer], state: State) -> TaskSchedulePlan:
        """See ``PlacementPolicy``."""
        request = make_request(dataflow, workers, self.settings)
        name, why = choose_policy(request)
        schedule = load_policy(name, self.settings).schedule(dataflow, workers, state)
        parts = [schedule.reason]
        if is_comparable(request):
            rival = self._place_rival(RIVALS[name], dataflow, workers, state)
            parts.append(describe_comparison(name, request, schedule.assignment, rival, state.previous))
        return replace(schedule, reason=f"{name}, since {why}: {'; '.join(parts)}")

    def _place_rival(
        self, name: str, dataflow: Dataflow, workers: Sequence[Offer], state: State
    ) -> Mapping[str, str] | None:
        try:
            return load_policy(name, self.settings).schedule(dataflow, workers, state).assignment
        except DoesNotFit:
            return None
