"""Plans and their dataflows as jobs with edges between them, numbered through."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.dataflow import Dataflow, Step
from airflow_dagsched.model.graph import build_graph
from airflow_dagsched.model.order import natural_key, reverse_edges, sort_topologically
from airflow_dagsched.plan.needs import resolve_step_runtime, resolve_task_runtime
from airflow_dagsched.plan.plan_types import Group, Plan
from airflow_dagsched.plan.settings import Settings
from airflow_dagsched.plan.simulate.slowest_instances import ComputedStep, Computing
from airflow_dagsched.plan.simulate.values import Work

Need = tuple[int, int, int]
"""Cores, MiB of memory, MiB of disk."""
Place = tuple[int, Need]
"""A worker, by position in the cluster, and what a container takes of it."""


class Job(Struct, frozen=True):
    """A group or an ordinary task of a work."""

    work: int
    id: str
    seconds: float
    """As planned."""
    due_s: float
    """When it is planned to start; an ordinary task: when its work is submitted."""
    places: tuple[Place, ...]
    """Planned ones, of a group; an ordinary task takes no room."""
    pinned: bool
    """Whether a step in it may be on some workers only: then its containers stay where they are planned."""
    compute_s: float
    """Of the seconds, those in which its steps run."""
    computing: Computing


class Jobs(Struct, frozen=True):
    """All jobs: by work, then as in its plan, ordinary tasks last."""

    all: tuple[Job, ...]
    successors: tuple[tuple[int, ...], ...]
    waits_for: tuple[int, ...]
    """How many jobs each waits for."""
    order: tuple[int, ...]
    """All jobs so that edges point forward."""


def make_jobs(works: Sequence[Work], cluster: Cluster, settings: Settings) -> Jobs:
    """Raises ``InvalidInput`` for a plan with an unknown worker, or whose groups and tasks wait for each other."""
    found: list[Job] = []
    edges: list[tuple[int, int]] = []
    place = {worker.id: at for at, worker in enumerate(cluster.workers)}
    for at, work in enumerate(works):
        start = len(found)
        found += _make_group_jobs(at, work, place, settings)
        found += _make_task_jobs(at, work, settings)
        number = {job.id: start + of for of, job in enumerate(found[start:])}
        # Edges stay within a work: works compete for room, and wait for nothing of each other.
        edges += ((number[before], number[after]) for before, after in _list_edges(work) if before != after)
    successors: list[list[int]] = [[] for _ in found]  # by number; edges of several steps between two groups count once
    for before, after in sorted(set(edges)):
        successors[before].append(after)
    order = sort_topologically(successors)
    if len(order) < len(found):
        raise InvalidInput("simulation", "", "groups and ordinary tasks wait for each other")
    waits = tuple(map(len, reverse_edges(successors)))
    return Jobs(tuple(found), tuple(map(tuple, successors)), waits, tuple(order))


def _make_group_jobs(at: int, work: Work, place: dict[str, int], settings: Settings) -> Iterator[Job]:
    steps = {step.id: step for step in work.dataflow.steps}
    readers = _list_readers(work.dataflow)
    for group in work.plan.groups:
        yield Job(
            at,
            group.id,
            group.time.total_s,
            work.at_s + group.start_s,
            tuple(_list_places(work.plan, group, place)),
            any(steps[name].pinned for name in group.steps),
            group.time.compute,
            _make_computing(group, steps, readers, settings),
        )


def _list_readers(dataflow: Dataflow) -> dict[str, set[str]]:
    """Step -> whatever waits for it; what waits for a loop waits for all of it."""
    graph = build_graph(dataflow)
    return {name: {graph.ids[after] for after in graph.followers[node]} for name, node in graph.index.items()}


def _make_computing(
    group: Group, steps: dict[str, Step], readers: dict[str, set[str]], settings: Settings
) -> Computing:
    # Of what is pruned there are fewer instances, or none.
    counts = Counter(name for box in group.containers for name, _ in box.instances)
    place = {name: at for at, name in enumerate(group.steps)}
    made = tuple(
        ComputedStep(
            counts[name],
            _count_lanes(steps[name], group),
            resolve_step_runtime(steps[name], settings),
            # Steps of a loop wait for each other: there the list decides.
            tuple(sorted(place[one] for one in readers[name] if place.get(one, -1) > at)),
        )
        for at, name in enumerate(group.steps)
    )
    return Computing(made, group.slots if group.residency == "slots" else 0)


def _count_lanes(step: Step, group: Group) -> int:
    """Instances of ``step`` that the containers of its group run at once."""
    if group.residency == "all":
        return step.parallelism
    return sum(box.cores // step.cores for box in group.containers if not step.pinned or box.worker in step.pinned)


def _list_places(plan: Plan, group: Group, place: dict[str, int]) -> Iterator[Place]:
    for box in group.containers:
        if box.worker not in place:
            raise InvalidInput(f"plan of {plan.dataflow!r}", "", f"no worker of the cluster is called {box.worker!r}")
        yield place[box.worker], (box.cores, box.memory_mb, box.disk_mb)


def _make_task_jobs(at: int, work: Work, settings: Settings) -> Iterator[Job]:
    for task in sorted(work.dataflow.tasks, key=lambda task: natural_key(task.id)):
        seconds = resolve_task_runtime(task, settings)
        alone = Computing((ComputedStep(1, 1, seconds, ()),), 1)
        yield Job(at, task.id, seconds, work.at_s, (), False, seconds, alone)


def _list_edges(work: Work) -> Iterator[tuple[str, str]]:
    """Who waits for whom: as the plan says for its groups, as the dataflow says for ordinary tasks."""
    for group in work.plan.groups:
        yield from ((before, group.id) for before in group.after)
    home = {step: group.id for group in work.plan.groups for step in group.steps}
    tasks = {task.id for task in work.dataflow.tasks}
    for before, after in work.dataflow.dependencies:
        if after in tasks:
            yield home.get(before, before), after
