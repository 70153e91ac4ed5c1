"""The cost model: what a grouping of the steps would take, by simulating it.

A group takes, one after another: start of the application, reading each dataset it takes from earlier
groups (once, however many of its steps read it), computing under its residency, writing each dataset that
later groups read (once, however many they are). A plan takes what the time line says: see ``queue``.
Groupings are compared by makespan, then core-seconds held, then bytes spilled, then number of groups.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.model.graph import Dataset
from airflow_dagsched.plan.given import WHOLE, Given
from airflow_dagsched.plan.launches.queue import Circular, Job, Span, run
from airflow_dagsched.plan.launches.room import Cut, Room, SpillRoom
from airflow_dagsched.plan.left import shape_left
from airflow_dagsched.plan.parts import quotient
from airflow_dagsched.plan.shape import Shape
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


class Traffic(NamedTuple):
    """Bytes that each group reads from earlier ones and writes for later ones, by its first node."""

    read: Sequence[int]
    written: Sequence[int]
    cuts: Sequence[Cut]
    """The pipelined datasets that are cut, where there is a limit to them."""
    spilled: int
    """Bytes of all of them."""


class Priced(Struct, frozen=True):
    """A grouping with all that follows from it; groups by their first node."""

    home: Home
    members: dict[int, list[int]]
    """The steps of each group, in the order in which they start."""
    edges: dict[int, Sequence[int]]
    """From each group and ordinary task to those that wait for it."""
    shapes: dict[int, Shape]
    """A group whose steps are all left out has none, and takes no time."""
    traffic: Traffic
    jobs: dict[int, Job]
    spans: dict[int, Span]
    cost: Cost


def price(home: Home, given: Given, *, failures: bool = True, turns: Mapping[int, int] | None = None) -> Priced:
    """The price of ``home``, which obeys the rules.

    Raises ``DoesNotFit``, and ``InvalidInput`` with a cycle where groups wait for each other: those would never start.

    ``failures``: each group takes what it takes on average with the failures that the settings expect.
    ``turns``: of what is ready, in which order it starts; see ``queue``.
    """
    members = members_of(home, given)
    running = members if given.left is WHOLE else _running(members, given)
    shapes = _shapes(running, members, given)
    traffic = _traffic(home, given)
    jobs = _jobs(members, shapes, traffic, given, failures=failures)
    between = quotient(given.graph, home)
    edges = {node: between[node] for node in jobs}
    limit = given.cluster.spill_mb
    spills = None if limit is None else SpillRoom((*traffic.cuts, *_kept(home, given)), limit * MIB)
    try:
        spans = run(jobs, edges, Room(given.work.workers), spills, turns=turns)
    except Circular as circle:
        raise _refusal(circle, members, given) from None
    cost = Cost(
        round(max([span.end_s for span in spans.values()], default=0.0), DIGITS),
        round(sum([shape.held_cores * jobs[first].seconds for first, shape in shapes.items()]), DIGITS),
        traffic.spilled,
        len(members),
    )
    return Priced(home, members, edges, shapes, traffic, jobs, spans, cost)


def _shapes(running: Mapping[int, list[int]], members: dict[int, list[int]], given: Given) -> dict[int, Shape]:
    """Of the groups with steps that are run; those of one step are looked up at once."""
    known = given.work.lone if given.left is WHOLE else {}
    shapes = {}
    for first, steps in running.items():
        shape = known.get(steps[0]) if len(steps) == 1 else None
        shapes[first] = shape or shape_left(first, name_of(first, members, given), given, steps)
    return shapes


def _jobs(
    members: Collection[int], shapes: Mapping[int, Shape], traffic: Traffic, given: Given, *, failures: bool
) -> dict[int, Job]:
    """The groups, then the ordinary tasks."""
    start, rate = given.cluster.application_start_s, given.cluster.spill_mb_s * MIB
    jobs = {
        first: Job(start + traffic.read[first] / rate + shape.inside.compute_s + traffic.written[first] / rate, shape)
        for first, shape in shapes.items()
    }
    if failures and given.settings.failures_per_hour:
        expected = given.settings.failures_per_hour / HOUR_S
        jobs = {first: Job(expected_s(job.seconds, expected), job.shape) for first, job in jobs.items()}
    if len(shapes) < len(members):
        jobs = {first: jobs.get(first, Job(0.0, None)) for first in members}
    runtime = given.work.runtime
    for node in range(len(given.graph.steps), len(given.graph.ids)):
        jobs[node] = Job(runtime[node], None)
    return jobs


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


def _traffic(home: Home, given: Given) -> Traffic:
    """What goes from group to group."""
    read, written, cuts, total = [0] * len(home), [0] * len(home), list[Cut](), 0
    idle, limited = given.left.idle, given.cluster.spill_mb is not None
    for dataset in given.graph.datasets:
        here, size = home[dataset.src], dataset.bytes
        others = {home[reader] for reader in dataset.readers}
        others.discard(here)
        if not others or dataset.src in idle:
            continue
        written[here] += size
        for other in _awake(others, dataset, home, idle):
            read[other] += size
        whole = len(dataset.pipelined) == len(dataset.readers)
        spilled = others if whole else {home[reader] for reader in dataset.pipelined} - {here}
        if spilled:
            total += size
            if limited:
                cuts.append(Cut(here, tuple(spilled), size))
    for size, readers, _ in given.stored:
        for other in {home[reader] for reader in readers}:
            read[other] += size
    return Traffic(read, written, cuts, total)


def _awake(others: set[int], dataset: Dataset, home: Home, idle: Collection[int]) -> set[int]:
    """Those of the groups ``others`` of which a step that is run reads the dataset."""
    return others.intersection([home[reader] for reader in dataset.readers if reader not in idle]) if idle else others


def _kept(home: Home, given: Given) -> list[Cut]:
    """The spills that are there from before."""
    return [Cut(None, tuple({home[node] for node in kept}), size) for size, _, kept in given.stored if kept]


def _refusal(circle: Circular, members: dict[int, list[int]], given: Given) -> InvalidInput:
    names = [name_of(job, members, given) if job in members else given.graph.ids[job] for job in circle.jobs]
    where = f"dataflow {given.graph.dataflow.name!r}"
    return InvalidInput(where, "groups", f"{' -> '.join(names)} wait for each other: none of them can start")
