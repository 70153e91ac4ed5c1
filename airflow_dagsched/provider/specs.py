"""Steps of one submit as the driver program sees them, and how each is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_dagsched.launch.calls import Call, ContextValue, Output
from airflow_dagsched.launch.code import fingerprint, location
from airflow_dagsched.launch.manifest import Repeat, StepSpec
from airflow_dagsched.launch.outcome import hopeless
from airflow_dagsched.provider.calls import optional, transform
from airflow_dagsched.provider.graph import DataflowGraph, first_input, placeholder

if TYPE_CHECKING:
    from airflow_dagsched.provider.dataflow import RepeatBlock, SparkDataflow
    from airflow_dagsched.provider.facts import RunFacts
    from airflow_dagsched.provider.steps import StepMirror

NO_CALL = Call(None)
"""Of a step that will not run: its arguments may not exist."""


@dataclass(frozen=True)
class Submit:
    """What is to run: some steps of a dataflow, in one run."""

    flow: SparkDataflow
    graph: DataflowGraph
    targets: tuple[str, ...]
    """In topological order."""
    facts: RunFacts
    render: Callable[[Any], Any]
    """Templates and return values of ordinary tasks, as they are in this run."""
    roots: tuple[Path, ...]
    """Folders of the DAG bundle."""
    states: Mapping[str, str] = field(default_factory=dict)
    """How steps of other submits ended."""
    datasets: Mapping[str, str] = field(default_factory=dict)
    """``step/output`` -> path of what other submits of this run committed."""
    empty: frozenset[str] = frozenset()
    """``step/output`` of what other submits of this run left without rows."""


@dataclass(frozen=True)
class Parts:
    """The steps of a submit and all above them."""

    specs: tuple[StepSpec, ...]
    calls: Mapping[str, Call]
    repeats: tuple[Repeat, ...]


def parts_of(submit: Submit) -> Parts:
    """The steps to run, in topological order, with those above them, which run only if their data is gone.

    Raises :class:`InvalidInput` for a step whose arguments this run does not have.
    """
    flow, order = submit.flow, _with_ancestors(submit)
    blank = {name: _spec(submit, name) for name in order}
    dead = hopeless(blank[name] for name in order if name in submit.targets)
    calls = {name: NO_CALL if name in dead else _call(submit, flow.steps[name]) for name in order}
    blocks = [block for block in flow.repeats if flow.step_id(block.steps[0].task_id) in order]
    untils = {f"repeat:{block.id}": Call(block.until) for block in blocks if block.until is not None}
    specs = tuple(_coded(submit, blank[name], calls[name]) for name in order)
    return Parts(specs, {**calls, **untils}, tuple(_repeat(flow, block) for block in blocks))


def _with_ancestors(submit: Submit) -> tuple[str, ...]:
    needed, queue = set(submit.targets), list(submit.targets)
    while queue:
        above = {output.step for output in submit.graph.inputs[queue.pop()]} - needed
        needed |= above
        queue += above
    return tuple(name for name in submit.graph.topological() if name in needed)


def _spec(submit: Submit, name: str) -> StepSpec:
    step, target = submit.flow.steps[name], name in submit.targets
    return StepSpec(
        id=name,
        code="",
        inputs=submit.graph.inputs[name],
        upstream=tuple(up for up in submit.graph.upstream[name] if up in submit.targets) if target else (),
        outside=_outside(submit, name) if target else {},
        skipped_by=submit.facts.skipped.get(step.task_id, "") if target else "",
        rule=step.declared.rule,
        reads=step.declared.read_tables,
        writes=step.declared.writes,
        store=_stored(submit, name),
        works_without_input=step.declared.works_without_input,
        force=_forced(submit, step),
        repeat=next((block.id for block in submit.flow.repeats if step in block.steps), ""),
    )


def _coded(submit: Submit, spec: StepSpec, call: Call) -> StepSpec:
    """``spec`` with the fingerprint of its rendered call."""
    untils = [block.until for block in submit.flow.repeats if spec.repeat == block.id]
    arguments = {name: _as_in_this_run(submit, value) for name, value in call.kwargs.items()}
    code = fingerprint([call.function or call.sql, *untils], arguments, submit.roots)
    return replace(spec, code=code, takes_session="spark" in call.kwargs, location=location(call.function))


def _as_in_this_run(submit: Submit, value: Any) -> Any:
    """What the step will see: its rows depend on it. The interval is in the key of whatever is committed."""
    if isinstance(value, ContextValue) and value.name not in ("spark", "interval"):
        return (value.name, submit.facts.context.get(value.name))
    return value


def _call(submit: Submit, step: StepMirror) -> Call:
    arguments = transform(step.arguments, lambda leaf: placeholder(submit.flow, leaf))
    kept = {name: value for name, value in arguments.items() if not _absent(submit, step, value)}
    try:
        rendered = transform(kept, lambda leaf: _rendered(submit, leaf))
        sql = None if step.sql is None else submit.render(step.sql)
    except Exception as error:
        raise step.invalid(f"an argument cannot be rendered: {type(error).__name__}: {error}") from error
    return Call(step.function, (), rendered, sql)


def _rendered(submit: Submit, leaf: Any) -> Any:
    return leaf if isinstance(leaf, (Output, ContextValue)) else submit.render(leaf)


def _absent(submit: Submit, step: StepMirror, value: Any) -> bool:
    """Whether the run lacks the context value and the parameter has a default; lacking both is an error."""
    facts = submit.facts
    if not isinstance(value, ContextValue) or value.name == "spark" or value.name in facts.context:
        return False
    if value.name == "interval" and facts.interval.start is not None:
        return False
    if step.function is not None and value.name in optional(step.function):
        return True
    raise step.invalid(
        f"asks for {value.name!r}, but run {facts.run_id!r} has no date: trigger it with a logical date "
        f"(or a partition), or give the parameter a default"
    )


def _outside(submit: Submit, name: str) -> dict[str, str]:
    """How everything directly above the step ended that is not in this submit."""
    graph, facts, states = submit.graph, submit.facts, submit.states
    ordinary = {task_id: facts.states.get(task_id, "success") for task_id in graph.outside[name]}
    steps = {
        up: states.get(up) or facts.states.get(submit.flow.steps[up].task_id, "success")
        for up in graph.upstream[name]
        if up not in submit.targets
    }
    return {**ordinary, **steps}


def _stored(submit: Submit, name: str) -> tuple[str, ...]:
    """Outputs with a reader outside this submit; what a table holds is not stored again."""
    others = (inputs for other, inputs in submit.graph.inputs.items() if other not in submit.targets)
    readers = {output.name for inputs in others for output in inputs if output.step == name}
    wanted = readers | set(submit.graph.consumed.get(name, ()))
    return tuple(sorted(wanted - {""} if submit.flow.steps[name].declared.writes is not None else wanted))


def _forced(submit: Submit, step: StepMirror) -> bool:
    """A person cleared the step: its mirror is open although the run was cleared."""
    return submit.facts.clear_number > 0 and submit.facts.states.get(step.task_id) != "success"


def _repeat(flow: SparkDataflow, block: RepeatBlock) -> Repeat:
    ids = tuple(flow.step_id(step.task_id) for step in block.steps)
    feedback = {name: flow.step_id(step.task_id) for name, step in block.feedback.items()}
    return Repeat(block.id, ids, block.max_iterations, feedback or _default_feedback(flow, block, ids))


def _default_feedback(flow: SparkDataflow, block: RepeatBlock, ids: tuple[str, ...]) -> dict[str, str]:
    """The last step's output goes back into the first step's first input."""
    return {f"{ids[0]}.{first_input(flow, block.steps[0])}": ids[-1]}
