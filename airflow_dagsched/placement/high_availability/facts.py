"""What the strategies look at: instances and workers by position in natural order, lags, the prior assignment."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit, InvalidInput
from airflow_dagsched.model.order import natural_key
from airflow_dagsched.model.state import Assignment
from airflow_dagsched.placement.high_availability.settings import Settings
from airflow_dagsched.placement.high_availability.space import Seats, Space
from airflow_dagsched.placement.high_availability.values import (
    RUNNING,
    Copy,
    How,
    Instance,
    Lag,
    Lags,
    Movement,
    Worker,
)

_NOTHING: Mapping[str, Lag] = {}


class Facts(Struct, frozen=True):
    """Instances and workers are meant by their position; positions follow natural order of ids."""

    instances: tuple[Instance, ...]
    workers: tuple[Worker, ...]
    stateful: tuple[int, ...]
    stateless: tuple[int, ...]
    capacity: tuple[int, ...]
    """What the load of each worker is divided by."""
    position: Mapping[str, int]
    """Position of each instance's id."""
    worker_at: Mapping[str, int]
    """Position of each worker's id."""
    reports: tuple[Mapping[str, Lag], ...]
    """Lags that workers report, dead ones too, by instance."""
    totals: tuple[float, ...]
    """What a worker without any state is behind, by instance; infinite: more than any lag."""
    allowed: tuple[Sequence[int], ...]
    """Workers that each instance may be on."""
    previous: Assignment | None
    """The prior assignment without the record of what was handed over."""
    handed_over: frozenset[int]
    """Instances handed over since the workers last changed."""
    settings: Settings
    space: Space | None = None
    """None: all have room everywhere."""

    def make_seats(self) -> Seats:
        """All of them free."""
        return Seats(self.space)

    def get_lag(self, instance: int, worker: int) -> Lag:
        """Raises ``InvalidInput`` for a stateless instance: it has no lag."""
        if not self.instances[instance].stateful:
            raise InvalidInput("lags", self.instances[instance].id, "a stateless instance has no lag")
        # A worker that reports nothing has nothing: all of the state is to be restored there.
        return self.reports[instance].get(self.workers[worker].id, self.totals[instance])

    def get_id(self, worker: int) -> str:
        """The worker's id."""
        return self.workers[worker].id

    def get_weight(self, instance: int) -> float:
        """The load that the instance puts on a worker, against that of others."""
        return self.instances[instance].weight

    def list_lags(self, instance: int) -> list[Lag]:
        """The lag of the instance on each worker."""
        reports, total = self.reports[instance], self.totals[instance]
        return [reports.get(worker.id, total) for worker in self.workers]

    def is_caught_up(self, instance: int, worker: int) -> bool:
        """Runs there, or is within ``acceptable_recovery_lag``."""
        # Kafka's way to switch high availability off: ``acceptable.recovery.lag`` of Long.MAX_VALUE.
        if self.settings.accepts_any_lag:
            return True
        lag = self.get_lag(instance, worker)
        if lag is None or isinstance(lag, str):
            # Unknown is behind, whatever the limit: KIP-441 ranks it with those that have nothing.
            return lag == RUNNING
        return lag <= self.settings.acceptable_recovery_lag

    def find_caught_up(self, instance: int) -> list[int]:
        """Workers whose copy has caught up, in natural order."""
        lags, limit = self.list_lags(instance), self.settings.acceptable_recovery_lag
        if self.settings.accepts_any_lag:
            return list(range(len(lags)))
        return [at for at, lag in enumerate(lags) if lag is not None and (isinstance(lag, str) or lag <= limit)]

    def make_movement(self, instance: int, source: str, target: str, copy: Copy, how: How) -> Movement:
        """Between workers by id: the source may be gone. With the lag of the copy at the target, if it is known."""
        what = self.instances[instance]
        lag = self.get_lag(instance, self.worker_at[target]) if what.stateful else 0.0
        behind = 0.0 if isinstance(lag, str) else lag
        known = None if behind is None or behind == math.inf else float(behind)
        return Movement(what.id, source, target, known, copy, how, limit=self.settings.acceptable_recovery_lag)


def gather_facts(  # noqa: PLR0917 - as the policy is given them
    instances: Iterable[Instance],
    workers: Iterable[Worker],
    lags: Lags,
    settings: Settings,
    previous: Assignment | None = None,
    offsets: Mapping[str, float] | None = None,
    space: Space | None = None,
) -> Facts:
    """Checked and in natural order.

    Raises ``InvalidInput`` for ids given twice and workers without capacity, ``DoesNotFit`` where there are
    instances but no worker for them.
    """
    # Kafka sorts tasks and clients first as well: the assignment must not depend on who reported first.
    ordered = tuple(sorted(instances, key=lambda instance: natural_key(instance.id)))
    hosts = tuple(sorted(workers, key=lambda worker: natural_key(worker.id)))
    _refuse_duplicates("instances", [instance.id for instance in ordered])
    _refuse_duplicates("workers", [worker.id for worker in hosts])
    for worker in hosts:
        if worker.capacity < 1:
            raise InvalidInput(
                "high_availability", "workers", f"{worker.id!r} has capacity {worker.capacity}, not >= 1"
            )
    if ordered and not hosts:
        raise DoesNotFit(f"{len(ordered)} step instances", "workers", 1, 0)
    return Facts(
        instances=ordered,
        workers=hosts,
        stateful=tuple(at for at, instance in enumerate(ordered) if instance.stateful),
        stateless=tuple(at for at, instance in enumerate(ordered) if not instance.stateful),
        capacity=tuple(worker.capacity for worker in hosts),
        position={instance.id: at for at, instance in enumerate(ordered)},
        worker_at={worker.id: at for at, worker in enumerate(hosts)},
        reports=tuple(lags.get(instance.id, _NOTHING) for instance in ordered),
        totals=tuple((offsets or {}).get(instance.id, math.inf) for instance in ordered),
        allowed=tuple(_list_allowed(instance, hosts) for instance in ordered),
        # Later compared with new assignments as a whole: the record would make equal ones differ.
        previous=previous and replace(previous, moved={}),
        handed_over=_find_moved(ordered, hosts, previous),
        settings=settings,
        space=space,
    )


def _find_moved(ordered: Sequence[Instance], hosts: Sequence[Worker], previous: Assignment | None) -> frozenset[int]:
    if previous is None or not previous.moved:
        return frozenset()
    # A hand-over counts for the workers it was made among: once some come or go, all may move again.
    now = digest_workers(hosts)
    return frozenset(at for at, instance in enumerate(ordered) if previous.moved.get(instance.id) == now)


def digest_workers(hosts: Iterable[Worker]) -> str:
    """Equal for the same workers."""
    return hashlib.sha256("\n".join(worker.id for worker in hosts).encode()).hexdigest()[:16]


def _list_allowed(instance: Instance, hosts: Sequence[Worker]) -> Sequence[int]:
    if not instance.pinned:
        return range(len(hosts))
    allowed = tuple(at for at, worker in enumerate(hosts) if worker.id in instance.pinned)
    if not allowed:
        raise DoesNotFit(f"instance {instance.id!r}", "workers it is pinned to", 1, 0)
    return allowed


def _refuse_duplicates(field: str, ids: list[str]) -> None:
    # Sorted: equal ids are neighbours.
    for first, second in pairwise(ids):
        if first == second:
            raise InvalidInput("high_availability", field, f"id {first!r} is given twice")
