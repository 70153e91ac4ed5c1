"""From an Airflow DAG to a frozen dataflow: steps, channels, and the ordinary tasks around them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.launch.protocol.calls import Output
from airflow_dagsched.model.dataflow import PINNED, PLACEMENT, Dataflow, Step, Task
from airflow_dagsched.provider.authoring.read_channels import build_channel
from airflow_dagsched.provider.authoring.steps import StepMirror
from airflow_dagsched.provider.spec.call_arguments import find_source, iterate_leaves, list_operators, transform_leaves
from airflow_dagsched.provider.spec.channel_declaration import DeclaredChannel
from airflow_dagsched.provider.spec.dataflow_graph import DataflowGraph
from airflow_dagsched.provider.spec.dataflow_spec import (
    AuthoredStep,
    DataflowSpec,
    FlowSettings,
    RepeatBlock,
    make_flow_error,
)
from airflow_dagsched.provider.spec.step_declaration import parse_mebibytes

if TYPE_CHECKING:
    from airflow.sdk import DAG

Mirrors = Mapping[str, StepMirror]
"""By the id of their step inside the dataflow."""


class DeclaredFlow(Struct, frozen=True):
    """What a dataflow has been told so far, while its ``with`` block is open."""

    settings: FlowSettings
    name: str
    dag: DAG
    mirrors: Mirrors
    repeats: tuple[RepeatBlock, ...]

    def make_error(self, rule: str, field: str = "") -> InvalidInput:
        """An error about this dataflow, naming its DAG."""
        return make_flow_error(self.dag.dag_id, self.name, rule, field)


def read_dataflow(flow: DeclaredFlow) -> DataflowSpec:
    """The dataflow with the edges of its DAG as they are now (without ours)."""
    steps = {step_id: read_step(step_id, mirror, flow.mirrors) for step_id, mirror in flow.mirrors.items()}
    graph = _read_graph(flow, steps)
    spec = DataflowSpec(
        **{field: getattr(flow.settings, field) for field in flow.settings.__struct_fields__},
        name=flow.name,
        dag_id=flow.dag.dag_id,
        steps=steps,
        repeats=flow.repeats,
        graph=graph,
        stream=None,
    )
    return spec if flow.settings.streaming is None else _add_stream(spec, flow)


def _add_stream(spec: DataflowSpec, flow: DeclaredFlow) -> DataflowSpec:
    """``spec`` with its stream, planned as one group."""
    # Here: most dataflows are none, and a DAG file is parsed every few seconds.
    from airflow_dagsched.provider.authoring.streams.read_stream import read_stream

    stream = read_stream(spec, flow.mirrors, flow.dag)
    return replace(spec, stream=stream, settings=replace(spec.settings, together=(tuple(spec.steps),)))


def read_step(step_id: str, mirror: StepMirror, mirrors: Mirrors) -> AuthoredStep:
    """The step of ``mirror``, with placeholders for the rows of others among ``mirrors``."""
    return AuthoredStep(
        id=step_id,
        task_id=mirror.task_id,
        dag_id=mirror.dag.dag_id,
        function=mirror.function,
        arguments=replace_rows(mirror.arguments, mirrors),
        sql=mirror.sql,
        declared=mirror.declared,
        outlets=tuple(mirror.step_outlets),
        channels=_name_channels(mirror, mirrors),
    )


def _name_channels(mirror: StepMirror, mirrors: Mirrors) -> dict[Output, DeclaredChannel]:
    """What is said of the channels from others among ``mirrors``."""
    if not mirror.channels:
        return {}
    names = {other.task_id: step_id for step_id, other in mirrors.items()}
    return {_replace_leaf(value, names, mirrors): declared for value, declared in mirror.channels}


def replace_rows(arguments: Mapping[str, Any], mirrors: Mirrors) -> dict[str, Any]:
    """``arguments`` with the return value of each of ``mirrors`` replaced by an :class:`Output`."""
    names = {mirror.task_id: step_id for step_id, mirror in mirrors.items()}
    return {
        key: transform_leaves(value, lambda leaf: _replace_leaf(leaf, names, mirrors))
        for key, value in arguments.items()
    }


def _replace_leaf(value: Any, names: Mapping[str, str], mirrors: Mirrors) -> Any:
    operator, output = find_source(value) or (value, "")
    step_id = names.get(operator.task_id) if isinstance(operator, StepMirror) else None
    # By identity: an ordinary task, or a step of another dataflow, may be called like a step of this one.
    return Output(step_id, output) if step_id is not None and mirrors[step_id] is operator else value


def _read_graph(flow: DeclaredFlow, steps: Mapping[str, AuthoredStep]) -> DataflowGraph:
    dag, mirrors = flow.dag, flow.mirrors
    step_ids = {mirror.task_id: step_id for step_id, mirror in mirrors.items()}
    ordinary = _find_ordinary_above(dag, mirrors, step_ids)
    names = _name_nodes(step_ids, ordinary)
    inputs = {step_id: tuple(_list_inputs(step, mirrors)) for step_id, step in steps.items()}
    blocks = {name: block.steps for block in flow.repeats for name in block.steps}
    return DataflowGraph(
        dataflow=Dataflow(
            version=1,
            name=flow.name,
            steps=tuple(_build_step(flow, step, at) for at, step in enumerate(steps.values())),
            channels=tuple(
                build_channel(steps, output, step_id, blocks)
                for step_id, outputs in inputs.items()
                for output in outputs
            ),
            tasks=tuple(
                Task(id=names[each], runtime_s=flow.settings.task_runtimes.get(each, 0.0)) for each in ordinary
            ),
            dependencies=tuple(_list_dependencies(flow, names, inputs)),
        ),
        ordinary=tuple(ordinary),
        inputs=inputs,
        upstream={
            step_id: tuple(sorted(step_ids[up] for up in mirror.upstream_task_ids if up in step_ids))
            for step_id, mirror in mirrors.items()
        },
        outside={
            step_id: tuple(sorted(up for up in mirror.upstream_task_ids if up not in step_ids))
            for step_id, mirror in mirrors.items()
        },
        consumed=_find_consumed(dag, mirrors, step_ids),
        channels={step_id: step.channels for step_id, step in steps.items() if step.channels},
    )


def _list_inputs(step: AuthoredStep, mirrors: Mirrors) -> Iterator[Output]:
    """Datasets that the arguments of ``step`` stand for, each once."""
    seen = set()
    for leaf in iterate_leaves(step.arguments):
        if isinstance(leaf, Output):
            if leaf not in seen:
                yield leaf
            seen.add(leaf)
            continue
        # Of ``.map()`` or ``.zip()`` no plain return value is left, but the operators it refers to.
        ours = [operator.task_id for operator in list_operators(leaf) if operator in mirrors.values()]
        if ours:
            raise step.make_error(f"takes {ours[0]!r} through .map() or .zip(): rows can only be passed as they are")


def _build_step(flow: DeclaredFlow, step: AuthoredStep, order: int) -> Step:
    declared = step.declared
    named, pinned = declared.placement, tuple(sorted(set(declared.pinned)))
    return Step(
        id=step.id,
        parallelism=declared.instances,
        cores=declared.cores,
        memory_mb=parse_mebibytes(declared.memory),
        disk_mb=parse_mebibytes(declared.disk),
        runtime_s=declared.runtime_s,
        # Also of a stream: its state is partitioned into tasks that run in waves, as those of any batch do.
        mode="batch",
        # But it is somewhere: so the placement policy that knows state places them.
        stateful=declared.stateful,
        works_without_input=declared.works_without_input,
        needs=declared.needs,
        repeat=any(step.id in block.steps for block in flow.repeats),
        isolate=declared.isolate,
        # Settings equal within one application: the policy that places it is one, where it is not the dataflow's; and
        # so are the hosts of its executors, as Spark sends tasks to any of them.
        application={
            **declared.application,
            **({PLACEMENT: named} if named not in ("", flow.settings.placement) else {}),
            **({PINNED: " ".join(pinned)} if pinned else {}),
        },
        pinned=pinned,
        weight=declared.weight,
        writes=(declared.writes.key,) if declared.writes is not None else (),
        order=order,
    )


def _find_ordinary_above(dag: DAG, mirrors: Mirrors, step_ids: Mapping[str, str]) -> list[str]:
    """Ids of the ordinary tasks that a step waits for, directly or not, in the DAG's order."""
    tasks = dag.task_dict
    found: set[str] = set()
    queue = [task_id for mirror in mirrors.values() for task_id in mirror.upstream_task_ids]
    while queue:
        task_id = queue.pop()
        if task_id in found:
            continue
        if task_id not in step_ids:
            found.add(task_id)
        # A step ends the walk: what is above that one is found from itself.
        queue += [up for up in tasks[task_id].upstream_task_ids if up not in found and up not in step_ids]
    return [task_id for task_id in tasks if task_id in found]  # a set has another order in each process


