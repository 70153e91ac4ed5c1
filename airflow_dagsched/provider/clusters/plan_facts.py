"""The facts that a run of a dataflow is planned with, as far as DAG file, work folder and cluster say them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from airflow_dagsched.launch.managers.author_sizes import hide_values, name_options
from airflow_dagsched.launch.planning.facts import ONLY, Facts, Origin
from airflow_dagsched.launch.warm.about import FOLDER
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.plan.problem.run import FixedGroup, Policy
from airflow_dagsched.plan.pruning.pruning_input import PruningInput
from airflow_dagsched.plan.settings_file import parse_placement_settings
from airflow_dagsched.provider.spec.configuration import is_planning, read_cache_dir
from airflow_dagsched.provider.spec.flow_code import digest_ways, recall_same_code
from airflow_dagsched.provider.warm.applications import has_warm

if TYPE_CHECKING:
    from airflow_dagsched.provider.spec.dataflow_spec import DataflowSpec, LaunchSpec


class FoundCluster(Struct, frozen=True):
    """A cluster, and who says so."""

    cluster: Cluster
    origin: Literal["declared", "live"]
    room: Literal["whole", "free"]
    """What of each worker counts as free."""


def gather_plan_facts(
    launch: LaunchSpec, found: FoundCluster, connection: str, *, per_step: bool, history: Path | None = None
) -> Facts:
    """All that a plan of a run is made of, but for what only the run knows: its inputs.

    :param connection: whose measured start and bandwidth count.
    :param per_step: each step is submitted by itself, whatever the launch tasks are.
    :param history: file of the history that counts; None: the dataflow's, as it is now.
    """
    flow = launch.flow
    known = recall_same_code(flow, history, digest_ways(flow))
    # What is priced is what a launch would find now, on this machine.
    is_warm = flow.warm_s > 0 and not per_step and has_warm(read_cache_dir() / FOLDER, flow.conn_id)
    settings = replace(flow.settings, warm=is_warm)
    return Facts(
        dataflow=flow.graph.dataflow,
        cluster=found.cluster,
        settings=replace(settings, apart=(), together=()) if per_step else settings,
        policy=Policy(flow.placement, parse_placement_settings(flow.settings, flow.placement_settings), known),
        groups=_fix_units(flow) if per_step else _list_groups(launch),
        history=known,
        connection=connection,
        pruning=PruningInput(mode=flow.prune),
        author={name: hide_values(list_author_settings(flow, name)) for name in flow.steps},
        origin=Origin(
            cluster=found.origin,
            room=found.room,
            groups="run" if per_step else "plan file" if launch.from_file else "dag",
            author=tuple(sorted({**flow.conf, **name_options(flow.authors_args)})),
        ),
    )


def list_author_settings(flow: DataflowSpec, step: str) -> dict[str, Any]:
    """The Spark settings that the author gives the application of a step, templates as they are."""
    return {**flow.conf, **flow.steps[step].declared.application, **name_options(flow.authors_args)}


def runs_per_step(flow: DataflowSpec, asked: str | None = None) -> bool:
    """Whether each step is submitted by itself; ``asked``: what the run's own configuration says, if it does."""
    return (asked or flow.run) == "per_step" or not is_planning()


def read_asked_run(conf: Mapping[str, Any]) -> str | None:
    """How a run's own configuration says it is submitted, if it does."""
    told = conf.get("dagsched")
    return told.get("run") if isinstance(told, Mapping) else None


def _list_groups(launch: LaunchSpec) -> tuple[FixedGroup, ...]:
    return tuple(FixedGroup(one.id, one.steps, one.reason) for one in launch.launches.values())


def _fix_units(flow: DataflowSpec) -> tuple[FixedGroup, ...]:
    """A repeat block is one."""
    units = flow.list_units()
    names = {unit: f"{ONLY}_{unit[0]}" if len(units) > 1 else ONLY for unit in units}
    return tuple(FixedGroup(name, unit, "each step is submitted by itself") for unit, name in names.items())
