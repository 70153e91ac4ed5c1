"""What a stream is planned with, but for the cluster: kept with its epoch, for whoever looks at it without its DAG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from airflow_dagsched.launch.escalation.fit_to_free_cluster import Chosen, plan_on_free_cluster
from airflow_dagsched.launch.escalation.reservations import Reservation
from airflow_dagsched.launch.planning.facts import Facts, Origin
from airflow_dagsched.launch.streams.private_folder import PLACING, ROOM
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.dataflow import Dataflow, Step
from airflow_dagsched.model.state import Assignment, State
from airflow_dagsched.placement.values import name_instance
from airflow_dagsched.plan.problem.run import FixedGroup, Policy
from airflow_dagsched.plan.settings import Settings

T = TypeVar("T")


class Placing(Struct, frozen=True, kw_only=True):
    """All that a plan of the stream is made of, but for the cluster and what is known of its state."""

    dataflow: Dataflow
    settings: Settings
    policy: Policy
    groups: tuple[FixedGroup, ...]
    steps: tuple[str, ...]
    """Of the group that is its application."""
    history: State
    connection: str
    author: dict[str, dict[str, str]]
    declared: Cluster | None
    """The workers of the live cluster that it may be on, as its author says; None: all."""

    @classmethod
    def of(cls, facts: Facts, steps: Sequence[str], declared: Cluster | None) -> Placing | None:
        """What of the facts is kept; None: no policy places the stream."""
        if facts.policy is None or facts.groups is None or facts.connection is None:
            return None
        return cls(
            dataflow=facts.dataflow,
            settings=facts.settings,
            policy=facts.policy,
            groups=facts.groups,
            steps=tuple(steps),
            history=facts.history,
            connection=facts.connection,
            author={step: dict(told) for step, told in facts.author.items()},
            declared=declared,
        )

    def place(self, cluster: Cluster, state: State, reservations: Sequence[Reservation] = ()) -> Chosen | None:
        """Where it goes on what is free of a cluster, if the policy knows ``state``; None: nowhere now.

        Raises :class:`DoesNotFit` where it is larger than the whole cluster.
        """
        facts = Facts(
            dataflow=self.dataflow,
            cluster=cluster,
            settings=self.settings,
            policy=self.policy,
            groups=self.groups,
            history=self.history,
            connection=self.connection,
            author=self.author,
            origin=Origin(cluster="live", room="free", groups="dag"),
        )
        found = plan_on_free_cluster(add_state(facts, state), self.steps, reservations)
        # What would wait in a manager's queue has no room now.
        return found if isinstance(found, Chosen) and found.exact else None

    def list_steps(self) -> list[Step]:
        """Those of the application."""
        return [step for step in self.dataflow.steps if step.id in self.steps]


def add_state(facts: Facts, state: State) -> Facts:
    """The facts, where the policy knows lags, rows of state and places of what runs."""
    if facts.policy is None:
        return facts
    known = replace(facts.policy.state, lags=state.lags, offsets=state.offsets, previous=state.previous)
    return replace(facts, policy=replace(facts.policy, state=known))


def list_stateful(dataflow: Dataflow) -> list[str]:
    """Names of all instances that keep state."""
    steps = [step for step in dataflow.steps if step.stateful]
    return [name_instance(step.id, index) for step in steps for index in range(step.parallelism)]


def read_placing(private: Path) -> Placing | None:
    """Of the epoch with this private folder; None: it has none. Raises ``OSError`` where it may not be read."""
    return _read(private / PLACING, Placing)


def read_room(private: Path) -> Chosen | None:
    """Where the epoch's executors were planned to be, as ``read_placing``."""
    return _read(private / ROOM, Chosen)


def find_assignment(chosen: Chosen) -> Assignment:
    """Where each instance was planned to be, and what the policy remembers of it."""
    active = {name_instance(*each): box.worker for box in chosen.group.containers for each in box.instances}
    told = chosen.planned.plan.assignment
    moved: Mapping[str, str] = told.moved if told is not None else {}
    return Assignment(active=active, moved=dict(moved))


def _read(file: Path, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(file.read_bytes(), type=kind)
    except (FileNotFoundError, msgspec.MsgspecError):  # made by another version of ours, or for another cluster manager
        return None
