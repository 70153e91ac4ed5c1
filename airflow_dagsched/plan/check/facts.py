"""What the checker's rules look things up in, and what they report."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.dataflow import Channel, Dataflow, Step, Task
from airflow_dagsched.plan.settings import Settings
from airflow_dagsched.plan.values import Plan


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

    nexts: dict[str, list[str]]
    """Step or task -> those that wait for it."""
    inner: list[tuple[str, str]]
    """Between steps of one group."""
    crossing: list[Channel]
    """Channels between groups."""
    units: set[tuple[str, str]]
    """Between groups and ordinary tasks."""

    @classmethod
    def of(cls, dataflow: Dataflow, home: dict[str, str]) -> Edges:
        """Look at every channel and every other edge once; ``home``: step -> group."""
        ends = [(channel.src, channel.dst) for channel in dataflow.channels]
        nexts: dict[str, list[str]] = {}
        inner: list[tuple[str, str]] = []
        units: set[tuple[str, str]] = set()
        for src, dst in (*ends, *dataflow.dependencies):
            nexts.setdefault(src, []).append(dst)
            before, after = home.get(src, src), home.get(dst, dst)
            if before == after:
                inner.append((src, dst))
            else:
                units.add((before, after))
        crossing = [one for one in dataflow.channels if home.get(one.src) != home.get(one.dst)] if units else []
        return cls(nexts, inner, crossing, units)


@dataclass(frozen=True, slots=True)
class Facts:
    """Plan, dataflow, cluster and settings with their ids resolved."""

    plan: Plan
    dataflow: Dataflow
    cluster: Cluster
    settings: Settings
    steps: dict[str, Step]
    tasks: dict[str, Task]
    workers: dict[str, Worker]
    home: dict[str, str]
    """Step -> the group it is in; the first, if it is in several."""
    edges: Edges

    @classmethod
    def of(cls, plan: Plan, dataflow: Dataflow, cluster: Cluster, settings: Settings) -> Facts:
        """Resolve the ids."""
        home = {step: group.id for group in reversed(plan.groups) for step in group.steps}
        return cls(
            plan,
            dataflow,
            cluster,
            settings,
            {step.id: step for step in dataflow.steps},
            {task.id: task for task in dataflow.tasks},
            {worker.id: worker for worker in cluster.workers},
            home,
            Edges.of(dataflow, home),
        )

    def unit(self, name: str) -> str:
        """What runs as one: the group of a step, an ordinary task itself."""
        return self.home.get(name, name)
