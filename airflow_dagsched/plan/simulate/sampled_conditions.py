"""What a simulation leaves to chance, drawn beforehand and in the order of the jobs: all policies meet the same."""

from __future__ import annotations

import random
from collections.abc import Sequence

from msgspec import Struct

from airflow_dagsched.plan.simulate.jobs import Job, Jobs
from airflow_dagsched.plan.simulate.values import Conditions

HOUR_S = 3600.0
NEVER = float("inf")


class Luck(Struct, frozen=True):
    """One draw."""

    seconds: Sequence[float]
    """What each job takes if nothing fails."""
    failures: Sequence[Sequence[float]]
    """For each group, after how many seconds each of its attempts would fail; empty: none does."""
    losses: Sequence[float]
    """When each worker is lost."""


def draw_luck(jobs: Jobs, workers: int, conditions: Conditions) -> Luck:
    """Deterministic in the seed. Each part has a generator of its own: more noise moves no failure."""
    noise, failures, losses = (random.Random(f"{part} {conditions.seed}") for part in ("noise", "failures", "losses"))
    return Luck(
        [_draw_seconds(job, conditions.noise, noise) for job in jobs.all],
        [_draw_failures(job, conditions, failures) for job in jobs.all],
        [_draw_time_to(conditions.losses_per_hour, losses) for _ in range(workers)],
    )


def _draw_seconds(job: Job, noise: float, rng: random.Random) -> float:
    """As planned, what is computed as long as its slowest instances take; to start, read and write is no luck."""
    if not noise:
        return job.seconds
    return job.seconds + job.compute_s * (job.computing.draw_factor(noise, rng) - 1)


def _draw_failures(job: Job, conditions: Conditions, rng: random.Random) -> Sequence[float]:
    if not job.places or not conditions.failures_per_hour:
        return ()
    return [_draw_time_to(conditions.failures_per_hour, rng) for _ in range(conditions.retries + 1)]


def _draw_time_to(per_hour: float, rng: random.Random) -> float:
    return rng.expovariate(per_hour / HOUR_S) if per_hour else NEVER
