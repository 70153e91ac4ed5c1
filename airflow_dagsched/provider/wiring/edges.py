"""Launch tasks, and the edges that tie them into the author's DAG.

::

    fetch ─┬─► launch ─┬────────────────► flights* ──► clean* ──► publish     * mirrors
           │           └► launch_started ────┴───────────┘
           └► launch_inputs ─┘
    branch ─► launch_after_branch ─► launch, launch_inputs      a branch would skip the launch task itself

* Every ordinary task above a step of a group is above its launch task, which has the trigger rule
  ``all_done`` and applies each step's own rule by itself.
* A task that skips what is below it (branch, short circuit) must not skip the launch task: its edge goes
  through a gate, and while it runs it sees the author's graph without our edges.
* A group's launch task is above its root mirrors, and below the mirrors of other groups it reads from.
* Mirrors wait until their launch task runs, and for nothing else: for a gate that shows it. With the rule ``one_done``
  they are then deferred all at once, however deep. So the author's edges from outside of the group to a mirror are
  taken out: that rule would heed the first of them. They lead through launch task and gates.
* The gate is below the launch task, so that whoever clears that clears it too; and, to be deferred before that ends,
  below another one that has the launch task's upstreams.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import DuplicateTaskIdFound
from msgspec import Struct

from airflow_dagsched.errors import DoesNotFit, InvalidInput
from airflow_dagsched.plan.grouping.coarsest import Grouped, Grouping
from airflow_dagsched.provider.mirrors.mirror_args import make_trigger_args
from airflow_dagsched.provider.mirrors.start_gate import StartGate
from airflow_dagsched.provider.spec.dataflow_graph import DataflowGraph
from airflow_dagsched.provider.wiring.launch import LaunchOperator
from airflow_dagsched.provider.wiring.plan_file import Structure, find_structure
from airflow_dagsched.provider.wiring.priority import compute_turns
from airflow_dagsched.provider.wiring.task_runtimes import check_names

if TYPE_CHECKING:
    from airflow.providers.standard.operators.empty import EmptyOperator

    from airflow_dagsched.provider.authoring.dataflow import SparkDataflow


class Head(Struct, frozen=True):
    """What stands before the mirrors of a group."""

    launch: LaunchOperator
    start: StartGate
    inputs: EmptyOperator | None
    """Is done when all above the launch task is; None: there is nothing."""

    @property
    def tasks(self) -> tuple[Any, ...]:
        return tuple(task for task in (self.launch, self.start, self.inputs) if task is not None)


class Wiring(Struct, frozen=True):
    """What was added to the DAG for one dataflow; :meth:`undo` takes all of it away again."""

    flow: SparkDataflow
    graph: DataflowGraph
    grouping: Grouping
    launches: dict[str, LaunchOperator]
    edges: tuple[tuple[Any, Any], ...]
    replaced: tuple[tuple[Any, Any], ...]
    """The author's, which lead through ours."""
    tasks: tuple[Any, ...]
    stale: str
    """Why the plan file beside the DAG file is ignored; empty: it is not, or there is none."""

    @classmethod
    def of(cls, flow: SparkDataflow) -> Wiring:
        """Group the steps of ``flow``, add a launch task a group, and tie it all together."""
        check_names(flow)
        graph = DataflowGraph.of(flow)
        found = _find_structure(flow, graph)
        grouping, more = found.grouping, compute_turns(flow, graph.dataflow, found)
        home = {step: group.id for group in grouping.groups for step in group.steps}
        launches = {group.id: _make_launch(flow, graph, group, more[group.id]) for group in grouping.groups}
        waiting = {home[step] for step in flow.steps if _has_outside_upstream(graph, home, step)}
        heads = {name: _make_head(flow, launch, waits=name in waiting) for name, launch in launches.items()}
        gates: dict[tuple[str, str], EmptyOperator] = {}
        edges = tuple(dict.fromkeys(_list_edges(flow, graph, home, heads, gates)))
        replaced = tuple(_list_replaced_edges(flow, graph, home))
        ours = (*(task for head in heads.values() for task in head.tasks), *gates.values())
        wiring = cls(flow, graph, grouping, launches, edges, replaced, ours, found.stale)
        wiring.show_edges()
        _set_mirror_triggers(flow, grouping, launches)
        _hide_from_skippers(flow, graph)
        return wiring

    def undo_wiring(self) -> None:
        """Take our edges and tasks out of the DAG."""
        self.hide_edges()
        for task in self.tasks:
            self.flow.dag._remove_task(task.task_id)

    def hide_edges(self) -> None:
        """Leave the author's edges in the graph of this process; the scheduler has its own copy."""
        _cut_edges(self.edges)
        _tie_edges(self.replaced)

    def show_edges(self) -> None:
        """Put ours in their place."""
        _cut_edges(self.replaced)
        _tie_edges(self.edges)


def _tie_edges(edges: Iterable[tuple[Any, Any]]) -> None:
    for above, below in edges:
        above.downstream_task_ids.add(below.task_id)
        below.upstream_task_ids.add(above.task_id)


def _cut_edges(edges: Iterable[tuple[Any, Any]]) -> None:
    for above, below in edges:
        above.downstream_task_ids.discard(below.task_id)
        below.upstream_task_ids.discard(above.task_id)


