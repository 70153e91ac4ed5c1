"""The plan: groups, what runs where, what is spilled, predicted times, and the reason for each."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from airflow_dagsched.model.ranges import Bytes, Cores, Count, Id, MiB, Planned, Position, Share, Value
from airflow_dagsched.model.state import Assignment, Movement
from airflow_dagsched.plan.narrowed import Narrowed
from airflow_dagsched.plan.reasons.changes import Change
from airflow_dagsched.plan.spill import Spill

Limit = Literal["critical path", "longest step", "cores", "memory", "slots"]
"""What keeps a group from computing sooner."""
Instance = tuple[Id, Position]
"""A step and which of its ``parallelism`` copies."""


class Resources(Value, frozen=True, kw_only=True):
    """What a container needs: what its instances hold, and the padding."""

    cores: Cores
    memory_mb: MiB
    disk_mb: MiB


class Container(Value, frozen=True, kw_only=True):
    """One planned executor. All of a group ask for equal cores and memory: an application has one executor shape.

    One with copies of state alone asks nobody for an executor.
    """

    id: Id
    worker: Id
    instances: tuple[Instance, ...] = ()
    standbys: tuple[Instance, ...] = ()
    warmups: tuple[Instance, ...] = ()
    required: Resources
    cores: Cores
    """0: without an instance it is no executor, but room on its worker for copies of state."""
    memory_mb: MiB
    """With the padding: what is taken of the worker."""
    disk_mb: MiB


class Driver(Value, frozen=True, kw_only=True):
    """The driver program. Worker None: wherever it is submitted from."""

    worker: Id | None = None
    cores: Cores = 1
    memory_mb: MiB = 1024


class Times(Value, frozen=True, kw_only=True):
    """Predicted seconds of a group, one after another: start the application, read, compute, write."""

    start: Planned = 0.0
    compute: Planned = 0.0
    read: Planned = 0.0
    write: Planned = 0.0

    @property
    def total_s(self) -> float:
        """Seconds of all parts, one after another."""
        return self.start + self.read + self.compute + self.write


class Pruned(Value, frozen=True, kw_only=True):
    """Something a group leaves out. Of an instance the id is ``step/index``, of a partition ``step/`` and its key."""

    what: Literal["worker", "step", "partition", "instance"]
    id: Id
    reason: str


class Group(Value, frozen=True, kw_only=True):
    """Steps that run as one Spark application."""

    id: Id
    steps: tuple[Id, ...]
    after: tuple[Id, ...] = ()
    """Groups and ordinary tasks it waits for."""
    start_s: Planned = 0.0
    end_s: Planned = 0.0
    finish_spread_s: Planned = 0.0
    """How far apart its steps are predicted to end."""
    begins: dict[Id, Planned] = {}
    """Step -> when its first instance starts, counted from the start of ``time.compute``; empty where only one step
    runs, or all begin at once, being resident."""
    reason: str
    progress: Literal["planned", "running", "finished"] = "planned"
    """Of a plan made part-way through a run: one that runs has the times it was started with, a finished one none."""
    residency: Literal["all", "slots"] = "slots"
    slots: Count = 1
    """Steps side by side."""
    limit: Limit = "critical path"
    time: Times = Times()
    driver: Driver = Driver()
    containers: tuple[Container, ...] = ()
    hosts: str = ""
    """How its executors come to these workers, or that the cluster manager chooses others."""
    placement: str = ""
    """Which policy placed it, and why so; empty: it is placed as it was sized."""
    partitions: dict[str, tuple[str, ...]] = {}
    """Step -> all that it reads of sources with a condition; a step of several sources has their paths in front."""
    pruned: tuple[Pruned, ...] = ()
    unpruned: tuple[Pruned, ...] = ()
    """What was looked at and stays, and why; where all workers do, the id is the group's."""

    settings: dict[str, str] = {}
    """Spark settings that its launch gives to spark-submit, besides its author's; empty: they were not asked for."""

    @property
    def executors(self) -> tuple[Container, ...]:
        """The containers that an executor is asked for: those with an instance."""
        return tuple(box for box in self.containers if box.instances)


