"""What the author asked for, one sentence each, with where it is in the plan or what it made of it.

apart            'a' in 'launch_a', 'c' in 'launch_c'
spill_mb         at most 300.0 MiB of spills at once, of 500 MiB
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from msgspec.structs import replace

from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.plan.draft import Draft
from airflow_dagsched.plan.plan_types import Plan
from airflow_dagsched.plan.reasons.constraints import (
    Constraint,
    FailuresExpected,
    SpillsLimited,
    StepsApart,
    StepsIsolated,
    StepsLimited,
    StepsTogether,
)
from airflow_dagsched.plan.report.sentences import say_constraint
from airflow_dagsched.plan.settings import DEFAULTS, Settings


def report_constraints(draft: Draft) -> Draft:
    """The draft with what its author asked for, and where it is in the plan."""
    problem = draft.problem
    asked = say_constraints(draft.plan, problem.declared.dataflow, problem.cluster, problem.settings)
    return replace(draft, plan=replace(draft.plan, asked=asked))


def say_constraints(plan: Plan, dataflow: Dataflow, cluster: Cluster, settings: Settings) -> tuple[str, ...]:
    """Nothing for what is as it is by default, nor where there is no group. Linear but for sorting."""
    if not plan.groups:
        return ()
    return tuple(map(say_constraint, _list_constraints(plan, dataflow, cluster, settings)))


def _list_constraints(plan: Plan, dataflow: Dataflow, cluster: Cluster, settings: Settings) -> Iterator[Constraint]:
    group_of = {step: group.id for group in plan.groups for step in group.steps}
    isolated = [(step.id, group_of[step.id]) for step in dataflow.steps if step.isolate and step.id in group_of]
    if isolated:
        yield StepsIsolated(tuple(isolated))
    yield from _list_kept_lists(settings, group_of)
    if settings.max_steps_per_group < DEFAULTS.max_steps_per_group:
        yield StepsLimited(settings.max_steps_per_group, max(len(group.steps) for group in plan.groups))
    if settings.failures_per_hour and plan.compared:  # what was compared counts the repeats, the makespan does not
        yield FailuresExpected(settings.failures_per_hour, plan.compared[0].makespan_s)
    if cluster.spill_mb is not None:
        yield SpillsLimited(_measure_most_at_once(plan, group_of), cluster.spill_mb)


def _list_kept_lists(settings: Settings, group_of: dict[str, str]) -> Iterator[Constraint]:
    # Sorted, twice: the order of lists, and within them, is that of a file, and must not show in the plan.
    for names in sorted(tuple(sorted(set(names))) for names in settings.apart):
        yield StepsApart(tuple((name, group_of[name]) for name in names if name in group_of))
    for names in sorted(tuple(sorted(set(names))) for names in settings.together):
        yield StepsTogether(names, tuple(sorted({group_of[name] for name in names if name in group_of})))


def _measure_most_at_once(plan: Plan, group_of: dict[str, str]) -> int:
    """Bytes from the start of their writer to the end of their last reader; what ends goes first."""
    spans = {group.id: (group.start_s, group.end_s) for group in plan.groups}
    changes: list[tuple[float, int]] = []
    for spill in plan.spills:
        changes.append((spans[group_of[spill.src]][0], spill.bytes))
        changes.append((max(spans[group_of[reader]][1] for reader in spill.dst), -spill.bytes))
    # At one moment negative changes come first: what ends makes room for what starts.
    return _find_highest([change for _, change in sorted(changes)])


def _find_highest(changes: Sequence[int]) -> int:
    return max(accumulate(changes), default=0)
