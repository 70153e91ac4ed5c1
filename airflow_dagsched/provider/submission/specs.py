"""Steps of one submit as the driver program sees them, and how each is called."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk.definitions.xcom_arg import XComArg

from airflow_dagsched.launch.managers.author_conf import find_settings_mistake
from airflow_dagsched.launch.protocol.calls import ContextValue, Handed, Output
from airflow_dagsched.launch.protocol.manifest import Repeat, StepSpec, hash_content
from airflow_dagsched.launch.protocol.payload import Call
from airflow_dagsched.launch.secrecy.masking import Masking
from airflow_dagsched.launch.steps.code import Uses, locate_function, read_code
from airflow_dagsched.launch.steps.dated import find_dated, find_shared
from airflow_dagsched.launch.steps.outcome import find_hopeless
from airflow_dagsched.launch.steps.row_settings import select_row_settings
from airflow_dagsched.launch.steps.sql_facts import has_declared_reads_only
from airflow_dagsched.launch.steps.static import may_hold_session, may_vary
from airflow_dagsched.provider.spec.call_arguments import (
    DATED_NAMES,
    iterate_leaves,
    list_optional_names,
    transform_leaves,
)
from airflow_dagsched.provider.spec.dataflow_graph import find_first_input
from airflow_dagsched.provider.submission.secrets import collect_secrets

if TYPE_CHECKING:
    from airflow_dagsched.provider.spec.dataflow_spec import AuthoredStep, DataflowSpec, RepeatBlock
    from airflow_dagsched.provider.spec.run_facts import RunFacts

NO_CALL = Call(None)
"""Of a step that will not run: its arguments may not exist."""


@dataclass(frozen=True)
class Submit:
    """What is to run: some steps of a dataflow, in one run."""

    flow: DataflowSpec
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
    ways: Mapping[str, str] = field(default_factory=dict)
    """Step -> digest of the code that says which columns of its outputs are read."""
    narrow: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    """Step -> output -> the columns that are worth storing, where not all are."""
    where: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    """Step -> output -> what the rows fulfil that are worth storing, as SQL, where not all are."""


@dataclass(frozen=True)
class Parts:
    """The steps of a submit and all above them."""

    specs: tuple[StepSpec, ...]
    calls: Mapping[str, Call]
    repeats: tuple[Repeat, ...]


def build_parts(submit: Submit) -> Parts:
    """The steps to run, in topological order, with those above them, which run only if their data is gone.

    Raises :class:`InvalidInput` for a step whose arguments this run does not have.
    """
    flow, order = submit.flow, _add_ancestors(submit)
    # Without fingerprints at first: who will not run needs none, and its arguments may not exist.
    blank = {name: _build_spec(submit, name) for name in order}
    dead = find_hopeless(blank[name] for name in order if name in submit.targets)
    calls = {name: NO_CALL if name in dead else _build_call(submit, flow.steps[name]) for name in order}
    blocks = [block for block in flow.repeats if block.steps[0] in order]
    # A repeat's condition is the author's code as well: shipped like a call.
    untils = {f"repeat:{block.id}": Call(block.until) for block in blocks if block.until is not None}
    specs = tuple(_add_fingerprint(submit, blank[name], calls[name]) for name in order)
    # Only there other runs want the same of steps that do not depend on the interval.
    if submit.facts.backfill:
        specs = _add_shared(submit, specs)
    return Parts(specs, {**calls, **untils}, tuple(_build_repeat(flow, block) for block in blocks))


def describe_parts(submit: Submit) -> Parts:
    """The steps as far as they can be told before the run: without arguments, with what SQL can be rendered."""
    specs = tuple(_build_spec(submit, name) for name in submit.targets)
    calls = {name: Call(None, sql=_try_sql(submit, submit.flow.steps[name].sql)) for name in submit.targets}
    return Parts(specs, calls, ())


def _try_sql(submit: Submit, sql: str | None) -> str | None:
    try:
        return None if sql is None else str(submit.render(sql))
    except Exception:  # noqa: BLE001 - whatever it is: what the run alone can say is not known yet
        return None


def render_author_settings(submit: Submit) -> dict[str, str]:
    """Spark settings as the author wants them in this run: the dataflow's ``conf``, then the ``application`` of the
    steps, which is equal in all of a group.

    Raises :class:`InvalidInput` for one that cannot be rendered, or that is none then.
    """
    return _render_settings(submit, submit.flow.steps[submit.targets[0]])


def _merge_settings(flow: DataflowSpec, step: AuthoredStep) -> dict[str, Any]:
    return {**flow.conf, **step.declared.application}


def _render_settings(submit: Submit, step: AuthoredStep) -> dict[str, str]:
    flow = submit.flow
    try:
        rendered = submit.render(_merge_settings(flow, step))
    except Exception as error:
        raise flow.make_error(f"a setting cannot be rendered: {type(error).__name__}: {error}", "conf") from error
    mistake = find_settings_mistake(rendered, rendered=True)
    if mistake:
        raise flow.make_error(f"as rendered, {mistake}", "conf")
    return {str(name): str(value) for name, value in rendered.items()}


def _digest_settings(submit: Submit, step: AuthoredStep) -> str:
    """Digest of the settings that may be in the step's rows, as anybody may see them."""
    # Masked first: a short secret could be guessed from a digest of it, and a step that could tell one from another
    # counts as dated anyway.
    settings = _render_settings(submit, step)
    masking = Masking()
    masking.add(collect_secrets(settings))
    shown = masking.value(select_row_settings(settings))
    return hash_content(json.dumps(shown, sort_keys=True).encode())


