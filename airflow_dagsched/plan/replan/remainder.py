"""What is left of a dataflow part-way through a run: to be planned beside the groups that run, or behind them.

{a} ══> {b}        a finished, b running, c and d left. Beside b, it is an ordinary task that ends when b does, and
 ║       └──> {c}  what it holds is not free. What a wrote for d is there to be read, and takes room for spills until
 ╚══════════> {d}  d has ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from airflow_dagsched.model.cluster import Cluster, Free, Worker
from airflow_dagsched.model.dataflow import Channel, Dataflow, Task
from airflow_dagsched.plan.plan_types import Group
from airflow_dagsched.plan.problem.run import StoredDataset
from airflow_dagsched.plan.replan.progress import Progress, sum_held
from airflow_dagsched.plan.settings import Settings

NEXT_TO_NOTHING_S = 1e-3
"""Of what should have ended by now (0: not declared)."""


class Leftover(Struct, frozen=True):
    """What a plan of what is left is made from, besides the cluster."""

    dataflow: Dataflow
    settings: Settings
    stored: tuple[StoredDataset, ...]


def find_leftover(
    dataflow: Dataflow, settings: Settings, progress: Progress, waits: Sequence[Group], start_s: float
) -> Leftover:
    """What is left of ``dataflow`` from ``start_s`` on, ordinary tasks that run among it.

    The groups in ``waits`` are tasks in it, too. Whatever runs takes what it has left, next to nothing at least.
    """
    left = _narrow_dataflow(dataflow, progress, waits, start_s)
    return Leftover(left, _narrow_settings(settings, left, waits), tuple(_list_stored(dataflow, progress, waits)))


def _narrow_dataflow(dataflow: Dataflow, progress: Progress, waits: Sequence[Group], start_s: float) -> Dataflow:
    home = {step: group.id for group in waits for step in group.steps}
    gone = set(_group_of_begun(progress)) | progress.ended
    edges = ((channel.src, channel.dst) for channel in dataflow.channels if channel.src in home)
    waiting = ((home.get(src, src), dst) for src, dst in (*dataflow.dependencies, *edges))
    return replace(
        dataflow,
        steps=tuple(step for step in dataflow.steps if step.id not in gone),
        channels=tuple(channel for channel in dataflow.channels if not _is_connected_to(channel, gone)),
        tasks=(
            *(_shorten_task(task, progress.since, start_s) for task in dataflow.tasks if task.id not in gone),
            # A running group is an ordinary task to what is left: it takes its time, and its room has been
            # subtracted.
            *(Task(id=group.id, runtime_s=max(NEXT_TO_NOTHING_S, group.end_s - start_s)) for group in waits),
        ),
        dependencies=tuple(dict.fromkeys(edge for edge in waiting if gone.isdisjoint(edge))),
    )


def _group_of_begun(progress: Progress) -> dict[str, str]:
    """Step -> its group, of those that have begun and stay."""
    return {step: group.id for group in (*progress.finished, *progress.running) for step in group.steps}


def _is_connected_to(channel: Channel, gone: set[str]) -> bool:
    return channel.src in gone or channel.dst in gone


def _shorten_task(task: Task, since: Mapping[str, float], start_s: float) -> Task:
    """One of unknown runtime stays so."""
    if task.id not in since or not task.runtime_s:
        return task
    return replace(task, runtime_s=max(NEXT_TO_NOTHING_S, since[task.id] + task.runtime_s - start_s))


def _narrow_settings(settings: Settings, left: Dataflow, waits: Iterable[Group]) -> Settings:
    """The settings, with what their lists say of steps that are left: groups that have begun are as they are.

    The groups in ``waits`` are applications, too: so many fewer may run beside them.
    """
    steps = {step.id for step in left.steps}
    return replace(
        settings,
        apart=_narrow_lists(settings.apart, steps),
        together=_narrow_lists(settings.together, steps),
        # Nothing is left out of no limit; and of a limit that is reached nothing is planned beside them.
        applications=max(0, settings.applications - count_applications(waits)),
    )


def count_applications(groups: Iterable[Group]) -> int:
    """How many of ``groups`` are applications: those in which something runs."""
    return sum(1 for group in groups if group.containers)


def _narrow_lists(lists: Iterable[Sequence[str]], steps: set[str]) -> tuple[tuple[str, ...], ...]:
    kept = (tuple(name for name in names if name in steps) for names in lists)
    # One step is never apart from, or together with, itself.
    return tuple(names for names in kept if len(names) > 1)


def _list_stored(dataflow: Dataflow, progress: Progress, waits: Sequence[Group]) -> Iterable[StoredDataset]:
    """The datasets of what has begun: who of what is left reads them, and for whom those that are spills are kept."""
    begun = _group_of_begun(progress)
    waiting = {step: group.id for group in waits for step in group.steps}
    size: dict[tuple[str, str], int] = {}
    handed_over: set[tuple[str, str]] = set()
    readers: dict[tuple[str, str], set[str]] = {}
    kept: dict[tuple[str, str], set[str]] = {}
    for channel in (one for one in dataflow.channels if one.src in begun):
        dataset = channel.src, channel.output
        # Channels of one dataset carry one size: the largest counts.
        size[dataset] = max(size.get(dataset, 0), channel.bytes)
        if channel.kind == "pipelined":
            handed_over.add(dataset)
        left = channel.dst not in begun
        if left:
            readers.setdefault(dataset, set()).add(channel.dst)
        spilled = channel.kind == "pipelined" and begun[channel.src] != begun.get(channel.dst)
        if spilled and (left or channel.dst in waiting):
            kept.setdefault(dataset, set()).add(waiting.get(channel.dst, channel.dst))
    for dataset in dict.fromkeys((*readers, *kept)):
        names = readers.get(dataset, ()), kept.get(dataset, ())
        # Buffered readers alone: reading is in their own runtimes, in whichever group they are.
        yield StoredDataset(size[dataset] if dataset in handed_over else 0, *(tuple(sorted(some)) for some in names))


def subtract_held(cluster: Cluster, groups: Iterable[Group]) -> Cluster:
    """What ``groups`` leave free of ``cluster``."""
    held = sum_held(groups)
    return replace(
        cluster,
        workers=tuple(_subtract_from_worker(worker, held.get(worker.id, (0, 0, 0))) for worker in cluster.workers),
    )


def _subtract_from_worker(worker: Worker, held: tuple[int, int, int]) -> Worker:
    disk = worker.free_disk_mb
    free = Free(
        cores=worker.free_cores - held[0],
        memory_mb=worker.free_memory_mb - held[1],
        disk_mb=None if disk is None else disk - held[2],
    )
    return replace(worker, free=free)
