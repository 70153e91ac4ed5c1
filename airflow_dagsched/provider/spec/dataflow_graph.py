"""From an Airflow DAG to the planner's dataflow: steps, channels, and the ordinary tasks around them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from airflow_dagsched.launch.protocol.calls import Output
from airflow_dagsched.model.dataflow import PLACEMENT, Channel, Dataflow, Step, Task
from airflow_dagsched.provider.spec.call_arguments import find_source, iterate_leaves, list_operators
from airflow_dagsched.provider.spec.step_declaration import parse_mebibytes

if TYPE_CHECKING:
    from airflow_dagsched.provider.authoring.dataflow import SparkDataflow
    from airflow_dagsched.provider.authoring.steps import StepMirror


class DataflowGraph(Struct, frozen=True):
    """The author's graph around one dataflow. Ids of steps are the dataflow's, of tasks the DAG's."""

    dataflow: Dataflow
    ordinary: tuple[str, ...]
    """Task ids of the ordinary tasks a step waits for, directly or not."""
    inputs: dict[str, tuple[Output, ...]]
    """Datasets each step reads."""
    upstream: dict[str, tuple[str, ...]]
    """Steps directly above each step, by channel or plain edge."""
    outside: dict[str, tuple[str, ...]]
    """Ordinary tasks directly above each step."""
    consumed: dict[str, tuple[str, ...]]
    """Outputs of each step that ordinary tasks take as an argument."""

    @classmethod
    def of(cls, flow: SparkDataflow) -> DataflowGraph:
        """Read the edges of ``flow``'s DAG as they are now (without ours)."""
        steps = {step.task_id: name for name, step in flow.steps.items()}
        ordinary = _find_ordinary_above(flow, steps)
        names = _name_nodes(steps, ordinary)
        inputs = {name: tuple(_list_inputs(flow, step)) for name, step in flow.steps.items()}
        upstream = {
            name: tuple(sorted(steps[t] for t in step.upstream_task_ids if t in steps))
            for name, step in flow.steps.items()
        }
        outside = {
            name: tuple(sorted(t for t in step.upstream_task_ids if t not in steps))
            for name, step in flow.steps.items()
        }
        return cls(
            dataflow=Dataflow(
                version=1,
                name=str(flow.group_id),
                steps=tuple(_build_step(flow, name, step, at) for at, (name, step) in enumerate(flow.steps.items())),
                channels=tuple(_list_channels(flow, inputs)),
                tasks=tuple(Task(id=names[one], runtime_s=flow.task_runtimes.get(one, 0.0)) for one in ordinary),
                dependencies=tuple(_list_dependencies(flow, names, inputs)),
            ),
            ordinary=tuple(ordinary),
            inputs=inputs,
            upstream=upstream,
            outside=outside,
            consumed=_find_consumed_outputs(flow, steps),
        )

    def sort_steps(self) -> tuple[str, ...]:
        """All steps, those above first; ties in the author's order."""
        done: dict[str, None] = {}
        for name in self.upstream:
            self._visit_above(name, done)
        return tuple(done)

    def _visit_above(self, start: str, done: dict[str, None]) -> None:
        """Put ``start`` into ``done`` behind all above it, without recursion."""
        stack = [start]
        while stack:
            waiting = [up for up in self.upstream[stack[-1]] if up not in done]
            if waiting:
                stack.append(waiting[0])
            else:
                done.setdefault(stack.pop())


def replace_with_output(flow: SparkDataflow, value: Any) -> Any:
    """``value`` with the return value of one of ``flow``'s steps replaced by an :class:`Output`."""
    operator, name = find_source(value) or (value, "")
    step_id = flow.step_id(getattr(operator, "task_id", ""))
    return Output(step_id, name) if step_id in flow.steps and flow.steps[step_id] is operator else value


def find_first_input(flow: SparkDataflow, step: StepMirror) -> str | None:
    """The first argument of ``step`` that is the rows of a step; None if none is."""
    arguments = step.arguments.items()
    return next((name for name, value in arguments if isinstance(replace_with_output(flow, value), Output)), None)