def _add_shared(submit: Submit, specs: tuple[StepSpec, ...]) -> tuple[StepSpec, ...]:
    """The steps, with what the other runs of a backfill need of them too."""
    rendered = [spec.id for spec in specs if _is_rendered(submit, submit.flow.steps[spec.id])]
    shared = find_shared(specs, find_dated(specs, also=rendered))
    return tuple(replace(spec, share=shared.get(spec.id, ())) for spec in specs)


def _is_rendered(submit: Submit, step: AuthoredStep) -> bool:
    """Whether an argument or a setting is a template, or an ordinary task's: it may be another value in each run."""
    settings = select_row_settings(_merge_settings(submit.flow, step))
    return any(
        isinstance(leaf, XComArg) or (isinstance(leaf, str) and ("{{" in leaf or "{%" in leaf))
        for leaf in iterate_leaves([step.arguments, step.sql, settings])
    )


def _add_ancestors(submit: Submit) -> tuple[str, ...]:
    needed, queue = set(submit.targets), list(submit.targets)
    while queue:
        above = {output.step for output in submit.flow.graph.inputs[queue.pop()]} - needed
        needed |= above
        queue += above
    return tuple(name for name in submit.flow.graph.sort_steps() if name in needed)


def _build_spec(submit: Submit, name: str) -> StepSpec:
    step, target = submit.flow.steps[name], name in submit.targets
    return StepSpec(
        id=name,
        code="",
        inputs=submit.flow.graph.inputs[name],
        routed=_list_routed(submit, name),
        upstream=tuple(up for up in submit.flow.graph.upstream[name] if up in submit.targets) if target else (),
        outside=_collect_outside_states(submit, name) if target else {},
        skipped_by=submit.facts.skipped.get(step.task_id, "") if target else "",
        rule=step.declared.rule,
        reads=step.declared.read_tables,
        writes=step.declared.writes,
        store=_list_stored_outputs(submit, name),
        works_without_input=step.declared.works_without_input,
        way=submit.ways.get(name, ""),
        narrow=submit.narrow.get(name, {}) if target else {},
        where=submit.where.get(name, {}) if target else {},
        force=_is_forced(submit, step),
        repeat=next((block.id for block in submit.flow.repeats if name in block.steps), ""),
    )


def _add_fingerprint(submit: Submit, spec: StepSpec, call: Call) -> StepSpec:
    """``spec`` with the fingerprint of its rendered call."""
    untils = [block.until for block in submit.flow.repeats if spec.repeat == block.id]
    arguments = {name: _resolve_context_value(submit, value) for name, value in call.kwargs.items()}
    # The rendered values count, not the templates: a run of another day may be the same call.
    settings = _digest_settings(submit, submit.flow.steps[spec.id])
    code = read_code([call.function or call.sql, *untils], [arguments, settings], submit.roots)
    # By its arguments, by its tables' conditions, or by code that asks the clock or draws numbers.
    by_interval = _needs_dates(call) or any(table.is_dated for table in spec.reads or ())
    return replace(
        spec,
        code=code.fingerprint,
        dated=by_interval or may_vary(code.uses),
        within_run=_may_read_undeclared(spec, call, code.uses),
        location=locate_function(call.function),
    )


def _may_read_undeclared(spec: StepSpec, call: Call, uses: Uses) -> bool:
    """Whether the step may read what it does not declare. What a function declares is its author's word; what a SQL
    text reads can be seen.
    """
    if call.sql is not None and not has_declared_reads_only(call, spec.reads or ()):
        return True
    return spec.reads is None and ("spark" in call.kwargs or may_hold_session(uses) or may_vary(uses))


