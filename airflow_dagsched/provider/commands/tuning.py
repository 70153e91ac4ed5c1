"""``airflow dagsched tune``: from the run history of a dataflow to the plan file beside its DAG file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from airflow_dagsched.errors import LaunchRefused
from airflow_dagsched.launch.planning.plan_run import plan_run
from airflow_dagsched.model.codec import format_json
from airflow_dagsched.plan.checking import check
from airflow_dagsched.plan.exact.mode import plan_exactly
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.regrouping import list_regrouped
from airflow_dagsched.plan.report.certainty import say_known
from airflow_dagsched.provider.wiring.plan_file import locate_plan_file

if TYPE_CHECKING:
    from airflow_dagsched.plan.plan_types import Plan
    from airflow_dagsched.provider.authoring.dataflow import SparkDataflow
    from airflow_dagsched.provider.clusters.planner_hook import PlannerHook


class Tuned(Struct, frozen=True):
    """What a plan file is to hold, and what it changes."""

    file: Path
    plan: Plan
    lines: tuple[str, ...]

    def write(self) -> None:
        """Put the plan file in its place."""
        # In one move: a parse sees the old file or the new one.
        draft = self.file.with_suffix(".new")
        draft.write_text(format_json(self.plan))
        draft.replace(self.file)


def tune(flow: SparkDataflow, hook: PlannerHook, *, exact: bool = False) -> Tuned:
    """The plan of ``flow`` by its history, checked, on the idle cluster: who is on it just now is no reason for groups
    that stay for weeks.

    ``exact``: with what a solver proves and finds. The parse then takes the groups of the file, and asks no solver.

    Raises :class:`DoesNotFit`, :class:`LaunchRefused` where the cluster does not answer, and :class:`InvalidInput`
    where the solver is asked for and not installed.
    """
    spec = flow.spec
    facts = hook.gather_facts(flow, live=False)
    # The planner's to choose, whatever the launch tasks are today.
    facts = replace(facts, groups=None, origin=replace(facts.origin, groups="planner"))
    planned = plan_run(facts, plan_exactly if exact else plan)
    made = planned.plan
    violations = check(made, planned.dataflow, planned.cluster, planned.settings)
    if violations:
        raise LaunchRefused(spec.name, f"its plan breaks rules: {violations[0]}", "please report it")
    return Tuned(
        locate_plan_file(flow.dag.fileloc, spec.name),
        made,
        tuple(_describe_changes(flow, made, len(facts.history.measured))),
    )


def _describe_changes(flow: SparkDataflow, made: Plan, measured: int) -> Iterator[str]:
    steps, groups = len(flow.steps), len(made.groups)
    yield f"{flow.group_id}: {measured} of {steps} steps measured; {groups} group(s), {made.makespan_s:.1f} s predicted"
    if made.work is not None:
        yield f"  {say_known(made.work)}"
    yield from (f"  {line}" for line in list_regrouped(flow.grouping.groups, made.groups) or ("the groups stay",))
