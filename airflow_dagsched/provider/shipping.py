"""A group of a dataflow, in one run, as the driver program gets it: manifest and payload.

The manifest holds no argument and no function; those are in the payload, pickled by value, which lives in
a private file until the driver has read it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cloudpickle

import airflow_dagsched
from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.launch.code import fingerprint, location
from airflow_dagsched.launch.manifest import Call, ContextValue, Manifest, Output, Repeat, StepSpec
from airflow_dagsched.launch.outcome import hopeless
from airflow_dagsched.provider.calls import optional, transform
from airflow_dagsched.provider.graph import DataflowGraph, placeholder

if TYPE_CHECKING:
    from airflow_dagsched.provider.dataflow import SparkDataflow
    from airflow_dagsched.provider.facts import RunFacts
    from airflow_dagsched.provider.steps import StepMirror


@dataclass(frozen=True, slots=True)
class Paths:
    """Where one try keeps its files."""

    folder: str
    events: str
    manifest: str
    payload: str


@dataclass(frozen=True)
class Parts:
    """Steps as the driver sees them, and how each is called."""

    specs: tuple[StepSpec, ...]
    calls: Mapping[str, Call]
    repeats: tuple[Repeat, ...]


@dataclass(frozen=True)
class Shipment:
    """What one submit needs."""

    manifest: Manifest
    payload: bytes


NO_CALL = Call(None)
"""Of a step that will not run: its arguments may not exist."""
Render = Any
"""``render(value)``: templates and return values of ordinary tasks, as they are in this run."""


def ship(
    flow: SparkDataflow,
    graph: DataflowGraph,
    group: str,
    targets: tuple[str, ...],
    facts: RunFacts,
    paths: Paths,
    render: Render,
    *,
    roots: tuple[Path, ...],
    slots: int,
    datasets: Mapping[str, str],
    states: Mapping[str, str],
) -> Shipment:
    """Manifest and payload for ``targets``, a subset of the steps in topological order.

    :param datasets: ``step/output`` -> path of what other applications of this run committed.
    :param states: how steps outside ``targets`` ended, by step id.
    Raises :class:`InvalidInput` for a step whose arguments cannot be had or shipped.
    """
    parts = _parts(flow, graph, targets, facts, render, roots, states)
    manifest = Manifest(
        package_version=airflow_dagsched.__version__,
        python=f"{sys.version_info.major}.{sys.version_info.minor}",
        dag_id=facts.dag_id,
        dataflow=str(flow.group_id),
        group=group,
        run_id=facts.run_id,
        try_number=facts.try_number,
        clear_number=facts.clear_number,
        work_dir=flow.work_dir,
        events=paths.events,
        payload=paths.payload,
        interval_key=facts.interval.key,
        interval_start=_iso(facts.interval.start),
        interval_end=_iso(facts.interval.end),
        context=dict(facts.context),
        datasets=dict(datasets),
        targets=targets,
        steps=parts.specs,
        repeats=parts.repeats,
        slots=slots,
        lease_s=flow.lease_s,
        launcher_pid=os.getpid(),
    )
    return Shipment(manifest, _payload(flow, parts.calls, roots))


def plain_parts(
    flow: SparkDataflow, graph: DataflowGraph, facts: RunFacts, render: Render, roots: tuple[Path, ...]
) -> Parts:
    """All steps of ``flow`` as one application, without paths: for a run in this process."""
    return _parts(flow, graph, topological(graph), facts, render, roots, {})


def _parts(
    flow: SparkDataflow,
    graph: DataflowGraph,
    targets: tuple[str, ...],
    facts: RunFacts,
    render: Render,
    roots: tuple[Path, ...],
    states: Mapping[str, str],
) -> Parts:
    order = _with_ancestors(flow, graph, targets)
    blank = {name: _spec(flow, graph, name, targets, facts, states) for name in order}
    dead = hopeless(blank[name] for name in order if name in targets)
    calls = {name: NO_CALL if name in dead else _call(flow, flow.steps[name], facts, render) for name in order}
    specs = tuple(_coded(flow, blank[name], calls[name], roots) for name in order)
    blocks = [block for block in flow.repeats if flow.step_id(block.steps[0].task_id) in order]
    untils = {f"repeat:{block.id}": Call(block.until) for block in blocks if block.until is not None}
    return Parts(specs, {**calls, **untils}, tuple(_repeat(flow, block) for block in blocks))


def _coded(flow: SparkDataflow, spec: StepSpec, call: Call, roots: tuple[Path, ...]) -> StepSpec:
    """``spec`` with the fingerprint of its rendered call."""
    code = fingerprint(call.function or call.sql, dict(call.kwargs), roots)
    return replace(spec, code=code, takes_session="spark" in call.kwargs, location=location(call.function))


def _with_ancestors(flow: SparkDataflow, graph: DataflowGraph, targets: tuple[str, ...]) -> tuple[str, ...]:
    """``targets`` and all steps above them, in topological order."""
    needed, queue = set(targets), list(targets)
    while queue:
        above = {output.step for output in graph.inputs[queue.pop()]} - needed
        needed |= above
        queue += above
    return tuple(name for name in topological(graph) if name in needed)


def topological(graph: DataflowGraph) -> tuple[str, ...]:
    """All steps, those above first; ties in the author's order."""
    done: dict[str, None] = {}

    def visit(start: str) -> None:
        stack = [(start, iter(graph.upstream[start]))]
        while stack:
            name, above = stack[-1]
            following = next((up for up in above if up not in done), None)
            if following is None:
                done[name] = None
                stack.pop()
            else:
                stack.append((following, iter(graph.upstream[following])))

    for name in graph.upstream:
        if name not in done:
            visit(name)
    return tuple(done)


