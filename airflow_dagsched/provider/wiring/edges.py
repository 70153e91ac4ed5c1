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
* With ``replan="regroup"`` any launch task may run a step: all mirrors are deferred as soon as the first of them runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import DuplicateTaskIdFound
from msgspec import Struct

from airflow_dagsched.errors import DoesNotFit, InvalidInput
from airflow_dagsched.model.graph import build_graph
from airflow_dagsched.plan.grouping.coarsest import Grouping
from airflow_dagsched.plan.problem.colors import assign_colors
from airflow_dagsched.provider.mirrors.mirror_args import MirrorArgs, StreamArgs, make_stream_args, make_trigger_args
from airflow_dagsched.provider.mirrors.start_gate import StartGate
from airflow_dagsched.provider.spec.dataflow_spec import DataflowSpec, LaunchSpec
from airflow_dagsched.provider.spec.work_dir import parse_local_root
from airflow_dagsched.provider.wiring.launch import LaunchOperator
from airflow_dagsched.provider.wiring.plan_file import Structure, find_structure
from airflow_dagsched.provider.wiring.priority import compute_turns
from airflow_dagsched.provider.wiring.task_runtimes import check_names

if TYPE_CHECKING:
    from airflow.providers.standard.operators.empty import EmptyOperator
    from airflow.sdk import DAG, BaseOperator, TaskGroup
    from airflow.triggers.base import StartTriggerArgs


FLOW_GATE = "launches_started"
"""Label of the gate that shows that some launch task of the dataflow has begun."""


class Head(Struct, frozen=True):
    """What stands before the mirrors of a group."""

    launch: LaunchOperator
    start: StartGate
    inputs: EmptyOperator | None
    """Is done when all above the launch task is; None: there is nothing."""

    @property
    def tasks(self) -> tuple[Any, ...]:
        """Those that there are."""
        return tuple(task for task in (self.launch, self.start, self.inputs) if task is not None)


class Frame(Struct, frozen=True):
    """What is tied together: a dataflow, the task group it is in, and its mirrors."""

    flow: DataflowSpec
    group: TaskGroup
    mirrors: Mapping[str, BaseOperator]
    home: Mapping[str, str]
    """Step -> its group."""

    @property
    def tasks(self) -> Mapping[str, Any]:
        """All tasks of the DAG, by their ids."""
        return self.group.dag.task_dict

    def needs_others(self, step: str) -> bool:
        """Whether the step waits for anything outside of its group."""
        return bool(self.flow.graph.outside[step]) or any(self.list_steps_elsewhere(step))

    def list_steps_elsewhere(self, step: str) -> Iterator[str]:
        """Steps of other groups that are directly above a step."""
        return (up for up in self.flow.graph.upstream[step] if self.home[up] != self.home[step])


class Wiring(Struct, frozen=True):
    """What was added to the DAG for one dataflow; :meth:`undo_wiring` takes all of it away again."""

    flow: DataflowSpec
    dag: DAG
    grouping: Grouping
    launches: dict[str, LaunchOperator]
    edges: tuple[tuple[Any, Any], ...]
    replaced: tuple[tuple[Any, Any], ...]
    """The author's, which lead through ours."""
    tasks: tuple[Any, ...]

    @classmethod
    def of(cls, flow: DataflowSpec, group: TaskGroup, mirrors: Mapping[str, BaseOperator]) -> Wiring:
        """Group the steps of ``flow``, add a launch task a group into the task ``group``, and tie it all together.

        :param mirrors: by the id of their step.
        """
        check_names(flow, group.dag.task_dict)
        found = _find_structure(flow, group.dag.fileloc)
        groups = found.grouping.groups
        frame = Frame(flow, group, mirrors, {step: each.id for each in groups for step in each.steps})
        launches = _make_launches(frame, found)
        waiting = {frame.home[step] for step in mirrors if frame.needs_others(step)}
        heads = {name: _make_head(frame, launch, waits=name in waiting) for name, launch in launches.items()}
        gates: dict[tuple[str, str], EmptyOperator] = {}
        edges = _take_each_once(_list_edges(frame, heads, gates))
        movable = flow.replan == "regroup" and len(launches) > 1
        first = [_make_flow_gate(frame, launches)] if movable else []
        edges += tuple((gate, mirror) for gate in first for mirror in mirrors.values())
        ours = (*(task for head in heads.values() for task in head.tasks), *gates.values(), *first)
        wiring = cls(flow, group.dag, found.grouping, launches, edges, tuple(_list_replaced(frame)), ours)
        wiring.show_edges()
        alike = _find_alike(flow, launches) if movable else {}
        for step, mirror in mirrors.items():
            launch = launches[frame.home[step]].task_id
            mirror.start_trigger_args = _make_mirror_args(flow, launch, step, alike)
        if flow.stream is not None:
            _fill_schedule(flow, flow.stream.fingerprint, group.dag, launches)
        return wiring

    def undo_wiring(self) -> None:
        """Take our edges and tasks out of the DAG."""
        self.hide_edges()
        for task in self.tasks:
            self.dag._remove_task(task.task_id)

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
        # The sets themselves: Airflow adds edges, and has nothing to take one away.
        above.downstream_task_ids.discard(below.task_id)
        below.upstream_task_ids.discard(above.task_id)


