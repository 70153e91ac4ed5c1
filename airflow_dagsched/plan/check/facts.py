"""What the checker's rules look things up in, and what they report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter

from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.dataflow import Channel, Dataflow, Step, Task
from airflow_dagsched.model.state import State
from airflow_dagsched.plan.settings import Settings
from airflow_dagsched.plan.values import Group, Plan

NOTHING_BEGUN = State()
"""The state of a run that is not there yet."""
_src, _dst = attrgetter("src"), attrgetter("dst")


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that the plan breaks, what breaks it, and how."""

    rule: str
    subject: str
    message: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.subject}: {self.message}"


@dataclass(frozen=True, slots=True)
class Edges:
    """What waits for what: between the steps of one group, and between groups and ordinary tasks."""

    later: list[list[int]]
    """For each step, by place in the plan, the places of those of its group that wait for it and stand behind it."""
    back: list[tuple[str, str]]
    """Between steps of one group, to one that does not stand behind the other."""
    crossing: list[Channel]
    """Channels between groups."""
    units: set[tuple[str, str]]
    """Between groups and ordinary tasks."""

    @classmethod
    def of(cls, dataflow: Dataflow, groups: Sequence[Group], home: dict[str, str]) -> Edges:
        """Look at every channel and every other edge once; ``home``: step -> group."""
        names = [name for group in groups for name in group.steps]
        group_at = [number for number, group in enumerate(groups) for _ in group.steps]
        place = dict(zip(reversed(names), reversed(range(len(names))), strict=True))
        later: list[list[int]] = [[] for _ in names]
        back: list[tuple[str, str]] = []
        units: set[tuple[str, str]] = set()
        channels = zip(map(_src, dataflow.channels), map(_dst, dataflow.channels), strict=True)
        for src, dst in chain(channels, dataflow.dependencies):
            here, there = place.get(src), place.get(dst)
            if here is None or there is None or group_at[here] != group_at[there]:
                units.add((home.get(src, src), home.get(dst, dst)))
            elif here < there:
                later[here].append(there)
            else:
                back.append((src, dst))
        crossing = [one for one in dataflow.channels if home.get(one.src) != home.get(one.dst)] if units else []
        return cls(later, back, crossing, units)


@dataclass(frozen=True, slots=True)
class Facts:
    """Plan, dataflow, cluster, settings and state with their ids resolved."""

    plan: Plan
    dataflow: Dataflow
    cluster: Cluster
    settings: Settings
    state: State
    """How far the run is, and what was measured of it."""
    steps: dict[str, Step]
    tasks: dict[str, Task]
    workers: dict[str, Worker]
    home: dict[str, str]
    """Step -> the group it is in; the first, if it is in several."""
    members: tuple[tuple[Group, list[Step]], ...]
    """Each group with its steps, those that the dataflow has."""
    edges: Edges

    @classmethod
    def of(
        cls, plan: Plan, dataflow: Dataflow, cluster: Cluster, settings: Settings, state: State = NOTHING_BEGUN
    ) -> Facts:
        """Resolve the ids."""
        home = {step: group.id for group in reversed(plan.groups) for step in group.steps}
        steps = {step.id: step for step in dataflow.steps}
        return cls(
            plan,
            dataflow,
            cluster,
            settings,
            state,
            steps,
            {task.id: task for task in dataflow.tasks},
            {worker.id: worker for worker in cluster.workers},
            home,
            tuple((group, [steps[name] for name in group.steps if name in steps]) for group in plan.groups),
            Edges.of(dataflow, plan.groups, home),
        )

    @property
    def part_way(self) -> bool:
        """Whether the run of the plan has begun: what is left then starts at a moment that the plan does not say."""
        begun = any(group.progress != "planned" for group in self.plan.groups)
        return begun or bool(self.state.finished or self.state.running)

    @property
    def as_sized(self) -> bool:
        """Whether all groups are as the planner sized them, with all their steps and instances."""
        left_out = {one.what for group in self.plan.groups for one in group.pruned}
        return left_out <= {"partition"} and not any(group.placement for group in self.plan.groups)

    def dataset_sizes(self) -> dict[tuple[str, str], int]:
        """Bytes by source and output. Channels of one dataset carry one size: the largest counts."""
        size: dict[tuple[str, str], int] = {}
        for channel in self.dataflow.channels:
            dataset = channel.src, channel.output
            size[dataset] = max(size.get(dataset, 0), channel.bytes)
        return size

    def unit(self, name: str) -> str:
        """What runs as one: the group of a step, an ordinary task itself."""
        return self.home.get(name, name)
