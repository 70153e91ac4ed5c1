"""Many runs of one plan, by policy: as a table a person reads, and as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from statistics import fmean

from msgspec import Struct
from msgspec.structs import asdict, replace

from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.units import DIGITS
from airflow_dagsched.plan.settings import DEFAULTS, Settings
from airflow_dagsched.plan.simulate.run import simulate_works
from airflow_dagsched.plan.simulate.values import POLICIES, Conditions, Outcome, Work


class Runs(Struct, frozen=True):
    """A policy and what came out of each run, seed by seed."""

    policy: str
    outcomes: tuple[Outcome, ...]

    def list_makespans(self) -> list[float]:
        """Of the runs that finished, rising."""
        return sorted(outcome.makespan_s for outcome in self.outcomes if not outcome.unfinished)

    def compute_mean(self, of: Callable[[Outcome], float]) -> float:
        """Mean of a figure over all runs, finished or not."""
        return fmean(of(outcome) for outcome in self.outcomes)


class Report(Struct, frozen=True):
    """All policies met the same runs."""

    work: Work
    conditions: Conditions
    """Of the first run; each other has the next seed."""
    policies: tuple[Runs, ...]


def compare_policies(
    work: Work,
    cluster: Cluster,
    conditions: Conditions,
    policies: Sequence[str],
    runs: int,
    settings: Settings = DEFAULTS,
) -> Report:
    """So many runs of a checked plan under each policy, by name."""
    met = [replace(conditions, seed=conditions.seed + at) for at in range(runs)]
    found = (
        (name, [simulate_works([work], cluster, one, POLICIES[name], settings) for one in met]) for name in policies
    )
    return Report(work, conditions, tuple(Runs(name, tuple(outcomes)) for name, outcomes in found))


def write_text(report: Report) -> str:
    """The conditions, a line a policy, and when each group ran on average under each."""
    return (
        "\n".join([*_write_head(report), *(line for runs in report.policies for line in _write_groups(report, runs))])
        + "\n"
    )


def write_json(report: Report) -> str:
    """Everything, seconds to the microsecond."""
    content = {
        "version": 1,
        "dataflow": report.work.plan.dataflow,
        "planned_s": report.work.plan.makespan_s,
        "conditions": asdict(report.conditions),
        "policies": [_describe_policy(report, runs) for runs in report.policies],
    }
    return json.dumps(content, indent=1) + "\n"


def _write_head(report: Report) -> Iterator[str]:
    met, plan = report.conditions, report.work.plan
    rates = f"failures {met.failures_per_hour:g}/h, losses {met.losses_per_hour:g}/h"
    count = len(report.policies[0].outcomes)
    yield f"{plan.dataflow}: planned {plan.makespan_s:.1f} s; runs {count}, noise {met.noise:g}, {rates}"
    yield "  policy          mean s     p95 s   worst s   used  retries   lost  unfinished"
    for runs in report.policies:
        used, retries = runs.compute_mean(lambda one: one.utilisation), runs.compute_mean(lambda one: one.retries)
        lost, unfinished = (
            runs.compute_mean(lambda one: one.lost_workers),
            sum(bool(one.unfinished) for one in runs.outcomes),
        )
        times = "".join(f"{value:>10}" for value in _write_times(runs.list_makespans()))
        yield f"  {runs.policy:12}{times}{used:>7.2f}{retries:>9.2f}{lost:>7.2f}{unfinished:>12}"


def _write_times(makespans: Sequence[float]) -> tuple[str, str, str]:
    if not makespans:
        return "-", "-", "-"
    return f"{fmean(makespans):.1f}", f"{find_percentile(makespans, 0.95):.1f}", f"{makespans[-1]:.1f}"


def find_percentile(rising: Sequence[float], part: float) -> float:
    """The least value that at least ``part`` of all are no larger than."""
    return rising[max(0, math.ceil(part * len(rising)) - 1)]


def _write_groups(report: Report, runs: Runs) -> Iterator[str]:
    """Means over the runs in which the group ended."""
    spans: dict[str, list[tuple[float, float, int]]] = {}
    for outcome in runs.outcomes:
        for one in outcome.ran:
            spans.setdefault(one.job, []).append((one.start_s, one.end_s, one.attempts))
    yield ""
    yield f"{runs.policy:24}  planned start       end   mean start       end  attempts"
    for group in report.work.plan.groups:
        planned = f"  {group.id:22}{group.start_s:>15.1f}{group.end_s:>10.1f}"
        if group.id in spans:
            start, end, attempts = (fmean(values) for values in zip(*spans[group.id], strict=True))
            yield f"{planned}{start:>13.1f}{end:>10.1f}{attempts:>10.2f}"
        else:
            yield f"{planned}{'-':>13}{'-':>10}{'-':>10}"


def _describe_policy(report: Report, runs: Runs) -> dict[str, object]:
    return {"policy": runs.policy, "runs": [_describe_run(report, at, one) for at, one in enumerate(runs.outcomes)]}


def _describe_run(report: Report, at: int, outcome: Outcome) -> dict[str, object]:
    return {
        "seed": report.conditions.seed + at,
        "makespan_s": round(outcome.makespan_s, DIGITS),
        "utilisation": round(outcome.utilisation, DIGITS),
        "retries": outcome.retries,
        "lost_workers": outcome.lost_workers,
        "unfinished": [job for _, job in outcome.unfinished],
        "jobs": [
            {
                "id": one.job,
                "ready_s": round(one.ready_s, DIGITS),
                "start_s": round(one.start_s, DIGITS),
                "end_s": round(one.end_s, DIGITS),
                "attempts": one.attempts,
            }
            for one in outcome.ran
        ],
    }