def _list_inputs(flow: SparkDataflow, step: StepMirror) -> Iterator[Output]:
    seen = set()
    for leaf in iterate_leaves(step.arguments):
        found = replace_with_output(flow, leaf)
        if isinstance(found, Output):
            if found not in seen:
                yield found
            seen.add(found)
            continue
        ours = [op.task_id for op in list_operators(leaf) if op in flow.steps.values()]
        if ours:
            raise step.make_error(f"takes {ours[0]!r} through .map() or .zip(): rows can only be passed as they are")


def _build_step(flow: SparkDataflow, name: str, mirror: StepMirror, order: int) -> Step:
    declared = mirror.declared
    return Step(
        id=name,
        parallelism=declared.parallelism,
        cores=declared.cores,
        memory_mb=parse_mebibytes(declared.memory),
        disk_mb=parse_mebibytes(declared.disk),
        runtime_s=declared.runtime_s,
        mode=declared.mode,
        stateful=declared.stateful,
        works_without_input=declared.works_without_input,
        needs=declared.needs,
        repeat=any(mirror in block.steps for block in flow.repeats),
        isolate=declared.isolate,
        application=_collect_application_settings(flow, mirror),
        order=order,
    )


def _collect_application_settings(flow: SparkDataflow, mirror: StepMirror) -> dict[str, Any]:
    """Settings equal within one application; the policy that places it is one, where it is not the dataflow's."""
    named = mirror.declared.placement
    return {**mirror.declared.application, **({PLACEMENT: named} if named not in ("", flow.placement) else {})}


def _list_channels(flow: SparkDataflow, inputs: dict[str, tuple[Output, ...]]) -> Iterator[Channel]:
    for name, outputs in inputs.items():
        for output in outputs:
            yield Channel(src=output.step, dst=name, output=output.name)


def _find_ordinary_above(flow: SparkDataflow, steps: dict[str, str]) -> list[str]:
    """Ids of the ordinary tasks that a step waits for, directly or not, in the DAG's order."""
    tasks = flow.dag.task_dict
    found: set[str] = set()
    queue = [task_id for step in flow.steps.values() for task_id in step.upstream_task_ids]
    while queue:
        task_id = queue.pop()
        if task_id in found:
            continue
        if task_id not in steps:
            found.add(task_id)
        queue += [up for up in tasks[task_id].upstream_task_ids if up not in found and up not in steps]
    return [task_id for task_id in tasks if task_id in found]


def _name_nodes(steps: dict[str, str], ordinary: list[str]) -> dict[str, str]:
    """Name of every task in the dataflow: an ordinary task called like a step gets a suffix."""
    taken = set(steps.values())
    return {**steps, **{task_id: f"{task_id}@dag" if task_id in taken else task_id for task_id in ordinary}}


def _list_dependencies(
    flow: SparkDataflow, names: dict[str, str], inputs: dict[str, tuple[Output, ...]]
) -> Iterator[tuple[str, str]]:
    """Edges that carry no rows, between steps and ordinary tasks."""
    channels = {(output.step, name) for name, outputs in inputs.items() for output in outputs}
    for task_id, name in names.items():
        for up in sorted(flow.dag.task_dict[task_id].upstream_task_ids):
            if up in names and (names[up], name) not in channels:
                yield names[up], name
    for block in flow.repeats:
        yield from _close_ring([names[step.task_id] for step in block.steps])


def _close_ring(ids: list[str]) -> Iterator[tuple[str, str]]:
    """Edges that put all of ``ids`` on one cycle: a composite step."""
    if len(ids) > 1:
        yield from zip(ids, [*ids[1:], ids[0]], strict=True)


def _find_consumed_outputs(flow: SparkDataflow, steps: dict[str, str]) -> dict[str, tuple[str, ...]]:
    """Which outputs ordinary tasks take: they must be stored, for a path means nothing without its rows."""
    wanted: dict[str, set[str]] = {}
    readers = {t for step in flow.steps.values() for t in step.downstream_task_ids if t not in steps}
    for task_id in readers:
        task = flow.dag.task_dict[task_id]
        values = [getattr(task, field, None) for field in task.template_fields]
        for leaf in iterate_leaves(values):
            found = replace_with_output(flow, leaf)
            if isinstance(found, Output):
                wanted.setdefault(found.step, set()).add(found.name)
    return {step: tuple(sorted(names)) for step, names in wanted.items()}
