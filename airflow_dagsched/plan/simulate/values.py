"""What a simulation is given, and what comes out of it."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.plan.plan_types import Plan

Order = Literal["plan", "b-level", "shortest", "downstream", "fifo"]


class Work(Struct, frozen=True):
    """A plan to run, the dataflow it is of, and the second it is submitted at."""

    plan: Plan
    dataflow: Dataflow
    at_s: float = 0.0


class Conditions(Struct, frozen=True):
    """What goes otherwise than planned. All zero: nothing does."""

    noise: float = 0.0
    """Of the runtime of each instance: the standard deviation of its logarithm; its mean stays."""
    failures_per_hour: float = 0.0
    """Of each running application. It is tried again from its start."""
    losses_per_hour: float = 0.0
    """Of each worker. It does not come back; what ran there is tried again elsewhere, if it may be there."""
    retries: int = 3
    """Of each job; after that, what waits for it never runs."""
    seed: int = 0


class Policy(Struct, frozen=True):
    """Which of the waiting groups starts first, and where."""

    order: Order
    """``plan``: as planned, and never before its planned start; ``b-level``: the most seconds on the way to the
    end; ``shortest``: the fewest; ``downstream``: the most jobs below it, Airflow's default weight; ``fifo``: the
    longest ready."""
    overtaking: Literal["none", "any", "harmless"] = "any"
    """Which groups may start while one before them waits for room; ``harmless``: those planned to end by the time
    the first in line will have room."""
    moves: bool = True
    """Whether containers go to any worker with room if the planned one has none; those of a group with a pinned
    step never do. False: only if the planned one is lost."""
    rivals: tuple[Policy, ...] = ()
    """What takes its place whenever that is foreseen to end all works sooner (see ``foresee``)."""


_RESERVED = Policy("fifo", overtaking="harmless")
POLICIES: dict[str, Policy] = {
    "plan": Policy("plan", overtaking="none", moves=False),
    "b-level": Policy("b-level"),
    "downstream": Policy("downstream"),
    "fifo": Policy("fifo", overtaking="none"),
    "reserved": _RESERVED,
    "foreseen": Policy(
        "fifo", overtaking="none", rivals=(_RESERVED, Policy("downstream"), Policy("b-level"), Policy("shortest"))
    ),
}
"""A launch takes all its cores at once or none in all of them, so launches never wait for each other's cores.
``fifo``: the first in line is served before all others, as by Spark's own master. ``reserved``: what it will take
is reserved for it, and what is done by then goes ahead. ``foreseen``: first come first served, until an order is
foreseen to be better for all, so it is better than that on the mean and on the worst if all goes as planned."""


class Ran(Struct, frozen=True):
    """A job that ended well. Seconds from the start of the simulation."""

    work: int
    job: str
    ready_s: float
    """When all it waits for had ended."""
    start_s: float
    """Of the last attempt."""
    end_s: float
    attempts: int


class Outcome(Struct, frozen=True):
    """One run."""

    ran: tuple[Ran, ...]
    """By work, then as in its plan; ordinary tasks last."""
    unfinished: tuple[tuple[int, str], ...]
    """Work and id of jobs that failed too often, have no worker left that could hold them, or wait for such a job."""
    completion_s: tuple[float | None, ...]
    """For each work, from its submission to the end of its last job; None: something is unfinished."""
    makespan_s: float
    """The end of the last job that ended."""
    utilisation: float
    """Core-seconds held by groups, failed attempts included, as a part of all there were until the last ended."""
    retries: int
    lost_workers: int
