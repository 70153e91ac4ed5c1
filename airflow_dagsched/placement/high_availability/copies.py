"""Who holds what while an assignment is made."""

from __future__ import annotations

from collections.abc import Iterable

from airflow_dagsched.model.state import Assignment
from airflow_dagsched.placement.high_availability.facts import Facts


class Copies:
    """Active, standby and warm-up copies by worker; the load of a worker counts them all, over its capacity."""

    def __init__(self, facts: Facts) -> None:
        count = len(facts.workers)
        self.facts = facts
        self.capacity = facts.capacity
        self.active: list[set[int]] = [set() for _ in range(count)]
        self.standby: list[set[int]] = [set() for _ in range(count)]
        self.warmup: list[set[int]] = [set() for _ in range(count)]
        self.loads = [0.0] * count

    def count(self, worker: int) -> int:
        return len(self.active[worker]) + len(self.standby[worker]) + len(self.warmup[worker])

    def holds(self, worker: int, instance: int) -> bool:
        return instance in self.active[worker] or instance in self.standby[worker] or instance in self.warmup[worker]

    def holders(self, instance: int) -> list[int]:
        return [worker for worker in range(len(self.loads)) if self.holds(worker, instance)]

    def standbys_of(self, instance: int) -> list[int]:
        """In natural order."""
        return [worker for worker, held in enumerate(self.standby) if instance in held]

    def add(self, held: list[set[int]], worker: int, instance: int) -> None:
        held[worker].add(instance)
        self.loads[worker] = self.count(worker) / self.capacity[worker]

    def drop(self, held: list[set[int]], worker: int, instance: int) -> None:
        held[worker].discard(instance)
        self.loads[worker] = self.count(worker) / self.capacity[worker]

    def least_loaded(self, among: Iterable[int]) -> int:
        """The first of the least loaded; ``among`` is in natural order and not empty."""
        return min(among, key=self.loads.__getitem__)

    def active_load(self, worker: int) -> float:
        return len(self.active[worker]) / self.capacity[worker]

    def assignment(self) -> Assignment:
        """In the plan's form: keys in natural order of the instances."""
        facts = self.facts
        ids = [worker.id for worker in facts.workers]
        owner = {instance: ids[at] for at, held in enumerate(self.active) for instance in held}
        return Assignment(
            active={instance.id: owner[at] for at, instance in enumerate(facts.instances) if at in owner},
            standby=self._lists(self.standby, ids),
            warmup=self._lists(self.warmup, ids),
        )

    def _lists(self, held: list[set[int]], ids: list[str]) -> dict[str, tuple[str, ...]]:
        found: dict[int, list[str]] = {}
        for at, members in enumerate(held):
            for instance in members:
                found.setdefault(instance, []).append(ids[at])
        return {self.facts.instances[at].id: tuple(found[at]) for at in sorted(found)}