class WorkShares(Value, frozen=True, kw_only=True):
    """Shares of the work of all steps, cores x parallelism x runtime, by who says how long they take."""

    measured: Share = 0.0
    """In earlier runs."""
    declared: Share = 0.0
    """By the author."""
    assumed: Share = 0.0
    """By the settings: nobody knows."""
    assumed_s: Planned = 0.0
    """Seconds that the settings take for an instance then."""
    assumed_steps: Position = 0
    """Of how many steps: a short assumption hides how many in its share."""
    assumed_task_s: Planned = 0.0
    """Seconds that the settings take for an ordinary task of which nobody says how long it takes."""
    assumed_tasks: Position = 0
    """How many of these there are: they are no work, but others wait for them."""


class PlanFacts(Value, frozen=True, kw_only=True):
    """The facts that a plan was made with: where they differ, plans may."""

    cluster: Literal["declared", "live", "assumed"]
    room: Literal["whole", "free"]
    """Of each worker: all it has, or what was free of it."""
    connection: Id | None = None
    interval: str | None = None
    """Key of the run's; None: no run is planned, nothing is pruned by it."""
    groups: Literal["planner", "dag", "plan file", "run"]
    """Who chose them; ``run``: part of a group, submitted by itself."""
    policy: str
    prune: str
    history: tuple[Id, ...] = ()
    """The runs that what is measured is from, as far as it is known; the newest last."""
    pins: Literal["kept", "given up"] = "kept"
    author: tuple[str, ...] = ()
    """Names of the Spark settings that the author sets: they win over the plan's."""
    waiting: tuple[Id, ...] = ()
    """Groups for which too little is free: planned on all there is, their launches wait, or queue."""
    beside: tuple[Id, ...] = ()
    """Dataflows of the DAG whose launches, at the same moment, have taken room before."""
    behind: tuple[Id, ...] = ()
    """Dataflows of the DAG that write before what this one reads."""
    starts: Literal["cold", "warm"] = "cold"
    """What a group's start is priced as: of an application of its own, or of one that is warm."""
    digest: str
    """sha256 of all facts: plans of equal digests are equal."""


class Compared(Value, frozen=True, kw_only=True):
    """A kind of grouping that was compared, and what its best one would take; expected failures included."""

    what: str
    makespan_s: Planned
    core_seconds: Planned
    spilled_bytes: Bytes
    groups: Count
    regret: Planned | UnsetType = UNSET
    """How much later than the soonest it ends, on average over runtimes that may be the true ones, as a share; there
    only if the groups were chosen by it."""


class Plan(Value, frozen=True, kw_only=True):
    """The whole of it: complete, and the same for equal inputs."""

    version: Literal[1] = 1
    dataflow: str
    digest: str
    makespan_s: Planned = 0.0
    lower_bound_s: Planned = 0.0
    """No plan of this dataflow can end sooner, with the runtimes that it is planned with: see ``work``."""
    lower_bound_reason: str = ""
    lower_bound_proof: Literal["exact"] | UnsetType = UNSET
    """There only if the exact mode has proved the bound: deriving it again takes the exact mode again."""
    gap: Planned = 0.0
    """How much longer the plan takes, as a share of the lower bound."""
    compared: tuple[Compared, ...] = ()
    """What the groups were chosen from: the chosen first, then the runner-up."""
    asked: tuple[str, ...] = ()
    """What the author asked for that the dataflow itself does not need, and where it is in this plan."""
    groups: tuple[Group, ...] = ()
    spills: tuple[Spill, ...] = ()
    narrowed: tuple[Narrowed, ...] = ()
    """What is kept without some of its columns, as far as the last run says it."""
    assignment: Assignment | None = None
    movements: tuple[Movement, ...] = ()
    follow_up: bool = False
    work: WorkShares | None = None
    """How much of the work is known; None: made by hand."""
    facts: PlanFacts | None = None
    """None: made by hand, or without them, as by ``dagsched plan``."""


class Replanned(Struct, frozen=True):
    """A plan made part-way through a run, from now on."""

    plan: Plan
    changes: tuple[Change, ...]
    """By group; empty: everything left runs as it was planned, at the times that are known now."""
    left_s: float
    """Seconds until all has ended, as predicted."""
    saved_s: float
    """Seconds against the groups and places so far, where these are still possible; else zero."""