def _find_structure(flow: SparkDataflow, graph: DataflowGraph) -> Structure:
    try:
        return find_structure(flow, graph.dataflow)
    except InvalidInput as error:
        raise flow.make_error(error.rule, error.field) from None
    except DoesNotFit as error:
        raise flow.make_error(str(error), "cluster") from None


def _make_launch(flow: SparkDataflow, graph: DataflowGraph, group: Grouped, more: dict[str, Any]) -> LaunchOperator:
    arguments = {**more, **flow.launch_args}
    try:
        launch = LaunchOperator(
            task_id=group.id, flow=flow, graph=graph, group=group, task_group=flow, dag=flow.dag, **arguments
        )
    except DuplicateTaskIdFound:
        raise flow.make_error(f"a task {group.id!r} is there already: the launch task needs that id") from None
    except (TypeError, ValueError) as error:
        raise flow.make_error(f"its launch task cannot be made: {error}") from None
    if (launch.retries or 0) < 0:
        raise flow.make_error(f"must be 0 or more, not {launch.retries}", "retries")
    return launch


def _make_head(flow: SparkDataflow, launch: LaunchOperator, *, waits: bool) -> Head:
    start_id, inputs_id = f"{launch.label}_started", f"{launch.label}_inputs"
    rule = "one_done" if waits else "always"
    try:
        start = StartGate(task_id=start_id, launch=launch.task_id, trigger_rule=rule, task_group=flow, dag=flow.dag)
        return Head(launch, start, _make_gate(flow, inputs_id) if waits else None)
    except DuplicateTaskIdFound as error:
        raise flow.make_error(f"{error}: {launch.label!r} needs {start_id!r} and {inputs_id!r} for itself") from None


def _has_outside_upstream(graph: DataflowGraph, home: dict[str, str], step: str) -> bool:
    """Whether the step waits for anything outside of its group."""
    return bool(graph.outside[step]) or any(home[up] != home[step] for up in graph.upstream[step])


def _list_edges(
    flow: SparkDataflow,
    graph: DataflowGraph,
    home: dict[str, str],
    heads: dict[str, Head],
    gates: dict[tuple[str, str], EmptyOperator],
) -> Iterator[tuple[Any, Any]]:
    for head in heads.values():
        yield head.launch, head.start
        if head.inputs is not None:
            yield head.inputs, head.start
    for step, mirror in flow.steps.items():
        head, above = heads[home[step]], graph.upstream[step]
        for task_id in graph.outside[step]:
            yield from _list_outside_edges(flow, flow.dag.task_dict[task_id], head, gates)
        if home[step] not in {home[up] for up in above}:
            yield head.launch, mirror
        yield head.start, mirror
        for up in above:
            if home[up] != home[step]:
                yield flow.steps[up], head.launch
                yield flow.steps[up], head.inputs


def _list_outside_edges(
    flow: SparkDataflow, task: Any, head: Head, gates: dict[tuple[str, str], EmptyOperator]
) -> Iterator[tuple[Any, Any]]:
    above = task
    if task.inherits_from_skipmixin:
        key = (task.task_id, head.launch.task_id)
        if key not in gates:
            gates[key] = _make_gate(flow, f"{head.launch.label}_after_{flow.step_id(task.task_id)}")
        above = gates[key]
        yield task, above
    yield above, head.launch
    yield above, head.inputs


def _list_replaced_edges(flow: SparkDataflow, graph: DataflowGraph, home: dict[str, str]) -> Iterator[tuple[Any, Any]]:
    """The author's edges to mirrors from outside of their groups."""
    for step, mirror in flow.steps.items():
        for task_id in graph.outside[step]:
            yield flow.dag.task_dict[task_id], mirror
        for up in graph.upstream[step]:
            if home[up] != home[step]:
                yield flow.steps[up], mirror


def _make_gate(flow: SparkDataflow, gate_id: str) -> EmptyOperator:
    from airflow.providers.standard.operators.empty import EmptyOperator

    return EmptyOperator(
        task_id=gate_id,
        trigger_rule="all_done",
        task_group=flow,
        dag=flow.dag,
        on_execute_callback=None,  # with one, as default_args may have, it would be run by a worker
        on_success_callback=None,
    )


def _set_mirror_triggers(flow: SparkDataflow, grouping: Grouping, launches: dict[str, LaunchOperator]) -> None:
    for group in grouping.groups:
        for step in group.steps:
            flow.steps[step].start_trigger_args = make_trigger_args(launches[group.id].task_id, step)


def _hide_from_skippers(flow: SparkDataflow, graph: DataflowGraph) -> None:
    """A task that skips all below it must skip what the author put there, not what hangs on our edges."""
    for task_id in graph.ordinary:
        operator: Any = flow.dag.task_dict[task_id]
        if operator.inherits_from_skipmixin and task_id not in flow.hidden_from:
            flow.hidden_from.add(task_id)
            operator._pre_execute_hook = _wrap_hook(flow, operator._pre_execute_hook)


def _wrap_hook(flow: SparkDataflow, inner: Any) -> Any:
    def hide_then_run(context: Any) -> None:
        flow.hide_our_edges()
        if inner is not None:
            inner(context)

    return hide_then_run
