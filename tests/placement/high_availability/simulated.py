"""A cluster played round by round: before each one, every copy there is has caught up, everything else is lost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from airflow_dagsched.model.state import Assignment
from airflow_dagsched.placement.high_availability.policy import place_instances
from airflow_dagsched.placement.high_availability.settings import Settings
from airflow_dagsched.placement.high_availability.values import RUNNING, Instance, Lag, Outcome, Worker


def stateful(count: int, steps: int = 1, **fields: float) -> list[Instance]:
    """``count`` instances dealt to so many steps."""
    names = [f"s{at % steps}" for at in range(count)]
    return [Instance(f"{step}/{at // steps}", step, **fields) for at, step in enumerate(names)]


def stateless(count: int) -> list[Instance]:
    return [Instance(f"f/{at}", "f", stateful=False) for at in range(count)]


def workers(count: int, first: int = 1) -> list[Worker]:
    return [Worker(f"w{at}") for at in range(first, first + count)]


@dataclass
class Cluster:
    """What runs where; ``history`` has every round since the last ``settle``."""

    instances: Sequence[Instance]
    workers: Sequence[Worker]
    settings: Settings
    total: float = 100_000
    last: Assignment | None = None
    history: list[Outcome] = field(default_factory=list)
    tells_prior: bool = True

    def lags(self) -> dict[str, dict[str, Lag]]:
        """Running where active, caught up where there is a copy, all of the state anywhere else."""
        last = self.last or Assignment()
        found: dict[str, dict[str, Lag]] = {}
        for instance in self.instances:
            if instance.stateful:
                lags: dict[str, Lag] = {worker.id: self.total for worker in self.workers}
                for worker in (*last.standby.get(instance.id, ()), *last.warmup.get(instance.id, ())):
                    lags[worker] = 0.0
                if instance.id in last.active:
                    lags[last.active[instance.id]] = RUNNING
                found[instance.id] = lags
        return found

    def step(self) -> Outcome:
        """One round."""
        prior = self.last if self.tells_prior else None
        made = place_instances(self.instances, self.workers, self.lags(), self.settings, previous=prior)
        self.last = made.assignment
        self.history.append(made)
        return made

    def settle(self, most: int = 1000) -> int:
        """Rounds until no follow-up is asked for."""
        self.history = []
        while self.step().follow_up:
            assert len(self.history) < most, "does not converge"
        return len(self.history)

    def join(self, *added: Worker) -> None:
        self.workers = [*self.workers, *added]

    def leave(self, *gone: str) -> None:
        self.workers = [worker for worker in self.workers if worker.id not in gone]


def list_hand_overs(before: Assignment, rounds: Iterable[Outcome]) -> dict[str, int]:
    """How often each stateful instance changed its active worker."""
    counts: dict[str, int] = {}
    for made in rounds:
        for instance, worker in made.assignment.active.items():
            if before.active.get(instance, worker) != worker:
                counts[instance] = counts.get(instance, 0) + 1
        before = made.assignment
    return counts


def check_settled(cluster: Cluster) -> None:
    """Kafka's invariants at the end: valid, level by stateful actives, by all actives, by all copies of state."""
    assert cluster.last is not None
    made, settings = cluster.last, cluster.settings
    names = [worker.id for worker in cluster.workers]
    assert made.active.keys() == {instance.id for instance in cluster.instances}
    assert not made.warmup
    wanted = min(len(names) - 1, settings.num_standbys)
    for instance in cluster.instances:
        held = {made.active[instance.id], *made.standby.get(instance.id, ())}
        assert held <= set(names)
        assert len(held) == 1 + (wanted if instance.stateful else 0)
    stateful = {instance.id for instance in cluster.instances if instance.stateful}
    active = [worker for at, worker in made.active.items() if at in stateful]
    copies = [worker for workers in made.standby.values() for worker in workers]
    assert compute_skew(names, active) <= settings.balance_factor
    assert compute_skew(names, made.active.values()) <= settings.balance_factor
    assert compute_skew(names, active + copies) <= settings.balance_factor


def compute_skew(names: Iterable[str], held: Iterable[str]) -> int:
    """Most minus least."""
    counts = dict.fromkeys(names, 0)
    for worker in held:
        counts[worker] += 1
    return max(counts.values()) - min(counts.values())


def drawn(made: Outcome) -> dict[str, str]:
    """By worker: active / standby / warm-up."""
    parts = (made.assignment.active, made.assignment.standby, made.assignment.warmup)
    found: dict[str, list[list[str]]] = {}
    for at, part in enumerate(parts):
        for instance, held in part.items():
            for worker in [held] if isinstance(held, str) else held:
                found.setdefault(worker, [[], [], []])[at].append(instance[3:] if instance[0] == "s" else instance)
    return {worker: " / ".join(" ".join(names) or "-" for names in found[worker]) for worker in sorted(found)}
