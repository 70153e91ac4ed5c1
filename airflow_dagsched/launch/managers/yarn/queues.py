"""The room left in a YARN queue. What a queue may take is limited by every queue above it, too::

    root            100 % at most, 70 % used
    └─ data          60 % at most, 50 % used      room in "nightly": the least of 30 %, 10 %, 40 %
       └─ nightly    40 % at most,  0 % used

The capacity scheduler answers with percentages of the cluster, for each node label; the fair scheduler with
cores and MiB. A FIFO scheduler has no queues.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from airflow_dagsched.launch.managers.answer import Answer

Room = tuple[int, int]
"""Cores, and memory in MiB."""


class Amount(Answer, frozen=True, rename={"memory_mb": "memory", "cores": "vCores"}):
    """Resources in the fair scheduler's answer."""

    memory_mb: int
    cores: int


class Share(Answer, frozen=True):
    """Of the nodes with one label: percentages of all of them."""

    partition_name: str = ""
    absolute_max_capacity: float = 100.0
    absolute_used_capacity: float = 0.0


class Capacities(Answer, frozen=True):
    """Shares by node label."""

    queue_capacities_by_partition: tuple[Share, ...] = ()


class Below(Answer, frozen=True):
    """The queues below a queue."""

    queue: tuple[Queue, ...] = ()


class Queue(Answer, frozen=True):
    """A queue of either scheduler."""

    queue_name: str = ""
    absolute_max_capacity: float = 100.0
    absolute_used_capacity: float = 0.0
    capacities: Capacities = Capacities()
    max_resources: Amount | None = None
    used_resources: Amount | None = None
    queues: Below | None = None
    child_queues: Below | tuple[Queue, ...] | None = None
    root_queue: Queue | None = None

    @property
    def below(self) -> tuple[Queue, ...]:
        """Of the capacity scheduler, or of the fair one, older or newer."""
        children = self.queues or self.child_queues or ()
        found = children.queue if isinstance(children, Below) else children
        return found if self.root_queue is None else (self.root_queue, *found)


class Scheduler(Answer, frozen=True, rename={"info": "schedulerInfo"}):
    """The queue at the top, or what holds it."""

    info: Queue


class SchedulerAnswer(Answer, frozen=True):
    """Of ``/ws/v1/cluster/scheduler``."""

    scheduler: Scheduler


def find_room(top: Queue, name: str, label: str, offered: Room) -> Room | None:
    """What an application in queue ``name`` may still get of ``offered`` (all nodes with ``label``).

    None: there is no such queue. A name is the last part of a queue's path, or its last few parts: ``nightly``,
    ``root.data.nightly``.
    """
    path = next((path for path in _list_paths(top, ()) if _is_called(path, name)), None)
    if path is None:
        return None
    rooms = [_compute_room(queue, label, offered) for queue in path]
    return min(cores for cores, _ in rooms), min(memory for _, memory in rooms)


def _list_paths(queue: Queue, above: tuple[Queue, ...]) -> Iterator[tuple[Queue, ...]]:
    here = (*above, queue)
    yield here
    for child in queue.below:
        yield from _list_paths(child, here)


def _is_called(path: Sequence[Queue], name: str) -> bool:
    # The fair scheduler calls a queue by its whole path, the capacity scheduler by the last part.
    parts = [part for queue in path for part in queue.queue_name.split(".")[-1:] if part]
    wanted = name.split(".")
    return parts[-len(wanted) :] == wanted


def _compute_room(queue: Queue, label: str, offered: Room) -> Room:
    cores, memory = offered
    if queue.max_resources is not None:
        used = queue.used_resources or Amount(memory_mb=0, cores=0)
        left = queue.max_resources
        return max(0, min(cores, left.cores - used.cores)), max(0, min(memory, left.memory_mb - used.memory_mb))
    partitions = queue.capacities.queue_capacities_by_partition
    # Without node labels the percentages are the queue's own.
    share = next((share for share in partitions if share.partition_name == label), None)
    most, used_part = _get_percentages(queue if share is None else share)
    # Used may be more than the limit: it may have been lowered since.
    free = max(0.0, most - used_part) / 100.0
    return int(cores * free), int(memory * free)


def _get_percentages(of: Queue | Share) -> tuple[float, float]:
    return of.absolute_max_capacity, of.absolute_used_capacity
