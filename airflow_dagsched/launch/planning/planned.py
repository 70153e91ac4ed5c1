"""From facts to a plan, by a planner: the only way to one where a run, a print or a parse is planned.

launch, commands   all passes of the planner   ``plan_run``
tune --exact       the exact mode's            ``plan_run``
parse              groups alone                what the other passes need is never loaded
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from airflow_dagsched.launch.managers.author_sizes import read_size
from airflow_dagsched.launch.planning.facts import Facts
from airflow_dagsched.launch.planning.plan_facts import describe_facts
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.plan.measurements import apply_measurements, list_measured, list_narrowed
from airflow_dagsched.plan.plan_types import Group, Plan
from airflow_dagsched.plan.problem.run import ExecutorSize, Run
from airflow_dagsched.plan.settings import Settings


class Planned(Struct, frozen=True):
    """A plan, and what a checker judges it by: dataflow and cluster with what was measured."""

    plan: Plan
    dataflow: Dataflow
    cluster: Cluster
    settings: Settings
    author: Mapping[str, Mapping[str, str]] = {}
    """Step -> the author's Spark settings of its application, as they may be told."""

    def find_group(self, steps: Iterable[str]) -> Group:
        """The group of these steps."""
        inside = set(steps)
        return next(group for group in self.plan.groups if set(group.steps) == inside)


def plan_with(facts: Facts, planner: Callable[..., Plan]) -> Planned:
    """The plan that ``planner`` makes of the facts; raises ``InvalidInput`` and ``DoesNotFit`` as it does."""
    dataflow, cluster = apply_measurements(
        facts.dataflow, facts.cluster, facts.history, connection=facts.connection, settings=facts.settings
    )
    run = Run(
        pruning_input=facts.pruning,
        selections=facts.selections,
        # A local application has one worker to be on.
        policy=None if cluster.manager == "local" else facts.policy,
        groups=facts.groups,
        sizes=_read_sizes(facts),
        measured=list_measured(facts.history),
        narrowed=list_narrowed(facts.dataflow, facts.history),
    )
    made = planner(dataflow, cluster, facts.settings, run=run)
    return Planned(replace(made, facts=describe_facts(facts)), dataflow, cluster, facts.settings, facts.author)


def _read_sizes(facts: Facts) -> dict[str, ExecutorSize]:
    """Of the steps whose authors say anything of it."""
    found = {step: read_size(told, facts.settings, facts.cluster.manager) for step, told in facts.author.items()}
    return {step: size for step, size in found.items() if size != ExecutorSize()}