def _fill_schedule(flow: DataflowSpec, fingerprint: str, dag: DAG, launches: Mapping[str, LaunchOperator]) -> None:
    """Tell the DAG's schedule, which was made before the steps, of which code the stream is."""
    # Here, since most DAG files have no stream.
    from airflow_dagsched.provider.streaming.stream_epochs import fill_epochs

    (launch,) = launches.values()
    fill_epochs(dag, flow.name, launch.task_id, flow.work_dir, fingerprint)


def _make_mirror_args(
    flow: DataflowSpec, launch: str, step: str, alike: Mapping[str, tuple[str, ...]]
) -> StartTriggerArgs:
    if flow.stream is None:
        return make_trigger_args(MirrorArgs(launch, step, alike.get(launch, ())))
    return make_stream_args(StreamArgs(launch, step, str(parse_local_root(flow.work_dir)), flow.name))


def _find_structure(flow: DataflowSpec, dag_file: str) -> Structure:
    try:
        return find_structure(flow, dag_file)
    except InvalidInput as error:
        raise flow.make_error(error.rule, error.field) from None
    except DoesNotFit as error:
        raise flow.make_error(str(error), "cluster") from None


def _make_launches(frame: Frame, found: Structure) -> dict[str, LaunchOperator]:
    """Group -> its launch task, which is there from now on."""
    flow, tasks = frame.flow, frame.tasks
    # Known before the tasks are made: each is told of all.
    launches = {frame.group.child_id(group.id): group for group in found.grouping.groups}
    skippers = tuple(task_id for task_id in flow.graph.ordinary if tasks[task_id].inherits_from_skipmixin)
    more = compute_turns(flow, found)
    return {
        group.id: _make_launch(
            frame,
            LaunchSpec(flow, group, task_id, launches, skippers, found.stale, found.plan is not None),
            {**more[group.id], **flow.launch_args},
        )
        for task_id, group in launches.items()
    }


def _make_launch(frame: Frame, spec: LaunchSpec, arguments: Mapping[str, Any]) -> LaunchOperator:
    flow, name = frame.flow, spec.group.id
    kind = _choose_operator(flow)
    try:
        launch = kind(task_id=name, spec=spec, task_group=frame.group, dag=frame.group.dag, **arguments)
    except DuplicateTaskIdFound:
        raise flow.make_error(f"a task {name!r} is there already: the launch task needs that id") from None
    except (TypeError, ValueError) as error:
        # What an author gives in launch_args only the operator itself can judge.
        raise flow.make_error(f"its launch task cannot be made: {error}") from None
    if (launch.retries or 0) < 0:
        raise flow.make_error(f"must be 0 or more, not {launch.retries}", "retries")
    return launch


def _choose_operator(flow: DataflowSpec) -> type[LaunchOperator]:
    if flow.stream is None:
        return LaunchOperator
    # Here, since most DAG files have no stream.
    from airflow_dagsched.provider.wiring.stream_launch import StreamLaunchOperator

    return StreamLaunchOperator


def _make_head(frame: Frame, launch: LaunchOperator, *, waits: bool) -> Head:
    start_id, inputs_id = f"{launch.label}_started", f"{launch.label}_inputs"
    # With nothing above but the launch task, ``one_done`` would wait for its end: what begins at once needs no sign.
    rule, group = "one_done" if waits else "always", frame.group
    try:
        start = StartGate(task_id=start_id, launch=launch.task_id, trigger_rule=rule, task_group=group, dag=group.dag)
        return Head(launch, start, _make_gate(group, inputs_id) if waits else None)
    except DuplicateTaskIdFound as error:
        needed = f"{launch.label!r} needs {start_id!r} and {inputs_id!r} for itself"
        raise frame.flow.make_error(f"{error}: {needed}") from None


def _make_flow_gate(frame: Frame, launches: Mapping[str, LaunchOperator]) -> StartGate:
    """Is done when the first launch task of the dataflow has begun: each may run steps of all others.

    Below no task: who clears one of them with what is downstream clears no mirrors of others.
    """
    first, *others = (launch.task_id for launch in launches.values())
    group = frame.group
    try:
        return StartGate(
            task_id=FLOW_GATE, launch=first, others=tuple(others),
            trigger_rule="always", task_group=group, dag=group.dag,
        )  # fmt: skip
    except DuplicateTaskIdFound as error:
        raise frame.flow.make_error(f"{error}: replan='regroup' needs {FLOW_GATE!r} for itself") from None


