"""The plan file beside a DAG file: what ``airflow dagsched tune`` writes and a parse reads its groups from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.plan.grouping.coarsest import Grouped, Grouping, find_fewest_groups
from airflow_dagsched.provider.spec.dataflow_spec import make_flow_error

if TYPE_CHECKING:
    from airflow_dagsched.launch.planning.facts import Facts
    from airflow_dagsched.model.cluster import Cluster
    from airflow_dagsched.model.dataflow import Dataflow
    from airflow_dagsched.plan.plan_types import Plan
    from airflow_dagsched.plan.settings import Settings
    from airflow_dagsched.provider.spec.dataflow_spec import DataflowSpec


MOST = 1_000_000
"""Cores of a worker, and GiB, that are enough for anything."""


class Structure(Struct, frozen=True):
    """Which step is in whose group, and where that is from."""

    grouping: Grouping
    plan: Plan | None = None
    """The plan file's, if the groups are from there."""
    stale: str = ""
    """Why there is a plan file, and it is ignored."""


def locate_plan_file(dag_file: str, name: str) -> Path:
    """``sales.py`` with dataflow ``etl``: ``sales.etl.plan.json`` in the same folder."""
    file = Path(dag_file)
    return file.with_name(f"{file.stem}.{name}.plan.json")


def find_structure(flow: DataflowSpec, dag_file: str) -> Structure:
    """The groups of a dataflow: those of the plan file beside ``dag_file``, else the planner's.

    Raises ``InvalidInput`` for the dataflow only, ``DoesNotFit`` where a step is larger than the declared cluster.
    """
    file = locate_plan_file(dag_file, flow.name)
    if not file.is_file():
        _refuse_unpriced_failures(flow)
        return Structure(_plan_groups(flow))
    try:
        return _read_structure(file, flow.graph.dataflow, flow.settings)
    # Torn, or of another version of the dataflow: it costs time, never a DAG.
    except InvalidInput as error:
        remedy = f"write it anew with `airflow dagsched tune {flow.dag_id}`"
        return Structure(_plan_groups(flow), stale=f"{file} is ignored ({error}): {remedy}")


def _refuse_unpriced_failures(flow: DataflowSpec) -> None:
    """What a failure repeats is priced by runtimes: where nobody says any, the setting would do nothing, silently."""
    if flow.settings.failures_per_hour and not any(step.runtime_s for step in flow.graph.dataflow.steps):
        rule = (
            "needs runtime_s= of its steps, or a plan file: leave it out until `airflow dagsched tune` has written one"
        )
        raise make_flow_error(flow.dag_id, flow.name, rule, "failures_per_hour")


def _plan_groups(flow: DataflowSpec) -> Grouping:
    """As few as can be; where the author says what there is to wait for, or to run on, those that end soonest."""
    dataflow = flow.graph.dataflow
    # The usual case: with nothing to wait for or to repeat, and room for all, fewest groups end soonest.
    if flow.cluster is None and not flow.task_runtimes and not flow.settings.failures_per_hour:
        return find_fewest_groups(dataflow, flow.settings)
    # Late: what other DAGs never need.
    from airflow_dagsched.launch.planning.planned import plan_with
    from airflow_dagsched.plan.passes.select_groups import plan_groups

    plan = plan_with(_gather_facts(flow), plan_groups).plan
    groups = (Grouped(id=one.id, steps=one.steps, after=one.after, reason=one.reason) for one in plan.groups)
    return Grouping(tuple(groups), plan.spills)


def _gather_facts(flow: DataflowSpec) -> Facts:
    """All that a parse knows: what the DAG file says."""
    from airflow_dagsched.launch.planning.facts import Facts, Origin
    from airflow_dagsched.launch.warm.terms import can_stay
    from airflow_dagsched.model.cluster import make_idle

    dataflow, declared = flow.graph.dataflow, flow.declared_cluster
    if declared is not None:
        # Where no application stays each start is a cold one.
        settings = replace(flow.settings, warm=flow.settings.warm and can_stay(declared.manager))
        return Facts(dataflow=dataflow, cluster=make_idle(declared), settings=settings)
    # Which worker a step must be on says nothing of when it can start: of those that there are none is known.
    free = replace(dataflow, steps=tuple(replace(step, pinned=()) for step in dataflow.steps))
    origin = Origin(cluster="assumed")
    return Facts(dataflow=free, cluster=_make_ample_cluster(dataflow), settings=flow.settings, origin=origin)


def _make_ample_cluster(dataflow: Dataflow) -> Cluster:
    """One worker with room for everything at once."""
    from airflow_dagsched.model.cluster import Cluster, Worker

    cores = sum(step.cores * step.parallelism for step in dataflow.steps)
    worker = Worker(id="any", host="any", cores=min(cores, MOST), memory_mb=MOST * 1024)
    return Cluster(manager="local", workers=(worker,))


def _read_structure(file: Path, dataflow: Dataflow, settings: Settings) -> Structure:
    # Late: only a DAG with a plan file beside it needs what reads one.
    from airflow_dagsched.model.codec import read_file
    from airflow_dagsched.plan.plan_types import Plan
    from airflow_dagsched.plan.planned_groups import load_planned_groups

    found = read_file(Plan, file)
    return Structure(load_planned_groups(found, dataflow, settings), found)