def _name_nodes(step_ids: Mapping[str, str], ordinary: list[str]) -> dict[str, str]:
    """Name of every task in the dataflow: an ordinary task called like a step gets a suffix."""
    # Ids of steps, tasks and groups share one namespace in the planner's files.
    taken = set(step_ids.values())
    return {**step_ids, **{task_id: f"{task_id}@dag" if task_id in taken else task_id for task_id in ordinary}}


def _list_dependencies(
    flow: DeclaredFlow, names: Mapping[str, str], inputs: Mapping[str, tuple[Output, ...]]
) -> Iterator[tuple[str, str]]:
    """Edges that carry no rows, between steps and ordinary tasks."""
    channels = {(output.step, name) for name, outputs in inputs.items() for output in outputs}
    for task_id, name in names.items():
        for up in sorted(flow.dag.task_dict[task_id].upstream_task_ids):
            if up in names and (names[up], name) not in channels:
                yield names[up], name
    for block in flow.repeats:
        # A ring puts all of a block on one cycle, which the planner merges into one composite step.
        if len(block.steps) > 1:
            yield from zip(block.steps, [*block.steps[1:], block.steps[0]], strict=True)


def _find_consumed(dag: DAG, mirrors: Mirrors, step_ids: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Which outputs ordinary tasks take: they must be stored, for a path means nothing without its rows."""
    wanted: dict[str, set[str]] = {}
    # Only those directly below: who takes a return value as an argument gets an edge from Airflow.
    readers = {task_id for mirror in mirrors.values() for task_id in mirror.downstream_task_ids - step_ids.keys()}
    for task_id in readers:
        task = dag.task_dict[task_id]
        for leaf in iterate_leaves([getattr(task, field, None) for field in task.template_fields]):
            found = _replace_leaf(leaf, step_ids, mirrors)
            if isinstance(found, Output):
                wanted.setdefault(found.step, set()).add(found.name)
    return {step: tuple(sorted(names)) for step, names in wanted.items()}
