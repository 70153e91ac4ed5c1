"""In which order waiting jobs start, by policy: the highest rank first."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_dagsched.plan.simulate.jobs import Jobs
from airflow_dagsched.plan.simulate.values import Order

BLOCK = 4096
"""Descendants are counted for so many jobs at a time, a bit each: memory stays linear."""


def rank_jobs(jobs: Jobs, order: Order) -> Sequence[tuple[float, ...]]:
    """For each job, before the time it became ready and its number break ties."""
    if order == "plan":
        return [(-job.due_s,) for job in jobs.all]
    if order == "fifo":
        return [()] * len(jobs.all)
    if order == "downstream":
        return [(float(count),) for count in count_descendants(jobs)]
    sign = -1.0 if order == "shortest" else 1.0
    return [(sign * level,) for level in measure_b_levels(jobs)]


def measure_b_levels(jobs: Jobs) -> list[float]:
    """Planned seconds from the start of each job to the end of the longest path below it."""
    found = [0.0] * len(jobs.all)
    for node in reversed(jobs.order):
        below = max((found[after] for after in jobs.successors[node]), default=0.0)
        found[node] = jobs.all[node].seconds + below
    return found


def count_descendants(jobs: Jobs) -> list[int]:
    """How many jobs are below each, all the way down, and itself: Airflow's weight rule ``downstream``."""
    found = [0] * len(jobs.all)
    # One bit a job, in Python's large integers: sets of descendants would take quadratic memory.
    for start in range(0, len(jobs.all), BLOCK):
        reached = [0] * len(jobs.all)
        for node in reversed(jobs.order):
            bits = 1 << (node - start) if start <= node < start + BLOCK else 0
            for after in jobs.successors[node]:
                bits |= reached[after]
            reached[node] = bits
            found[node] += bits.bit_count()
    return found
