"""The cost model: what a grouping of the steps would take, by simulating it.

A group takes, one after another: start of the application, reading each dataset it takes from earlier
groups (once, however many of its steps read it), computing under its residency, writing each dataset that
later groups read (once, however many they are). A plan takes what the time line says: see ``queue``.
Groupings are compared by makespan, then core-seconds held, then bytes spilled, then number of groups.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from airflow_dagsched.plan.given import WHOLE, Given
from airflow_dagsched.plan.left import shape_left
from airflow_dagsched.plan.queue import Job, Span, run
from airflow_dagsched.plan.room import UNLIMITED, Cut, Room, SpillRoom
from airflow_dagsched.plan.shape import Shape
from airflow_dagsched.plan.values import Times
from airflow_dagsched.plan.work import MIB

DIGITS = 6
"""Predicted seconds are told to the microsecond: enough, and the same on every machine."""
HOUR_S = 3600.0
HOPELESS = 600.0

Home = Sequence[int]
"""For each node the first node of its group; an ordinary task is its own."""


class Cost(NamedTuple):
    """What is compared, in this order."""

    makespan_s: float
    core_seconds: float
    spilled: int
    """Bytes."""
    groups: int


@dataclass(frozen=True, slots=True)
class Priced:
    """A grouping with all that follows from it; groups by their first node."""

    home: Home
    members: dict[int, list[int]]
    """The steps of each group, in the order in which they start."""
    edges: dict[int, list[int]]
    """From each group and ordinary task to those that wait for it."""
    shapes: dict[int, Shape]
    """A group whose steps are all left out has none, and takes no time."""
    times: dict[int, Times]
    jobs: dict[int, Job]
    spans: dict[int, Span]
    cost: Cost


def price(home: Home, given: Given, *, failures: bool = True, turns: Mapping[int, int] | None = None) -> Priced:
    """The price of ``home``, which is acyclic and obeys the rules; raises ``DoesNotFit``.

    ``failures``: each group takes what it takes on average with the failures that the settings expect.
    ``turns``: of what is ready, in which order it starts; see ``queue``.
    """
    members = members_of(home, given)
    running = members if given.left is WHOLE else _running(members, given)
    shapes = {
        first: shape_left(first, name_of(first, members, given), given, steps) for first, steps in running.items()
    }
    read, written, cuts = _traffic(home, given)
    times = {
        first: _times(shapes[first], read.get(first, 0), written.get(first, 0), given) if first in shapes else Times()
        for first in members
    }
    rate = given.settings.failures_per_hour / HOUR_S if failures else 0.0
    jobs = {first: Job(expected_s(times[first].total_s, rate), shapes.get(first)) for first in members}
    for node in range(len(given.graph.steps), len(home)):
        jobs[node] = Job(given.work.runtime[node], None)
    edges = _edges(home, given, jobs)
    limit = given.cluster.spill_mb
    spills = SpillRoom((*cuts, *_kept(home, given)), UNLIMITED if limit is None else limit * MIB)
    spans = run(jobs, edges, Room(given.work.workers), spills, turns=turns)
    cost = Cost(
        round(max((span.end_s for span in spans.values()), default=0.0), DIGITS),
        round(sum(shape.held_cores * jobs[first].seconds for first, shape in shapes.items()), DIGITS),
        sum(cut.bytes for cut in cuts),
        len(members),
    )
    return Priced(home, members, edges, shapes, times, jobs, spans, cost)


def expected_s(seconds: float, rate: float) -> float:
    """Mean time to get through ``seconds`` of work that starts anew at each failure, ``rate`` failures a second.

    Failures as a Poisson process (Young 1974; Daly 2006), the restart itself included in the work. More than
    ``HOPELESS`` failures to expect are told as so many: sums and products of what is larger would be infinite.
    """
    return math.expm1(min(rate * seconds, HOPELESS)) / rate if rate else seconds


def members_of(home: Home, given: Given) -> dict[int, list[int]]:
    """The steps of each group, in the order in which they start."""
    count = len(given.graph.steps)
    members: dict[int, list[int]] = {}
    for node in given.work.order:
        if node < count:
            members.setdefault(home[node], []).append(node)
    return members


def _running(members: dict[int, list[int]], given: Given) -> dict[int, list[int]]:
    """The steps of each group that are run, of groups with any."""
    left = {first: [node for node in steps if node not in given.left.idle] for first, steps in members.items()}
    return {first: steps for first, steps in left.items() if steps}


def name_of(first: int, members: dict[int, list[int]], given: Given) -> str:
    """The id of the group whose first step is ``first``."""
    return "launch" if len(members) == 1 else f"launch_{given.graph.ids[first]}"


def _traffic(home: Home, given: Given) -> tuple[dict[int, int], dict[int, int], list[Cut]]:
    """Bytes each group reads from earlier ones and writes for later ones; and the pipelined datasets that are cut."""
    read: dict[int, int] = {}
    written: dict[int, int] = {}
    cuts = []
    idle = given.left.idle
    for dataset in given.graph.datasets:
        here = home[dataset.src]
        others = {home[reader] for reader in dataset.readers}
        others.discard(here)
        if not others or dataset.src in idle:
            continue
        written[here] = written.get(here, 0) + dataset.bytes
        takers = {home[reader] for reader in dataset.readers if reader not in idle} - {here} if idle else others
        for other in takers:
            read[other] = read.get(other, 0) + dataset.bytes
        spilled = {home[reader] for reader in dataset.pipelined} - {here}
        if spilled:
            cuts.append(Cut(here, tuple(spilled), dataset.bytes))
    for size, readers, _ in given.stored:
        for other in {home[reader] for reader in readers}:
            read[other] = read.get(other, 0) + size
    return read, written, cuts


def _kept(home: Home, given: Given) -> list[Cut]:
    """The spills that are there from before."""
    return [Cut(None, tuple({home[node] for node in kept}), size) for size, _, kept in given.stored if kept]


def _times(shape: Shape, read: int, written: int, given: Given) -> Times:
    rate = given.cluster.spill_mb_s * MIB
    return Times(
        start=given.cluster.application_start_s,
        compute=shape.inside.compute_s,
        read=read / rate,
        write=written / rate,
    )


def _edges(home: Home, given: Given, jobs: dict[int, Job]) -> dict[int, list[int]]:
    found: dict[int, set[int]] = {first: set() for first in jobs}
    for node, nexts in enumerate(given.graph.successors):
        here = home[node]
        for after in nexts:
            there = home[after]
            if there != here:
                found[here].add(there)
    return {first: sorted(nexts) for first, nexts in found.items()}
