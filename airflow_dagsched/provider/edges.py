"""Launch tasks, and the edges that tie them into the author's DAG.

::

    fetch ──► launch ──► flights* ──► clean* ──► publish        * mirrors, the author's edges between them
    branch ─► after_branch ─► launch                            a branch would skip the launch task itself

* Every ordinary task above a step of a group is above its launch task, which has the trigger rule
  ``all_done`` and applies each step's own rule by itself.
* A task that skips what is below it (branch, short circuit) must not skip the launch task: its edge goes
  through a gate, and while it runs it sees the author's graph without our edges.
* A group's launch task is above its root mirrors, and below the mirrors of other groups it reads from.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import DuplicateTaskIdFound
from msgspec import Struct

from airflow_dagsched.errors import DoesNotFit, InvalidInput
from airflow_dagsched.plan.groups import Grouped, Grouping
from airflow_dagsched.provider.graph import DataflowGraph
from airflow_dagsched.provider.launch import LaunchOperator
from airflow_dagsched.provider.mirror_args import trigger_args
from airflow_dagsched.provider.plan_file import Structure, structure
from airflow_dagsched.provider.priority import turns

if TYPE_CHECKING:
    from airflow.providers.standard.operators.empty import EmptyOperator

    from airflow_dagsched.provider.dataflow import SparkDataflow


class Wiring(Struct, frozen=True):
    """What was added to the DAG for one dataflow; :meth:`undo` takes all of it away again."""

    flow: SparkDataflow
    graph: DataflowGraph
    grouping: Grouping
    launches: dict[str, LaunchOperator]
    edges: tuple[tuple[Any, Any], ...]
    tasks: tuple[Any, ...]
    stale: str
    """Why the plan file beside the DAG file is ignored; empty: it is not, or there is none."""

    @classmethod
    def of(cls, flow: SparkDataflow) -> Wiring:
        """Group the steps of ``flow``, add a launch task a group, and tie it all together."""
        graph = DataflowGraph.of(flow)
        found = _structure(flow, graph)
        grouping, more = found.grouping, turns(flow, graph.dataflow, found)
        launches = {group.id: _launch(flow, graph, group, more[group.id]) for group in grouping.groups}
        gates: dict[tuple[str, str], EmptyOperator] = {}
        edges = tuple(dict.fromkeys(_edges(flow, graph, grouping, launches, gates)))
        wiring = cls(flow, graph, grouping, launches, edges, (*launches.values(), *gates.values()), found.stale)
        wiring.show_edges()
        _direct_mirrors(flow, grouping, launches)
        _hide_from_skippers(flow, graph)
        return wiring

    def undo(self) -> None:
        """Take our edges and tasks out of the DAG."""
        self.hide_edges()
        for task in self.tasks:
            self.flow.dag._remove_task(task.task_id)

    def hide_edges(self) -> None:
        """Take our edges out of the graph in this process; the scheduler has its own copy."""
        for above, below in self.edges:
            above.downstream_task_ids.discard(below.task_id)
            below.upstream_task_ids.discard(above.task_id)

    def show_edges(self) -> None:
        """Put them back."""
        for above, below in self.edges:
            above.downstream_task_ids.add(below.task_id)
            below.upstream_task_ids.add(above.task_id)


def _structure(flow: SparkDataflow, graph: DataflowGraph) -> Structure:
    try:
        return structure(flow, graph.dataflow)
    except InvalidInput as error:
        raise flow.invalid(error.rule, error.field) from None
    except DoesNotFit as error:
        raise flow.invalid(str(error), "cluster") from None


def _launch(flow: SparkDataflow, graph: DataflowGraph, group: Grouped, more: dict[str, Any]) -> LaunchOperator:
    arguments = {**more, **flow.launch_args}
    try:
        return LaunchOperator(
            task_id=group.id, flow=flow, graph=graph, group=group, task_group=flow, dag=flow.dag, **arguments
        )
    except DuplicateTaskIdFound:
        raise flow.invalid(f"a task {group.id!r} is there already: the launch task needs that id") from None


def _edges(
    flow: SparkDataflow,
    graph: DataflowGraph,
    grouping: Grouping,
    launches: dict[str, LaunchOperator],
    gates: dict[tuple[str, str], EmptyOperator],
) -> Iterator[tuple[Any, Any]]:
    home = {step: group.id for group in grouping.groups for step in group.steps}
    for group in grouping.groups:
        launch = launches[group.id]
        for step in group.steps:
            for task_id in graph.outside[step]:
                yield from _from_outside(flow, flow.dag.task_dict[task_id], launch, gates)
            above = [home[up] for up in graph.upstream[step]]
            if group.id not in above:
                yield launch, flow.steps[step]
            for up in graph.upstream[step]:
                if home[up] != group.id:
                    yield flow.steps[up], launch


def _from_outside(
    flow: SparkDataflow, task: Any, launch: LaunchOperator, gates: dict[tuple[str, str], EmptyOperator]
) -> Iterator[tuple[Any, Any]]:
    if not task.inherits_from_skipmixin:
        yield task, launch
        return
    key = (task.task_id, launch.task_id)
    if key not in gates:
        gates[key] = _gate(flow, f"{launch.label}_after_{flow.step_id(task.task_id)}")
    yield task, gates[key]
    yield gates[key], launch


def _gate(flow: SparkDataflow, gate_id: str) -> EmptyOperator:
    from airflow.providers.standard.operators.empty import EmptyOperator

    return EmptyOperator(task_id=gate_id, trigger_rule="all_done", task_group=flow, dag=flow.dag)


def _direct_mirrors(flow: SparkDataflow, grouping: Grouping, launches: dict[str, LaunchOperator]) -> None:
    for group in grouping.groups:
        for step in group.steps:
            flow.steps[step].start_trigger_args = trigger_args(launches[group.id].task_id, step)


def _hide_from_skippers(flow: SparkDataflow, graph: DataflowGraph) -> None:
    """A task that skips all below it must skip what the author put there, not what hangs on our edges."""
    for task_id in graph.ordinary:
        operator: Any = flow.dag.task_dict[task_id]
        if operator.inherits_from_skipmixin and task_id not in flow.hidden_from:
            flow.hidden_from.add(task_id)
            operator._pre_execute_hook = _hiding(flow, operator._pre_execute_hook)


def _hiding(flow: SparkDataflow, inner: Any) -> Any:
    def hide_then_run(context: Any) -> None:
        flow.hide_our_edges()
        if inner is not None:
            inner(context)

    return hide_then_run
