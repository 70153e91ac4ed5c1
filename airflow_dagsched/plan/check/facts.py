"""What the checker's rules look things up in, and what they report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.dataflow import Dataflow, Step, Task
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
    nexts: dict[str, list[str]]
    """Step or task -> those that wait for it."""

    @classmethod
    def of(cls, plan: Plan, dataflow: Dataflow, cluster: Cluster, settings: Settings) -> Facts:
        """Resolve the ids."""
        return cls(
            plan,
            dataflow,
            cluster,
            settings,
            {step.id: step for step in dataflow.steps},
            {task.id: task for task in dataflow.tasks},
            {worker.id: worker for worker in cluster.workers},
            {step: group.id for group in reversed(plan.groups) for step in group.steps},
            _nexts(dataflow),
        )

    def edges(self) -> Iterator[tuple[str, str]]:
        """All edges of the dataflow, with or without rows."""
        for channel in self.dataflow.channels:
            yield channel.src, channel.dst
        yield from self.dataflow.dependencies

    def unit(self, name: str) -> str:
        """What runs as one: the group of a step, an ordinary task itself."""
        return self.home.get(name, name)


def _nexts(dataflow: Dataflow) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for channel in dataflow.channels:
        found.setdefault(channel.src, []).append(channel.dst)
    for src, dst in dataflow.dependencies:
        found.setdefault(src, []).append(dst)
    return found
