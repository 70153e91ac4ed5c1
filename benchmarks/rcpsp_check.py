"""Is this a schedule? Read from the project alone, sharing nothing with what makes schedules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from airflow_dagsched.plan.rcpsp.project import Project


def find_violations(project: Project, starts: Sequence[int]) -> list[str]:
    """One line for each rule that ``starts``, by activity of ``project``, breaks; empty for a schedule."""
    if len(starts) != len(project.durations):
        return [f"{len(starts)} starts for {len(project.durations)} activities"]
    return [*_find_negative_starts(starts), *_find_early_starts(project, starts), *_find_overloads(project, starts)]


def _find_negative_starts(starts: Sequence[int]) -> Iterator[str]:
    yield from (f"activity {at} starts at {start}" for at, start in enumerate(starts) if start < 0)


def _find_early_starts(project: Project, starts: Sequence[int]) -> Iterator[str]:
    for at, nexts in enumerate(project.successors):
        end = starts[at] + project.durations[at]
        yield from (
            f"activity {after} starts at {starts[after]}, before {at} ends at {end}"
            for after in nexts
            if starts[after] < end
        )


def _find_overloads(project: Project, starts: Sequence[int]) -> Iterator[str]:
    """What is held changes at starts and ends only; at one moment, all changes count together."""
    for kind, capacity in enumerate(project.capacities):
        changes = sorted(_list_changes(project, starts, kind))
        held = 0
        for moment, together in groupby(changes, key=lambda change: change[0]):
            held += sum(change for _, change in together)
            if held > capacity:
                yield f"resource {kind} has {capacity}, but {held} are held at {moment}"


def _list_changes(project: Project, starts: Sequence[int], kind: int) -> Iterator[tuple[int, int]]:
    for start, duration, demand in zip(starts, project.durations, project.demands, strict=True):
        if duration:
            yield from ((start, demand[kind]), (start + duration, -demand[kind]))
