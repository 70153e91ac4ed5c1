"""``SparkDataflow``: a task group whose Spark steps run as few applications as can be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from airflow.sdk import TaskGroup
from airflow.sdk.definitions.mappedoperator import MappedOperator

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.provider.edges import Wiring
from airflow_dagsched.provider.graph import DataflowGraph

if TYPE_CHECKING:
    from airflow_dagsched.launch.interval import Interval
    from airflow_dagsched.model.cluster import Cluster
    from airflow_dagsched.model.dataflow import Dataflow
    from airflow_dagsched.plan.groups import Grouping
    from airflow_dagsched.provider.launch import LaunchOperator
    from airflow_dagsched.provider.steps import StepMirror

SPARK_OPERATORS = "airflow.providers.apache.spark."
"""Operators from here start Spark by themselves: they cannot stand among steps."""


@dataclass(frozen=True, slots=True)
class RepeatBlock:
    """Steps that run again and again, one composite step."""

    id: str
    steps: tuple[StepMirror, ...]
    until: Callable[..., Any] | None
    max_iterations: int
    feedback: Mapping[str, StepMirror]


class SparkDataflow(TaskGroup):
    """Group of Spark steps, planned together.

    :param name: group id; also the first part of the ids of its tasks.
    :param conn_id: Airflow connection of type ``spark``.
    :param work_dir: folder for manifests, events, commits and datasets handed from one application to another;
        it must be readable by Airflow's workers and by the driver program.
    :param cluster: path of a cluster file (or a ``Cluster``), where the plan shall be cut to fit it.
    :param run: ``"planned"`` or ``"per_step"`` (one spark-submit a step: for debugging and comparing).
    :param conf: Spark settings for every application.
    :param slots: most steps side by side in one application.
    :param lease_s: seconds after which an output whose writer died may be written by another.
    :param launch_args: everything else a task takes (pool, queue, retries, execution_timeout, default_args,
        priority_weight, ...): for the launch tasks, never for the mirrors.
    """

    def __init__(
        self,
        name: str,
        *,
        conn_id: str = "spark_default",
        work_dir: str | None = None,
        cluster: str | Cluster | None = None,
        run: Literal["planned", "per_step"] = "planned",
        conf: Mapping[str, str] | None = None,
        slots: int = 4,
        lease_s: float = 60.0,
        tooltip: str = "",
        doc_md: str | None = None,
        prefix_group_id: bool = True,
        **launch_args: Any,
    ) -> None:
        super().__init__(group_id=name, tooltip=tooltip, doc_md=doc_md, prefix_group_id=prefix_group_id)
        if run not in ("planned", "per_step"):
            raise self._invalid(f"run must be 'planned' or 'per_step', not {run!r}", "run")
        self.conn_id = conn_id
        self.cluster = cluster
        self.run = run
        self.conf = dict(conf or {})
        self.slots = slots
        self.lease_s = lease_s
        self.launch_args = launch_args
        self._work_dir = work_dir
        self.steps: dict[str, StepMirror] = {}
        self.repeats: list[RepeatBlock] = []
        self.hidden_from: set[str] = set()
        """Skipping tasks that were taught not to see our edges."""
        self._wiring: Wiring | None = None
        self._busy = False

    @cached_property
    def work_dir(self) -> str:
        """As given, else ``[dagsched] work_dir``, else ``dagsched`` in Airflow's home."""
        from airflow.sdk.configuration import conf

        if self._work_dir:
            return self._work_dir
        configured = conf.get("dagsched", "work_dir", fallback="")
        return configured or str(Path(conf.get("core", "dags_folder")).parent / "dagsched")

    # What the steps call while the author writes them down

    def adopt(self, step: StepMirror) -> None:
        """Take in a step made inside this dataflow."""
        self.steps[self.step_id(step.task_id)] = step

    def step_id(self, task_id: str) -> str:
        """Id of a step inside the dataflow: its task id without the group's own part."""
        prefix = f"{self.group_id}."
        return task_id.removeprefix(prefix) if self.prefix_group_id else task_id

    def edges_changed(self) -> None:
        """An edge was made; after the ``with`` block that means wiring again."""
        if self._wiring is not None and not self._busy:
            self._wire()

    def launches(self) -> tuple[LaunchOperator, ...]:
        """The launch tasks, one a group."""
        return tuple(self._wiring.launches.values()) if self._wiring else ()

    def hide_our_edges(self) -> None:
        """Leave only the author's edges in this process (the scheduler has its own copy of the DAG)."""
        if self._wiring is not None:
            self._wiring.hide_edges()

    def repeat(
        self,
        steps: Sequence[Any],
        *,
        until: Callable[..., Any] | None = None,
        max_iterations: int,
        feedback: Mapping[str, Any] | None = None,
    ) -> None:
        """Make ``steps`` one composite step that runs until ``until`` is true.

        :param steps: return values of the steps, in the order they run in one iteration.
        :param until: gets, by name, the last outputs of the steps it asks for (DataFrames or plain values).
        :param max_iterations: at most so many.
        :param feedback: ``{"step.parameter": step}``: from the second iteration on the parameter is that step's
            last output. Left out: the last step's output goes back into the first step's first input.
        """
        members = tuple(_mirror_of(step) for step in steps)
        if max_iterations < 1 or not members:
            raise self._invalid("repeat needs steps and max_iterations of at least 1", "repeat")
        back = {name: _mirror_of(step) for name, step in (feedback or {}).items()}
        block = RepeatBlock(self.step_id(members[0].task_id), members, until, max_iterations, back)
        self.repeats.append(block)

    # The planner's view

    @property
    def graph(self) -> DataflowGraph:
        """Steps, channels and the ordinary tasks around them, as they are now."""
        return DataflowGraph.of(self)

    @property
    def dataflow(self) -> Dataflow:
        """The dataflow as the planner reads it."""
        return self.graph.dataflow

    @property
    def grouping(self) -> Grouping:
        """The groups the launch tasks stand for."""
        assert self._wiring is not None, "the groups are known after the with block"
        return self._wiring.grouping

    def run_local(
        self, interval: Interval | None = None, inputs: Mapping[str, Any] | None = None, *, spark: Any = None
    ) -> dict[str, Any]:
        """Run the steps in this process, without Airflow: for unit tests.

        :param inputs: results by step or task id, instead of running it (DataFrames, or plain values).
        :returns: what each step returned, by step id. Tables are not written.
        """
        from airflow_dagsched.provider.rehearsal import run_local

        return run_local(self, interval, inputs or {}, spark)

    # TaskGroup

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        try:
            if exc_type is None:
                self._check_children()
                self._wire()
        finally:
            super().__exit__(exc_type, exc_value, traceback)

    def update_relative(self, other: Any, upstream: bool = True, edge_modifier: Any = None) -> None:
        """``task >> flow``: the author means the steps, so the root (or last) steps get the edge."""
        if self._wiring is None or self._busy:
            super().update_relative(other, upstream, edge_modifier)
            return
        with self._quietly():
            self._wiring.undo()
        super().update_relative(other, upstream, edge_modifier)
        self._wire()

    def set_upstream(self, task_or_task_list: Any, edge_modifier: Any = None) -> None:
        self._around(lambda: super(SparkDataflow, self).set_upstream(task_or_task_list, edge_modifier))

    def set_downstream(self, task_or_task_list: Any, edge_modifier: Any = None) -> None:
        self._around(lambda: super(SparkDataflow, self).set_downstream(task_or_task_list, edge_modifier))

    def _around(self, make_edges: Callable[[], None]) -> None:
        """Make the author's edges on the author's graph alone, then wire again."""
        if self._wiring is None or self._busy:
            make_edges()
            return
        with self._quietly():
            self._wiring.undo()
            make_edges()
        self._wire()

    def _quietly(self) -> _Quiet:
        return _Quiet(self)

    def _wire(self) -> None:
        with self._quietly():
            if self._wiring is not None:
                self._wiring.undo()
            self._wiring = Wiring.of(self)

    def _check_children(self) -> None:
        if not self.steps:
            raise self._invalid("has no step: write @task.spark_step functions and call them inside the with block")
        for task in self.iter_tasks():
            kind = task.operator_class if isinstance(task, MappedOperator) else type(task)
            module = getattr(kind, "__module__", "")
            if module.startswith(SPARK_OPERATORS):
                raise self._invalid(
                    f"{task.task_id!r} is a {kind.__name__}, which starts Spark by itself: write it as a step "
                    "(@task.spark_step, SparkSqlStep) or move it out of the with block"
                )

    def _invalid(self, rule: str, field: str = "") -> InvalidInput:
        return InvalidInput(f"DAG {self.dag.dag_id!r}, dataflow {self.group_id!r}", field, rule)


class _Quiet:
    """Our own edges are no reason to wire again."""

    def __init__(self, flow: SparkDataflow) -> None:
        self.flow = flow

    def __enter__(self) -> None:
        self.before, self.flow._busy = self.flow._busy, True

    def __exit__(self, *_: Any) -> None:
        self.flow._busy = self.before


def enclosing_dataflow(step: StepMirror) -> SparkDataflow:
    """The dataflow ``step`` was made in; raises :class:`InvalidInput` outside of one."""
    group = step.task_group
    while group is not None and not isinstance(group, SparkDataflow):
        group = group.parent_group
    if group is None:
        raise step.invalid("a Spark step must be made inside `with SparkDataflow(...)`")
    return group


def _mirror_of(value: Any) -> StepMirror:
    mirror: StepMirror = getattr(value, "operator", value)
    return mirror
