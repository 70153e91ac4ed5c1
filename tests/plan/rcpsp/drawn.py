"""Projects from a short notation, random ones, and what brute force says about them."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence

from hypothesis import strategies as st

from airflow_dagsched.plan.rcpsp.project import Project

_ACTIVITY = re.compile(r"(\w+):(\d+)x([\d,]+)")


def drawn(activities: str, edges: str = "", *, capacities: tuple[int, ...]) -> Project:
    """A project from ``"a:3x1 b:2x2,1"`` (name, duration, demands) and ``"a-b b-c"``."""
    found = [match.groups() for match in _ACTIVITY.finditer(activities)]
    place = {name: at for at, (name, _, _) in enumerate(found)}
    pairs = [edge.split("-") for edge in edges.split()]
    return Project(
        durations=tuple(int(duration) for _, duration, _ in found),
        demands=tuple(tuple(int(amount) for amount in demand.split(",")) for _, _, demand in found),
        successors=tuple(tuple(place[after] for before, after in pairs if before == name) for name in place),
        capacities=capacities,
    )


def random_project(rng: random.Random, count: int, *, kinds: int = 2, longest: int = 9) -> Project:
    """Activities in no particular order; durations of zero among them."""
    names = rng.sample(range(count), count)
    chance = rng.choice([0.05, 0.2, 0.5])
    capacities = tuple(rng.randint(1, 9) for _ in range(kinds))
    below: list[list[int]] = [[] for _ in range(count)]
    for at, name in enumerate(names):
        below[name] = [other for other in names[at + 1 :] if rng.random() < chance]
    return Project(
        durations=tuple(rng.randint(0, longest) for _ in range(count)),
        demands=tuple(tuple(rng.randint(0, capacity) for capacity in capacities) for _ in range(count)),
        successors=tuple(tuple(nexts) for nexts in below),
        capacities=capacities,
    )


@st.composite
def projects(draw: st.DrawFn, most: int = 30) -> Project:
    """Random projects with up to three resources."""
    rng = random.Random(draw(st.integers(0, 2**32), label="seed"))
    count = draw(st.integers(0, most), label="activities")
    return random_project(rng, count, kinds=draw(st.integers(0, 3), label="resources"))


def makespan(project: Project, starts: Sequence[int]) -> int:
    return max((start + length for start, length in zip(starts, project.durations, strict=True)), default=0)


def place_one_by_one(project: Project, sequence: Sequence[int]) -> list[int]:
    """Starts of the serial scheme, counted time unit by time unit."""
    held: dict[tuple[int, int], int] = {}
    starts = [0] * len(project.durations)
    for at in sequence:
        above = [other for other, nexts in enumerate(project.successors) if at in nexts]
        start = max((starts[other] + project.durations[other] for other in above), default=0)
        while not _fits(project, held, at, start):
            start += 1
        starts[at] = start
        for moment in range(start, start + project.durations[at]):
            for kind, amount in enumerate(project.demands[at]):
                held[moment, kind] = held.get((moment, kind), 0) + amount
    return starts


def _fits(project: Project, held: dict[tuple[int, int], int], at: int, start: int) -> bool:
    return all(
        held.get((moment, kind), 0) + amount <= project.capacities[kind]
        for moment in range(start, start + project.durations[at])
        for kind, amount in enumerate(project.demands[at])
    )


def shortest(project: Project) -> int:
    """The makespan of the best schedule: one of all lists makes it."""
    return min(makespan(project, place_one_by_one(project, sequence)) for sequence in all_lists(project))


def all_lists(project: Project, taken: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """Every sequence in which an activity comes after all above it."""
    rest = set(range(len(project.durations))) - set(taken)
    if not rest:
        yield taken
    for at in sorted(rest - {after for other in rest for after in project.successors[other]}):
        yield from all_lists(project, (*taken, at))
