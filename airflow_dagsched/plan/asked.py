"""What the author asked for, one sentence each, with where it is in the plan or what it made of it.

apart            'a' in 'launch_a', 'c' in 'launch_c'
spill_mb         at most 300.0 MiB of spills at once, of 500 MiB
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.plan.settings import DEFAULTS, Settings
from airflow_dagsched.plan.values import Plan
from airflow_dagsched.plan.words import count, duration, size, some


def asked_for(made: Plan, dataflow: Dataflow, cluster: Cluster, settings: Settings) -> tuple[str, ...]:
    """Nothing for what is as it is by default, nor where there is no group. Linear but for sorting."""
    if not made.groups:
        return ()
    home = {step: group.id for group in made.groups for step in group.steps}
    return (
        *_isolated(dataflow, home),
        *_lists(settings, home),
        *_most_steps(made, settings),
        *_failures(made, settings),
        *_spills(made, cluster, home),
    )


def _isolated(dataflow: Dataflow, home: dict[str, str]) -> Iterator[str]:
    alone = [f"{step.id!r} alone in {home[step.id]!r}" for step in dataflow.steps if step.isolate and step.id in home]
    if alone:
        yield f"isolate: {some(sorted(alone))}"


def _lists(settings: Settings, home: dict[str, str]) -> Iterator[str]:
    for names in sorted(tuple(sorted(set(names))) for names in settings.apart):
        yield f"apart: {some([f'{name!r} in {home[name]!r}' for name in names if name in home])}"
    for names in sorted(tuple(sorted(set(names))) for names in settings.together):
        homes = sorted({home[name] for name in names if name in home})
        yield f"together: {some([repr(name) for name in names])} in {some([repr(one) for one in homes])}"


def _most_steps(made: Plan, settings: Settings) -> Iterator[str]:
    if settings.max_steps_per_group < DEFAULTS.max_steps_per_group:
        most = max((len(group.steps) for group in made.groups), default=0)
        yield f"max_steps_per_group: {settings.max_steps_per_group}, the largest group has {count(most, 'step')}"


def _failures(made: Plan, settings: Settings) -> Iterator[str]:
    """The first of what was compared counts the repeats, the makespan does not."""
    if settings.failures_per_hour and made.compared:
        expected = f"with the repeats to expect it ends after {duration(made.compared[0].makespan_s)}"
        yield f"failures_per_hour: {settings.failures_per_hour:g}, {expected}"


def _spills(made: Plan, cluster: Cluster, home: dict[str, str]) -> Iterator[str]:
    if cluster.spill_mb is not None:
        yield f"spill_mb: at most {size(_most_at_once(made, home))} of spills at once, of {cluster.spill_mb} MiB"


def _most_at_once(made: Plan, home: dict[str, str]) -> int:
    """Bytes from the start of their writer to the end of their last reader; what ends goes first."""
    spans = {group.id: (group.start_s, group.end_s) for group in made.groups}
    changes: list[tuple[float, int]] = []
    for spill in made.spills:
        changes.append((spans[home[spill.src]][0], spill.bytes))
        changes.append((max(spans[home[reader]][1] for reader in spill.dst), -spill.bytes))
    return _highest([change for _, change in sorted(changes)])


def _highest(changes: Sequence[int]) -> int:
    return max(accumulate(changes), default=0)
