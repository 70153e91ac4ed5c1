"""Some steps of a dataflow as one application, and what it must fit."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.model.cluster import Cluster, make_idle
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.plan.plan_types import Plan
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.problem.run import Policy, Run
from airflow_dagsched.plan.pruning.pruning_input import NO_PRUNING_INPUT, PruningInput
from airflow_dagsched.plan.pruning.steps import Selections
from airflow_dagsched.plan.settings import DEFAULTS, Settings


class Fit(Struct, frozen=True):
    """What an application must fit."""

    dataflow: Dataflow
    cluster: Cluster
    settings: Settings = DEFAULTS
    policy: Policy | None = None
    """Places it; None: it stays as it is sized."""
    asked: PruningInput = NO_PRUNING_INPUT
    selections: Selections | None = None

    def make_plan(self, part: Dataflow, cluster: Cluster, settings: Settings) -> Plan:
        """The plan of ``part``, pruned by what is known, and placed; raises ``DoesNotFit``."""
        # A local application has one worker to be on.
        policy = None if cluster.manager == "local" else self.policy
        run = Run(pruning_input=self.asked, selections=self.selections, policy=policy)
        return plan(part, cluster, settings, run=run)

    def find_refusal(self, steps: Iterable[str]) -> DoesNotFit | None:
        """Why ``steps`` cannot be one application on the idle cluster, on whichever workers; None: they can."""
        part = remove_pins(select_steps(self.dataflow, steps))
        try:
            self.make_plan(part, make_idle(self.cluster), keep_together(part, self.settings))
        except DoesNotFit as refused:
            return refused
        return None


def select_steps(dataflow: Dataflow, steps: Iterable[str]) -> Dataflow:
    """The part of ``dataflow`` that is these steps: what others need is no concern of their application."""
    inside = set(steps)
    return replace(
        dataflow,
        steps=tuple(step for step in dataflow.steps if step.id in inside),
        channels=tuple(channel for channel in dataflow.channels if {channel.src, channel.dst} <= inside),
        tasks=(),  # one between two steps would cut them apart; whose launch task they are in is decided
        dependencies=tuple(edge for edge in dataflow.dependencies if set(edge) <= inside),
    )


def remove_pins(dataflow: Dataflow) -> Dataflow:
    """The dataflow without a word on where its steps must be."""
    return replace(dataflow, steps=tuple(replace(step, pinned=()) for step in dataflow.steps))


def keep_together(part: Dataflow, settings: Settings) -> Settings:
    """The settings with all steps of ``part`` kept together: whose launch task a step is in was decided before."""
    ids = tuple(step.id for step in part.steps)
    together = (ids,) if len(ids) > 1 else ()
    return replace(settings, apart=(), together=together, max_steps_per_group=DEFAULTS.max_steps_per_group)
