"""What policies are given and what they give back: amounts, offers of workers, containers, the schedule.

container   one planned executor on a worker, holding step instances, with its padding
offer       what a worker has for one container: None in a dimension means no limit is known
required    what the container's instances need at once, and the padding, once
size        what the container gets: as required, or all that was offered
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Struct, field

from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.order import natural_key
from airflow_dagsched.model.state import Assignment, Movement
from airflow_dagsched.model.units import TOLERANCE

DIMENSIONS = ("memory", "disk", "cores")
UNITS = ("MiB", "MiB", "cores")


Limit = tuple[float, float, float]
"""What may be held, in the order of ``DIMENSIONS``; infinite where no limit is known."""


class Amounts(Struct, frozen=True):
    """Memory and disk in MiB, and cores."""

    memory_mb: float = 0.0
    disk_mb: float = 0.0
    cores: float = 0.0

    def __add__(self, other: Amounts) -> Amounts:
        return Amounts(self.memory_mb + other.memory_mb, self.disk_mb + other.disk_mb, self.cores + other.cores)

    def __mul__(self, count: int) -> Amounts:
        return Amounts(self.memory_mb * count, self.disk_mb * count, self.cores * count)

    def list_values(self) -> tuple[float, float, float]:
        """Amounts in the order of ``DIMENSIONS``."""
        return self.memory_mb, self.disk_mb, self.cores

    def fits_within(self, limit: Limit) -> bool:
        """Whether none of them is above ``limit``."""
        # No limit is infinite, so it needs no case of its own.
        return all(need <= has + TOLERANCE for need, has in zip(self.list_values(), limit, strict=True))


def sum_amounts(amounts: Iterable[Amounts]) -> Amounts:
    """Their sum."""
    return sum(amounts, Amounts())


class Offer(Struct, frozen=True):
    """Room for one container on a worker; offers of one worker share its disk."""

    id: str
    worker: str
    host: str = ""
    rack: str | None = None
    memory_mb: float | None = None
    disk_mb: float | None = None
    cores: float | None = None
    cost: float = 1.0
    """Per core-second."""
    bandwidth_mb_s: float | None = None
    latency_s: float | None = None
    tags: Mapping[str, str] = field(default_factory=dict)

    def list_values(self) -> tuple[float | None, float | None, float | None]:
        """Amounts in the order of ``DIMENSIONS``; None: no limit known."""
        return self.memory_mb, self.disk_mb, self.cores


def make_offer(worker: Worker) -> Offer:
    """All that is free on ``worker``, as room for one container."""
    return Offer(
        id=worker.id,
        worker=worker.id,
        host=worker.host,
        rack=worker.rack,
        memory_mb=worker.free_memory_mb,
        disk_mb=worker.free_disk_mb,
        cores=worker.free_cores,
        cost=worker.cost,
        bandwidth_mb_s=worker.bandwidth_mb_s,
        latency_s=worker.latency_s,
        tags=worker.tags,
    )


def list_offers(cluster: Cluster) -> tuple[Offer, ...]:
    """One offer a worker, in natural order."""
    return tuple(make_offer(worker) for worker in sorted(cluster.workers, key=lambda worker: natural_key(worker.id)))


class InstancePlan(Struct, frozen=True):
    """One step instance where it was placed, with what it needs."""

    step: str
    number: int
    """The step's place among the steps, from 0."""
    index: int
    needs: Amounts


class ContainerPlan(Struct, frozen=True):
    """A container with its instances, by (number, index)."""

    id: str
    worker: str
    instances: tuple[InstancePlan, ...]
    required: Amounts
    size: Amounts
    standbys: tuple[InstancePlan, ...] = ()
    warmups: tuple[InstancePlan, ...] = ()

    @property
    def copies(self) -> tuple[InstancePlan, ...]:
        """Copies of state that are kept ready here, or become so."""
        return self.standbys + self.warmups


# Apart from the containers: a plan has one assignment for all its groups, joined of theirs.
class AssignmentPlan(Struct, frozen=True):
    """The fields ``assignment``, ``movements`` and ``follow_up`` of the plan."""

    assignment: Assignment
    movements: tuple[Movement, ...] = ()
    follow_up: bool = False


class TaskSchedulePlan(Struct, frozen=True):
    """A whole placement: by container, by instance, and as worker of each ``step/index``."""

    container_plan: tuple[ContainerPlan, ...]
    instance_plan: tuple[InstancePlan, ...]
    assignment: dict[str, str]
    reason: str = ""
    """Why instances are where they are, in one sentence."""
    assigned: AssignmentPlan | None = None
    """Copies, and what moves, where a policy knows of state."""


Residency = Literal["all", "slots", "levels"]
"""Instances hold their resources from start to end, or run in waves, or in one wave for each level."""


def name_instance(step: str, index: int) -> str:
    """``step/index``, as in state and plan files."""
    return f"{step}/{index}"
