"""A list of a batch group's steps by the search for projects, which sees farther than moves of single steps.

    2 cores, a, b: 3 s, c, d, e: 2 s      longest first  ▐aaa▌▐cc▌▐ee▌   7 s     found  ▐aaa▌▐bbb▌     6 s: listed
                                                         ▐bbb▌▐dd▌                      ▐cc▌▐dd▌▐ee▌   a c d b e

Each step is an activity (see ``rcpsp``) that holds a slot, and cores for as many instances as it has at once, until its
last wave ends. Steps are listed by the starts of the shortest schedule found. What the list is worth, where a last wave
leaves cores to others, the list schedule says: only the list is taken over.
"""

from __future__ import annotations

from collections.abc import Sequence

from airflow_dagsched.plan.costing.list_schedule import CorePool, list_edges_inside
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.rcpsp.project import Project
from airflow_dagsched.plan.rcpsp.schedule import find_starts, scale_seconds


def search_list(
    steps: Sequence[int], problem: Problem, slots: int, pool: CorePool, floor_s: float, effort: int
) -> list[int]:
    """The steps of a group, topological as they come and as they go; ``effort``: steps placed while searching.

    ``floor_s``: seconds that no list need be shorter than.
    """
    project = _make_project(steps, problem, slots, pool)
    (bound,) = scale_seconds([floor_s])
    starts = find_starts(project, bound, effort=effort)
    # At equal starts as before: what takes no time stays before what waits for it.
    return [steps[at] for at in sorted(range(len(steps)), key=starts.__getitem__)]


def _make_project(steps: Sequence[int], problem: Problem, slots: int, pool: CorePool) -> Project:
    counts = [problem.graph.steps[node].parallelism for node in steps]
    cores = [problem.arrays.needs[node].cores for node in steps]
    at_once = [
        min(count, lanes, pool.cores // each) for count, lanes, each in zip(counts, pool.lanes, cores, strict=True)
    ]
    waves = [-(-count // most) for count, most in zip(counts, at_once, strict=True)]
    nexts, _ = list_edges_inside(steps, problem)
    return Project(
        durations=scale_seconds(
            [problem.arrays.runtime_s[node] * count for node, count in zip(steps, waves, strict=True)]
        ),
        demands=tuple((each * most, 1) for each, most in zip(cores, at_once, strict=True)),
        successors=tuple(tuple(afters) for afters in nexts),
        capacities=(pool.cores, slots),
    )
