"""Who holds what while an assignment is made."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping

from airflow_dagsched.model.state import Assignment
from airflow_dagsched.placement.high_availability.facts import Facts


class Copies:
    """Active, standby and warm-up copies by worker; the load of a worker counts them all, over its capacity."""

    def __init__(self, facts: Facts) -> None:
        workers = range(len(facts.workers))
        self.facts = facts
        self.capacity = facts.capacity
        self.active: list[set[int]] = [set() for _ in workers]
        self.standby: list[set[int]] = [set() for _ in workers]
        self.warmup: list[set[int]] = [set() for _ in workers]
        self.loads = [0.0] * len(workers)

    @classmethod
    def of(cls, facts: Facts, active: Mapping[int, int]) -> Copies:
        """Those of ``active``, instance to worker, and no others."""
        copies = cls(facts)
        for instance, worker in active.items():
            copies.add_copy(copies.active, worker, instance)
        return copies

    def count_copies(self, worker: int) -> int:
        """Copies on the worker, of all three roles."""
        return len(self.active[worker]) + len(self.standby[worker]) + len(self.warmup[worker])

    def holds_copy(self, worker: int, instance: int) -> bool:
        """Whether the worker has a copy of the instance, whatever its role."""
        return instance in self.active[worker] or instance in self.standby[worker] or instance in self.warmup[worker]

    def find_holders(self, instance: int) -> list[int]:
        """Workers with any copy of the instance, in natural order."""
        return [worker for worker in range(len(self.loads)) if self.holds_copy(worker, instance)]

    def find_free(self, instance: int) -> list[int]:
        """Workers without any copy of the instance, in natural order."""
        return [worker for worker in range(len(self.loads)) if not self.holds_copy(worker, instance)]

    def find_standbys(self, instance: int) -> list[int]:
        """Workers with a standby of the instance, in natural order."""
        return [worker for worker, held in enumerate(self.standby) if instance in held]

    def add_copy(self, held: list[set[int]], worker: int, instance: int) -> None:
        """Put a copy on the worker; ``held`` is one of ``active``, ``standby`` and ``warmup``."""
        held[worker].add(instance)
        self.loads[worker] = self.count_copies(worker) / self.capacity[worker]

    def drop_copy(self, held: list[set[int]], worker: int, instance: int) -> None:
        """Take a copy away, if it is there."""
        held[worker].discard(instance)
        self.loads[worker] = self.count_copies(worker) / self.capacity[worker]

    def find_least_loaded(self, among: Iterable[int]) -> int:
        """The first of the least loaded; ``among`` is in natural order and not empty."""
        # ``min`` keeps the first of equals, which is the least worker in natural order: Kafka's tie, too.
        return min(among, key=self.loads.__getitem__)

    def compute_active_load(self, worker: int) -> float:
        """Active instances for each unit of the worker's capacity."""
        return len(self.active[worker]) / self.capacity[worker]

    def deal_stateless(self, compute_load: Callable[[int], float]) -> None:
        """Make each stateless instance active on the worker of the least load, the first of equals."""
        # Only the load of the worker that takes changes: its entry is replaced, so none in the heap is stale.
        queue = [(compute_load(worker), worker) for worker in range(len(self.loads))]
        heapq.heapify(queue)
        for instance in self.facts.stateless:
            worker = queue[0][1]
            self.add_copy(self.active, worker, instance)
            heapq.heapreplace(queue, (compute_load(worker), worker))

    def make_assignment(self) -> Assignment:
        """The assignment in the plan's form: keys in natural order of the instances."""
        facts = self.facts
        ids = [worker.id for worker in facts.workers]
        owner = {instance: ids[at] for at, held in enumerate(self.active) for instance in held}
        return Assignment(
            active={instance.id: owner[at] for at, instance in enumerate(facts.instances) if at in owner},
            standby=self._list_holders(self.standby, ids),
            warmup=self._list_holders(self.warmup, ids),
        )

    def _list_holders(self, held: list[set[int]], ids: list[str]) -> dict[str, tuple[str, ...]]:
        workers: dict[int, list[str]] = {}
        for at, members in enumerate(held):
            for instance in members:
                workers.setdefault(instance, []).append(ids[at])
        return {self.facts.instances[at].id: tuple(workers[at]) for at in sorted(workers)}
