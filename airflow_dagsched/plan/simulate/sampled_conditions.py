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
        [job.seconds * _draw_factor(job, conditions.noise, noise) for job in jobs.all],
        [_draw_failures(job, conditions, failures) for job in jobs.all],
        [_draw_time_to(conditions.losses_per_hour, losses) for _ in range(workers)],
    )


def _draw_factor(job: Job, noise: float, rng: random.Random) -> float:
    """Lognormal of mean 1 for each step, drawn together by their runtimes: many steps even each other out."""
    if not noise:
        return 1.0
    total = sum(job.runtimes)
    # exp(mu + sigma**2 / 2) is the mean of a lognormal: with this mu it is 1.
    drawn = [rng.lognormvariate(-noise * noise / 2, noise) for _ in job.runtimes]
    if not total:
        return drawn[0]
    return sum(factor * runtime for factor, runtime in zip(drawn, job.runtimes, strict=True)) / total


def _draw_failures(job: Job, conditions: Conditions, rng: random.Random) -> Sequence[float]:
    if not job.places or not conditions.failures_per_hour:
        return ()
    return [_draw_time_to(conditions.failures_per_hour, rng) for _ in range(conditions.retries + 1)]


def _draw_time_to(per_hour: float, rng: random.Random) -> float:
    return rng.expovariate(per_hour / HOUR_S) if per_hour else NEVER