def _needs_dates(call: Call) -> bool:
    return any(isinstance(leaf, ContextValue) and leaf.name in DATED_NAMES for leaf in iterate_leaves(call.kwargs))


def _resolve_context_value(submit: Submit, value: Any) -> Any:
    """What the step will see: its rows depend on it. The interval counts by itself (``StepSpec.dated``)."""
    if isinstance(value, ContextValue) and value.name not in ("spark", "interval"):
        return (value.name, submit.facts.context.get(value.name))
    return value


def _build_call(submit: Submit, step: AuthoredStep) -> Call:
    kept = {name: value for name, value in step.arguments.items() if not _is_absent(submit, step, value)}
    try:
        rendered = transform_leaves(kept, lambda leaf: _render_leaf(submit, leaf))
        sql = None if step.sql is None else submit.render(step.sql)
    except Exception as error:
        raise step.make_error(f"an argument cannot be rendered: {type(error).__name__}: {error}") from error
    return Call(step.function, (), rendered, sql)


def _render_leaf(submit: Submit, leaf: Any) -> Any:
    return leaf if isinstance(leaf, (Output, ContextValue, Handed)) else submit.render(leaf)


def _is_absent(submit: Submit, step: AuthoredStep, value: Any) -> bool:
    """Whether the run lacks the context value and the parameter has a default; lacking both is an error."""
    facts = submit.facts
    if not isinstance(value, ContextValue) or value.name == "spark" or value.name in facts.context:
        return False
    # A manual run without a date has an interval all the same: a key alone.
    if value.name == "interval" and facts.interval.start is not None:
        return False
    if step.function is not None and value.name in list_optional_names(step.function):
        return True
    raise step.make_error(
        f"asks for {value.name!r}, but run {facts.run_id!r} has no date: trigger it with a logical date "
        f"(or a partition), or give the parameter a default"
    )


def _collect_outside_states(submit: Submit, name: str) -> dict[str, str]:
    """How everything directly above the step ended that is not in this submit."""
    graph, facts, states = submit.flow.graph, submit.facts, submit.states
    # Instances of a mapped task count one by one, as Airflow counts them.
    ordinary = [facts.find_states(each, graph.ordinary) or {each: "success"} for each in graph.outside[name]]
    steps = {
        up: states.get(up) or facts.states.get(submit.flow.steps[up].task_id, "success")
        for up in graph.upstream[name]
        if up not in submit.targets
    }
    return {**dict(chain.from_iterable(each.items() for each in ordinary)), **steps}


def _list_routed(submit: Submit, name: str) -> dict[str, Any]:
    """Inputs that Spark is told how to hand over; forward and shuffle say where rows go anyway."""
    said = submit.flow.graph.channels.get(name, {})
    return {output.key: each.routing for output, each in said.items() if each.routing in ("broadcast", "single")}


def _list_stored_outputs(submit: Submit, name: str) -> tuple[str, ...]:
    """Outputs with a reader outside this submit, or stored by their author's word; what a table holds is not stored
    again.
    """
    others = (inputs for other, inputs in submit.flow.graph.inputs.items() if other not in submit.targets)
    readers = {output.name for inputs in others for output in inputs if output.step == name}
    buffered = {
        output.name
        for said in submit.flow.graph.channels.values()
        for output, each in said.items()
        if output.step == name and each.kind == "buffered"
    }
    wanted = readers | buffered | set(submit.flow.graph.consumed.get(name, ()))
    return tuple(sorted(wanted - {""} if submit.flow.steps[name].declared.writes is not None else wanted))


def _is_forced(submit: Submit, step: AuthoredStep) -> bool:
    """A person cleared the step: its mirror is open although the run was cleared."""
    # The clear opened it, and nothing of an earlier round closes it again: a mirror believes no try that began before
    # its own making. In a retry of the round the mirrors of what was done are closed, and of the others its commits
    # count.
    return submit.facts.try_id.clear_number > 0 and submit.facts.states.get(step.task_id) != "success"


def _build_repeat(flow: DataflowSpec, block: RepeatBlock) -> Repeat:
    return Repeat(block.id, block.steps, block.max_iterations, block.feedback or _derive_feedback(flow, block))


def _derive_feedback(flow: DataflowSpec, block: RepeatBlock) -> dict[str, str]:
    """The last step's output goes back into the first step's first input."""
    first = block.steps[0]
    return {f"{first}.{find_first_input(flow.steps[first].arguments)}": block.steps[-1]}