def _find_alike(flow: DataflowSpec, launches: Mapping[str, LaunchOperator]) -> dict[str, tuple[str, ...]]:
    """Launch task -> those whose steps may share an application with its own, by their ids."""
    graph = build_graph(flow.graph.dataflow)
    colors = dict(zip(graph.ids, assign_colors(graph), strict=True))
    color = {launch.task_id: colors[launch.group.steps[0]] for launch in launches.values()}
    return {mine: tuple(each for each in color if each != mine and color[each] == color[mine]) for mine in color}


def _take_each_once(edges: Iterable[tuple[Any, Any]]) -> tuple[tuple[Any, Any], ...]:
    """Several steps of a group may wait for one task. Told apart by ids: Airflow hashes a task by all its fields."""
    return tuple({(above.task_id, below.task_id): (above, below) for above, below in edges}.values())


def _list_edges(
    frame: Frame, heads: Mapping[str, Head], gates: dict[tuple[str, str], EmptyOperator]
) -> Iterator[tuple[Any, Any]]:
    graph, home = frame.flow.graph, frame.home
    for head in heads.values():
        # Below the launch task, so that whoever clears that with what is downstream clears the gate, too.
        yield head.launch, head.start
        if head.inputs is not None:
            # And below this one, done once the launch task may begin: the gate is deferred before that has ended.
            yield head.inputs, head.start
    for step, mirror in frame.mirrors.items():
        head = heads[home[step]]
        for task_id in graph.outside[step]:
            yield from _list_edges_from_outside(frame, frame.tasks[task_id], head, gates)
        # Root mirrors only: the others are below them by the author's edges, which a clear follows.
        if home[step] not in {home[up] for up in graph.upstream[step]}:
            yield head.launch, mirror
        yield head.start, mirror
        for up in frame.list_steps_elsewhere(step):
            yield frame.mirrors[up], head.launch
            yield frame.mirrors[up], head.inputs


def _list_edges_from_outside(
    frame: Frame, task: Any, head: Head, gates: dict[tuple[str, str], EmptyOperator]
) -> Iterator[tuple[Any, Any]]:
    above = task
    # A branch skips what is directly below it and was not chosen, whatever its trigger rule: a gate takes that.
    if task.inherits_from_skipmixin:
        key = (task.task_id, head.launch.task_id)
        if key not in gates:
            prefix = f"{frame.group.group_id}." if frame.group.prefix_group_id else ""
            gates[key] = _make_gate(frame.group, f"{head.launch.label}_after_{task.task_id.removeprefix(prefix)}")
        above = gates[key]
        yield task, above
    yield above, head.launch
    yield above, head.inputs


def _list_replaced(frame: Frame) -> Iterator[tuple[Any, Any]]:
    """The author's edges to mirrors from outside of their groups."""
    for step, mirror in frame.mirrors.items():
        for task_id in frame.flow.graph.outside[step]:
            yield frame.tasks[task_id], mirror
        for up in frame.list_steps_elsewhere(step):
            yield frame.mirrors[up], mirror


def _make_gate(group: TaskGroup, gate_id: str) -> EmptyOperator:
    from airflow.providers.standard.operators.empty import EmptyOperator

    return EmptyOperator(
        task_id=gate_id,
        # A skipped or failed upstream is no reason not to launch: each step's own rule decides.
        trigger_rule="all_done",
        task_group=group,
        dag=group.dag,
        on_execute_callback=None,  # with one, as default_args may have, it would be run by a worker
        on_success_callback=None,
    )


def hide_from_skippers(dag: DAG, ordinary: Iterable[str], hidden_from: set[str], hide: Callable[[], None]) -> None:
    """A task that skips all below it must skip what the author put there, not what hangs on our edges: while it runs,
    it sees the DAG as ``hide`` leaves it.

    :param ordinary: ids of the ordinary tasks above the dataflow.
    :param hidden_from: those that were taught already; others are added.
    """
    for task_id in ordinary:
        operator: Any = dag.task_dict[task_id]
        # Once: wiring again must not wrap the hook again.
        if operator.inherits_from_skipmixin and task_id not in hidden_from:
            hidden_from.add(task_id)
            operator._pre_execute_hook = _wrap_hook(hide, operator._pre_execute_hook)


def _wrap_hook(hide: Callable[[], None], inner: Any) -> Any:
    def hide_then_run(context: Any) -> None:
        hide()
        if inner is not None:
            inner(context)

    return hide_then_run
