"""What the checker's rules look things up in, and what they report."""

from __future__ import annotations

from msgspec import Struct

from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.dataflow import Dataflow, Step, Task
from airflow_dagsched.model.state import State
from airflow_dagsched.plan.checking.facts.edges import Dataset, Edges
from airflow_dagsched.plan.checking.facts.free_capacity import Holding, list_holdings
from airflow_dagsched.plan.plan_types import Group, Plan
from airflow_dagsched.plan.settings import Settings

# A plan's seconds are rounded to microseconds; sums of many rounded ones differ by more than one of them.
TOLERANCE_S = 1e-3
"""Seconds by which what is told may differ from what is worked out, of plans that end some day."""
NOTHING_BEGUN = State()
"""The state of a run that is not there yet."""


def measure_tolerance(seconds: float) -> float:
    """Seconds by which what is told may differ from a duration, or moment, of ``seconds`` that is worked out.

    At 2e12 s one step of a float is 2.4e-4 s already, and sums are some of them apart.
    """
    return TOLERANCE_S + 1e-9 * seconds


class Violation(Struct, frozen=True):
    """A rule that the plan breaks, what breaks it, and how."""

    rule: str
    subject: str
    message: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.subject}: {self.message}"


class Facts(Struct, frozen=True):
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
    group_of: dict[str, str]
    """Step -> the group it is in; the first, if it is in several."""
    members: tuple[tuple[Group, list[Step]], ...]
    """Each group with its steps, those that the dataflow has."""
    holdings: list[Holding]
    """What each group takes of the workers."""
    edges: Edges
    units: list[str]
    """Ids of the groups, then of the ordinary tasks."""
    dataset_bytes: dict[Dataset, int]
    """Bytes that a cut moves of each dataset, if any is cut. Channels of one dataset carry one size: the largest.
    None where no reader is pipelined: what is stored by its author's word is written, and read, with its steps.
    """

    @classmethod
    def of(
        cls, plan: Plan, dataflow: Dataflow, cluster: Cluster, settings: Settings, state: State = NOTHING_BEGUN
    ) -> Facts:
        """Resolve the ids."""
        steps = {step.id: step for step in dataflow.steps}
        edges = Edges.of(dataflow, plan.groups)
        return cls(
            plan,
            dataflow,
            cluster,
            settings,
            state,
            steps,
            {task.id: task for task in dataflow.tasks},
            {worker.id: worker for worker in cluster.workers},
            # The last written wins: the first group.
            {step: group.id for group in reversed(plan.groups) for step in group.steps},
            tuple((group, [steps[name] for name in group.steps if name in steps]) for group in plan.groups),
            [list_holdings(group) for group in plan.groups],
            edges,
            [group.id for group in plan.groups] + [task.id for task in dataflow.tasks],
            # One group reads and writes nothing outside.
            measure_datasets(dataflow) if edges.crossing or plan.spills else {},
        )

    @property
    def has_begun(self) -> bool:
        """Whether the run of the plan has begun: what is left then starts at a moment that the plan does not say."""
        begun = any(group.progress != "planned" for group in self.plan.groups)
        return begun or bool(self.state.finished or self.state.running)

    @property
    def is_partition(self) -> bool:
        """Whether every step is in one group, and nothing else is in any."""
        placed = [name for group in self.plan.groups for name in group.steps]
        return len(placed) == len(self.steps) and self.steps.keys() == set(placed)

    @property
    def is_as_sized(self) -> bool:
        """Whether all groups are as the planner sized them, with all their steps and instances."""
        return not self.has_left_out and not any(group.placement for group in self.plan.groups)

    @property
    def has_left_out(self) -> bool:
        """Whether some group leaves out a step, an instance or a worker."""
        return any(entry.what != "partition" for group in self.plan.groups for entry in group.pruned)


def measure_datasets(dataflow: Dataflow) -> dict[Dataset, int]:
    """See ``Facts.dataset_bytes``."""
    sizes: dict[Dataset, int] = {}
    handed_over: set[Dataset] = set()
    for channel in dataflow.channels:
        dataset = channel.src, channel.output
        if sizes.get(dataset, -1) < channel.bytes:
            sizes[dataset] = channel.bytes
        if channel.kind == "pipelined":
            handed_over.add(dataset)
    return {dataset: size if dataset in handed_over else 0 for dataset, size in sizes.items()}
