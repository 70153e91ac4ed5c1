"""What an author declared, frozen once the ``with`` block has ended: all that wiring, launch and mirrors know of it.

::

    SparkDataflow ──declares──> DataflowSpec ──> wiring (tasks and edges), runtime (a try of a launch), commands
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.model.codec import read_file

if TYPE_CHECKING:
    from airflow_dagsched.launch.protocol.calls import Output
    from airflow_dagsched.launch.streams.settings import StreamSettings
    from airflow_dagsched.model.cluster import Cluster
    from airflow_dagsched.plan.grouping.coarsest import Grouped
    from airflow_dagsched.plan.settings import Mode, Settings
    from airflow_dagsched.provider.spec.channel_declaration import DeclaredChannel
    from airflow_dagsched.provider.spec.dataflow_graph import DataflowGraph
    from airflow_dagsched.provider.spec.step_declaration import Declared
    from airflow_dagsched.provider.spec.stream_spec import StreamSpec


Replan = Literal["off", "sizes", "regroup"]


class FlowSettings(Struct, frozen=True, kw_only=True, dict=True):  # dict: for the cached property
    """The arguments of a dataflow, checked; see ``SparkDataflow`` for what each means."""

    conn_id: str
    work_dir: str
    """Folder of this machine: as the author named it, else Airflow's."""
    cluster: str | Path | Cluster | None
    run: Literal["planned", "per_step"]
    conf: Mapping[str, str]
    prune: Mode
    pruned: Literal["success", "skipped"]
    replan: Replan
    settings: Settings
    """The planner's, with what the policies' settings say of sizes."""
    task_runtimes: Mapping[str, float]
    placement: str
    placement_settings: Mapping[str, Any]
    pool_cores: int | None
    lease_s: float
    stall_s: float
    warm_s: float
    """Seconds that an application stays when its group has ended; 0: none does."""
    keep_columns: Literal["used", "all"]
    launch_args: Mapping[str, Any]
    """Arguments of the launch tasks, as the author gave them to the dataflow."""
    authors_args: Mapping[str, Any]
    """The same, with what ``default_args`` of dataflow and DAG say beside them."""
    streaming: StreamSettings | None
    """What the author says of a stream; None: its steps read what is there, and end."""

    @cached_property
    def declared_cluster(self) -> Cluster | None:
        """The cluster that ``cluster=`` names, if it does; raises :class:`InvalidInput` for a file that is none."""
        # A file is read when somebody needs it: in a parse that plans for it, or on the worker of a launch.
        if not isinstance(self.cluster, str | Path):
            return self.cluster
        # Most dataflows declare none: a parse of theirs need not load what reads one.
        from airflow_dagsched.model.cluster import Cluster

        return read_file(Cluster, self.cluster)


class AuthoredStep(Struct, frozen=True):
    """One step, as its author wrote it down."""

    id: str
    """Inside the dataflow."""
    task_id: str
    """Of its mirror, in the DAG."""
    dag_id: str
    function: Callable[..., Any] | None
    arguments: Mapping[str, Any]
    """By name; the rows of other steps are :class:`~airflow_dagsched.launch.protocol.calls.Output`."""
    sql: str | None
    declared: Declared
    outlets: tuple[Any, ...]
    """The author's assets, beside the table that it writes."""
    channels: Mapping[Output, DeclaredChannel]
    """What is said of the channels that it reads."""

    def make_error(self, rule: str, field: str = "") -> InvalidInput:
        """An error about this step, naming DAG and step."""
        return InvalidInput(f"DAG {self.dag_id!r}, step {self.task_id!r}", field, rule)


class RepeatBlock(Struct, frozen=True):
    """Steps that run again and again, one composite step. Steps are named by their ids inside the dataflow."""

    id: str
    steps: tuple[str, ...]
    until: Callable[..., Any] | None
    max_iterations: int
    feedback: Mapping[str, str]
    """``step.parameter`` -> the step whose last output it gets; empty: the first step's first input, the last step's
    output.
    """


class DataflowSpec(FlowSettings, frozen=True, kw_only=True, dict=True):
    """One dataflow of one DAG: its settings, its steps, and the author's graph around them."""

    name: str
    """Id of its task group, and the first part of the ids of its tasks."""
    dag_id: str
    steps: Mapping[str, AuthoredStep]
    """In the author's order."""
    repeats: tuple[RepeatBlock, ...]
    graph: DataflowGraph
    stream: StreamSpec | None
    """None: its steps end."""

    def map_repeat_blocks(self) -> dict[str, tuple[str, ...]]:
        """Step -> all steps of its repeat block, for steps that are in one."""
        return {name: block.steps for block in self.repeats for name in block.steps}

    def list_units(self, steps: Iterable[str] | None = None) -> tuple[tuple[str, ...], ...]:
        """What no submit separates, in topological order: of these steps, of all if none are given."""
        inside, blocks = None if steps is None else set(steps), self.map_repeat_blocks()
        ordered = (name for name in self.graph.sort_steps() if inside is None or name in inside)
        return tuple(dict.fromkeys(blocks.get(name, (name,)) for name in ordered))

    def make_error(self, rule: str, field: str = "") -> InvalidInput:
        """An error about this dataflow, naming its DAG."""
        return make_flow_error(self.dag_id, self.name, rule, field)


class LaunchSpec(Struct, frozen=True):
    """One launch task: the group that it runs, and what is around it."""

    flow: DataflowSpec
    group: Grouped
    task_id: str
    launches: Mapping[str, Grouped]
    """Task id -> group, of all launch tasks of the dataflow."""
    skippers: tuple[str, ...]
    """Ordinary tasks above the dataflow that may skip what is below them."""
    stale: str
    """Why the plan file beside the DAG file is ignored; empty: it is not, or there is none."""
    from_file: bool = False
    """Whether the groups are the plan file's."""


def make_flow_error(dag_id: str, name: str, rule: str, field: str = "") -> InvalidInput:
    """An error about a dataflow, also one that is only being declared."""
    return InvalidInput(f"DAG {dag_id!r}, dataflow {name!r}", field, rule)