def _call(flow: SparkDataflow, step: StepMirror, facts: RunFacts, render: Render) -> Call:
    arguments = transform(step.arguments, lambda leaf: placeholder(flow, leaf))  # type: ignore[attr-defined]
    kept = {name: value for name, value in arguments.items() if not _absent(step, value, facts)}
    try:
        rendered = transform(kept, lambda leaf: leaf if isinstance(leaf, (Output, ContextValue)) else render(leaf))
        sql = render(step.sql) if step.sql is not None else None  # type: ignore[attr-defined]
    except Exception as error:
        raise step.invalid(f"an argument cannot be rendered: {type(error).__name__}: {error}") from error
    return Call(step.function, (), rendered, sql)  # type: ignore[attr-defined]


def _absent(step: StepMirror, value: Any, facts: RunFacts) -> bool:
    """Whether the run lacks the context value and the parameter has a default; lacking both is an error."""
    if not isinstance(value, ContextValue) or value.name == "spark" or value.name in facts.context:
        return False
    if value.name == "interval" and facts.interval.start is not None:
        return False
    if value.name in optional(step.function):  # type: ignore[attr-defined]
        return True
    raise step.invalid(
        f"asks for {value.name!r}, but run {facts.run_id!r} has no date: trigger it with a logical date "
        f"(or a partition), or give the parameter a default"
    )


def _spec(
    flow: SparkDataflow,
    graph: DataflowGraph,
    name: str,
    targets: tuple[str, ...],
    facts: RunFacts,
    states: Mapping[str, str],
) -> StepSpec:
    step = flow.steps[name]
    target = name in targets
    return StepSpec(
        id=name,
        code="",
        inputs=graph.inputs[name],
        upstream=tuple(up for up in graph.upstream[name] if up in targets) if target else (),
        outside=_outside(flow, graph, name, targets, facts, states) if target else {},
        skipped_by=facts.skipped.get(step.task_id, "") if target else "",
        rule=step.declared.rule,
        reads=step.declared.read_tables,
        writes=step.declared.writes,
        store=_stored(graph, name, targets, step),
        works_without_input=step.declared.works_without_input,
        force=_forced(step, facts),
        repeat=next((block.id for block in flow.repeats if step in block.steps), ""),
    )


def _outside(
    flow: SparkDataflow,
    graph: DataflowGraph,
    name: str,
    targets: tuple[str, ...],
    facts: RunFacts,
    states: Mapping[str, str],
) -> dict[str, str]:
    """How everything directly above the step ended that is not in this application."""
    ordinary = {task_id: facts.states.get(task_id, "success") for task_id in graph.outside[name]}
    steps = {
        up: states.get(up) or facts.states.get(flow.steps[up].task_id, "success")
        for up in graph.upstream[name]
        if up not in targets
    }
    return {**ordinary, **steps}


def _stored(graph: DataflowGraph, name: str, targets: tuple[str, ...], step: StepMirror) -> tuple[str, ...]:
    """Outputs with a reader outside this application; what a table holds is not stored again."""
    readers = {output.name for other, inputs in graph.inputs.items() if other not in targets for output in inputs if output.step == name}
    wanted = readers | set(graph.consumed.get(name, ()))
    return tuple(sorted(wanted - {""} if step.declared.writes is not None else wanted))


def _forced(step: StepMirror, facts: RunFacts) -> bool:
    """A person cleared the step: its mirror is open again although the run was cleared only since."""
    return facts.clear_number > 0 and facts.states.get(step.task_id) != "success"


def _repeat(flow: SparkDataflow, block: Any) -> Repeat:
    ids = tuple(flow.step_id(step.task_id) for step in block.steps)
    feedback = {name: flow.step_id(step.task_id) for name, step in block.feedback.items()}
    return Repeat(block.id, ids, block.max_iterations, feedback or _default_feedback(flow, block, ids))


def _default_feedback(flow: SparkDataflow, block: Any, ids: tuple[str, ...]) -> dict[str, str]:
    """The last step's output goes back into the first step's first input."""
    arguments = block.steps[0].arguments
    first = next((name for name, value in arguments.items() if isinstance(placeholder(flow, value), Output)), None)
    if first is None:
        raise block.steps[0].invalid("repeat: the first step takes no rows to feed back; say which with feedback=")
    return {f"{ids[0]}.{first}": ids[-1]}


def _payload(flow: SparkDataflow, calls: Mapping[str, Call], roots: tuple[Path, ...]) -> bytes:
    with _by_value(roots):
        return cloudpickle.dumps({name: _pickle(flow, name, call) for name, call in calls.items()})


def _pickle(flow: SparkDataflow, name: str, call: Call) -> bytes:
    try:
        return cloudpickle.dumps(call)
    except Exception as error:
        where = f"DAG {flow.dag.dag_id!r}, step {name!r}"
        rule = f"its function or an argument cannot be shipped to the driver program: {type(error).__name__}: {error}"
        raise InvalidInput(where, "", rule) from error


@contextmanager
def _by_value(roots: tuple[Path, ...]) -> Any:
    """Pickle functions of the DAG bundle's modules by value: the cluster does not have them."""
    known = cloudpickle.list_registry_pickle_by_value()
    found = {module.__name__: module for module in list(sys.modules.values()) if _in_bundle(module, roots)}
    modules = [module for name, module in found.items() if name not in known]
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in modules:
            cloudpickle.unregister_pickle_by_value(module)


def _in_bundle(module: Any, roots: Iterable[Path]) -> bool:
    file = getattr(module, "__file__", None)
    if not isinstance(file, str) or "site-packages" in file or module.__name__.partition(".")[0] == "airflow_dagsched":
        return False
    return any(Path(file).is_relative_to(root) for root in roots)


def _iso(moment: Any) -> str | None:
    return moment.isoformat() if moment is not None else None
