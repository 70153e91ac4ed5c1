"""All that a plan of a run is made of, as one value: what differs between two plans differs here.

command   dataflow, groups, history, policy   cluster as declared, or as it is now
launch    the same                            cluster as it is now, what is known of its inputs
parse     dataflow                            cluster as declared, or one that is ample: groups are chosen
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from airflow_dagsched.launch.managers.hosts import add_stored_sources, locate_sources, rename_hosts
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.graph import rank_step
from airflow_dagsched.model.state import State
from airflow_dagsched.plan.problem.run import FixedGroup, Policy
from airflow_dagsched.plan.pruning.pruning_input import NO_PRUNING_INPUT, PruningInput
from airflow_dagsched.plan.pruning.steps import Selections
from airflow_dagsched.plan.settings import DEFAULTS, Settings

ONLY = "launch"
"""Name of the group of steps that are planned alone."""


class Origin(Struct, frozen=True, kw_only=True):
    """Where facts are from: the plan says so, nothing is computed from it."""

    cluster: Literal["declared", "live", "assumed"] = "declared"
    room: Literal["whole", "free"] = "whole"
    """Of each worker: all it has, or what is free now."""
    groups: Literal["planner", "dag", "plan file", "run"] = "planner"
    """``run``: what is submitted at once, of a group that is not submitted whole."""
    interval: str | None = None
    pins: Literal["kept", "given up"] = "kept"
    author: tuple[str, ...] = ()
    """Names of the Spark settings that the author sets, which win over the plan's."""
    beside: tuple[str, ...] = ()
    """Dataflows of the DAG whose launches, at the same moment, have taken room before."""
    behind: tuple[str, ...] = ()
    """Dataflows of the DAG that write before what this one reads."""


class Facts(Struct, frozen=True, kw_only=True):
    """What a plan of a run is made of; equal facts, equal plans."""

    dataflow: Dataflow
    """As its author declares it, with what is known of the run's inputs."""
    cluster: Cluster
    """What is free of its workers is what the run may take."""
    settings: Settings = DEFAULTS
    policy: Policy | None = None
    """Places it; None: it stays as it is sized."""
    groups: tuple[FixedGroup, ...] | None = None
    """Those of the launch tasks; None: the planner's to choose."""
    history: State = State()
    connection: str | None = None
    """Whose start and bandwidth of the history count; None: those of the only one there is."""
    pruning: PruningInput = NO_PRUNING_INPUT
    selections: Selections | None = None
    """What was found of the sources; None: what the dataflow lists of them."""
    author: Mapping[str, Mapping[str, str]] = {}
    """Step -> the author's Spark settings of its application, as they may be told: see ``hide_values``."""
    origin: Origin = Origin()

    def find_group(self, steps: Iterable[str]) -> FixedGroup | None:
        """The group that is exactly these steps; None: they are part of one, or of several."""
        inside = set(steps)
        return next((group for group in self.groups or () if set(group.steps) == inside), None)


def add_inputs(facts: Facts, dataflow: Dataflow, pruning: PruningInput, selections: Selections) -> Facts:
    """The facts with what a run knows of its inputs: where its datasets are stored, and what it reads of its sources.

    :param dataflow: the same, its steps with the sources that they read in this run.
    """
    dataflow, stored = add_stored_sources(dataflow, pruning.stored)
    found = rename_hosts({**selections, **stored}, facts.cluster)
    called = {key[1]: replace(pruning.stored[key[1]], partitions=found[key].needed) for key in stored}
    return replace(
        facts,
        dataflow=locate_sources(dataflow, found),
        pruning=replace(pruning, stored={**pruning.stored, **called}),
        selections=found,
        origin=replace(facts.origin, interval=pruning.names.get("interval.key")),
    )


def narrow_to_steps(facts: Facts, steps: Iterable[str]) -> Facts:
    """Facts of these steps alone, as one application: what others need is no concern of theirs."""
    inside = set(steps)
    part = select_steps(facts.dataflow, inside)
    # Whose launch task a step is in was decided before; the lists may name steps that are not here.
    settings = replace(facts.settings, apart=(), together=(), max_steps_per_group=DEFAULTS.max_steps_per_group)
    whole, names = facts.find_group(inside), tuple(step.id for step in part.steps)
    # As the run calls and explains it: what is printed and what is launched is one group.
    alone = replace(whole, steps=names) if whole is not None else FixedGroup(ONLY, names, "submitted by itself")
    origin = replace(facts.origin, groups="run")
    return replace(facts, dataflow=part, settings=settings, groups=(alone,), origin=origin)


def select_steps(dataflow: Dataflow, steps: Iterable[str]) -> Dataflow:
    """The part of ``dataflow`` that is these steps."""
    inside = set(steps)
    return replace(
        dataflow,
        steps=tuple(step for step in dataflow.steps if step.id in inside),
        channels=tuple(channel for channel in dataflow.channels if {channel.src, channel.dst} <= inside),
        tasks=(),  # one between two steps would cut them apart; whose launch task they are in is decided
        dependencies=tuple(edge for edge in dataflow.dependencies if set(edge) <= inside),
    )


def put_parts(facts: Facts, parts: Mapping[str, Sequence[tuple[str, ...]]]) -> Facts:
    """The facts with these parts, submitted one after another, in place of the groups of these ids."""
    if not parts:
        return facts
    ranks = {step.id: rank_step(step) for step in facts.dataflow.steps}
    groups: list[FixedGroup] = []
    for group in facts.groups or ():
        for at, steps in enumerate(parts.get(group.id, ()), 1):
            # As any group is called: after its first step in the author's file.
            name = f"{ONLY}_{min(steps, key=ranks.__getitem__)}"
            why = f"part {at} of {len(parts[group.id])} of {group.id}, which is too large: one after another"
            groups.append(FixedGroup(name, steps, why))
        groups += [] if group.id in parts else [group]
    # In turn, although no rows may go from one to the next.
    turns = [(before[-1], after[0]) for cut in parts.values() for before, after in pairwise(cut)]
    edges = tuple(dict.fromkeys((*facts.dataflow.dependencies, *turns)))
    return replace(facts, groups=tuple(groups), dataflow=replace(facts.dataflow, dependencies=edges))


def remove_pins(facts: Facts) -> Facts:
    """The facts without a word on where steps must be."""
    steps = tuple(replace(step, pinned=()) for step in facts.dataflow.steps)
    given_up = any(step.pinned for step in facts.dataflow.steps)
    origin = replace(facts.origin, pins="given up") if given_up else facts.origin
    return replace(facts, dataflow=replace(facts.dataflow, steps=steps), origin=origin)
