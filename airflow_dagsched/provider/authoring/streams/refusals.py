"""What cannot be a stream, told at parse: each rule names the step, and the way out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.launch.protocol.tables import FILE_FORMATS, normalise_location
from airflow_dagsched.launch.streams.above import list_above
from airflow_dagsched.launch.streams.exact_starts import explain_inexact
from airflow_dagsched.launch.streams.session_settings import OURS
from airflow_dagsched.plan.settings import DEFAULTS
from airflow_dagsched.provider.authoring.streams.steps import SinkStep, SourceStep
from airflow_dagsched.provider.spec.step_declaration import Declared

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from airflow_dagsched.launch.protocol.tables import Table
    from airflow_dagsched.provider.authoring.steps import StepMirror
    from airflow_dagsched.provider.spec.dataflow_spec import AuthoredStep, DataflowSpec

SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
ONE_GROUP = "all steps of a stream run at once, in one application"
PLAIN = Declared()
NO_EFFECT = {
    "isolate": f"{ONE_GROUP}: leave it out, or write a second dataflow",
    "needs": "a step of a stream runs as long as all of it does: leave it out",
    "works_without_input": "batches without rows are a stream's, too: leave it out",
    "rule": "a step of a stream runs as long as all of it does: leave trigger_rule out",
}
"""What a step of a stream cannot say otherwise than by default."""
FOR_ALL = ("application", "pinned", "placement")
"""What counts for an application."""


@dataclass(frozen=True, slots=True)
class Look:
    """What is judged: a dataflow, the steps of its DAG, and how rows go from one to the other."""

    flow: DataflowSpec
    mirrors: Mapping[str, StepMirror]
    dag: DAG
    sources: tuple[str, ...]
    ends: tuple[str, ...]
    """Steps that rows leave the stream by."""
    above: Mapping[str, tuple[str, ...]]
    """Step -> itself and all whose rows it gets."""

    def list_steps(self) -> Iterator[tuple[str, AuthoredStep]]:
        """The steps by their ids, in the author's order."""
        return iter(self.flow.steps.items())

    def list_writers(self) -> Iterator[tuple[AuthoredStep, Table]]:
        """The steps that write a table, each with it."""
        return ((step, step.declared.writes) for _, step in self.list_steps() if step.declared.writes is not None)

    def list_readers(self, name: str) -> list[str]:
        """Steps that take rows of step ``name``."""
        return [each for each, inputs in self.flow.graph.inputs.items() if any(one.step == name for one in inputs)]


Refusals = Iterator[InvalidInput]


def make_look(flow: DataflowSpec, mirrors: Mapping[str, StepMirror], dag: DAG) -> Look:
    """The stream ``flow``, whose steps ``mirrors`` stand for by their ids."""
    names = flow.steps
    sources = tuple(name for name in names if isinstance(mirrors[name], SourceStep))
    ends = tuple(
        name for name in names if names[name].declared.writes is not None or isinstance(mirrors[name], SinkStep)
    )
    return Look(flow, mirrors, dag, sources, ends, {name: _order_above(name, flow) for name in names})


def _order_above(name: str, flow: DataflowSpec) -> tuple[str, ...]:
    found = list_above(name, flow.graph.inputs)
    return tuple(each for each in flow.steps if each in found)


def refuse_mistakes(look: Look) -> None:
    """Raises :class:`InvalidInput` for the first thing that cannot be in a stream."""
    for find in FINDERS:
        for error in find(look):
            raise error


def _find_flow_settings(look: Look) -> Refusals:
    flow, settings = look.flow, look.flow.settings
    said = {
        "apart": settings.apart,
        "max_steps_per_group": settings.max_steps_per_group < len(flow.steps),
        "failures_per_hour": settings.failures_per_hour != DEFAULTS.failures_per_hour,
        "run": flow.run == "per_step",
        "replan": flow.replan == "regroup",
    }
    for name in (name for name, value in said.items() if value):
        yield flow.make_error(f"{ONE_GROUP}: leave it out, or write a second dataflow, reading the table", name)
    if not str(flow.conf.get(SHUFFLE_PARTITIONS, 1)).isdigit():
        rule = f"{SHUFFLE_PARTITIONS} is fixed for an epoch, so it is not rendered: write a number"
        yield flow.make_error(rule, "conf")


def _find_settings(look: Look) -> Refusals:
    def tell(name: str) -> str:
        return f"{name!r} is not the author's to give in a stream: {OURS[name]}; leave it out"

    yield from (look.flow.make_error(tell(name), "conf") for name in look.flow.conf if name in OURS)
    for _, step in look.list_steps():
        said = step.declared.application or {}
        yield from (step.make_error(tell(name), "application") for name in said if name in OURS)


def _find_timeouts(look: Look) -> Refusals:
    if look.dag.dagrun_timeout is not None:
        rule = "would end the stream, which has no end: leave it out of the DAG"
        yield look.flow.make_error(rule, "dagrun_timeout")


def _find_repeats(look: Look) -> Refusals:
    for block in look.flow.repeats:
        rule = "steps of a stream cannot be repeated: write what ends into a second dataflow, reading the table"
        yield look.flow.steps[block.id].make_error(rule, "repeat")


def _find_missing(look: Look) -> Refusals:
    if not look.sources:
        yield look.flow.make_error("a stream needs a source: write one with @task.spark_stream_source(...)")
    if not look.ends:
        rule = "a stream needs a step that writes: writes=Table(..., mode='append'), or @task.spark_stream_sink"
        yield look.flow.make_error(rule)


def _find_batch_steps(look: Look) -> Refusals:
    for name, step in look.list_steps():
        if not set(look.above[name]) & set(look.sources):
            yield step.make_error(
                "reads no source of the stream, so it would run once: read what it reads inside the step that joins "
                "it, or write it in a second dataflow and read the table"
            )


def _find_idle_steps(look: Look) -> Refusals:
    used = {above for name in look.ends for above in look.above[name]}
    for name, step in look.list_steps():
        if name not in used:
            yield step.make_error("no step that writes takes its rows, so it would never run: leave it out, or write")


def _find_idle_words(look: Look) -> Refusals:
    for _, step in look.list_steps():
        for word, way_out in NO_EFFECT.items():
            if getattr(step.declared, word) != getattr(PLAIN, word):
                yield step.make_error(way_out, "trigger_rule" if word == "rule" else word)
        for table in step.declared.read_tables or ():
            if table.where is not None:
                rule = f"Table({table.location!r}): where names partitions of a run, and a stream has none: filter rows"
                yield step.make_error(rule, "reads")


def _find_unlike_settings(look: Look) -> Refusals:
    (first, model), *others = look.list_steps()
    for name, step in others:
        for word in FOR_ALL:
            if _freeze(getattr(step.declared, word)) != _freeze(getattr(model.declared, word)):
                rule = f"{ONE_GROUP}, but {name!r} and {first!r} differ in it: give all of them one, or the dataflow"
                yield step.make_error(rule, word)


def _freeze(value: Any) -> Any:
    return tuple(sorted(set(value))) if isinstance(value, (list, tuple)) else value


def _find_ordinary_tasks(look: Look) -> Refusals:
    graph, steps = look.flow.graph, look.flow.steps
    tasks = {task.id for task in graph.dataflow.tasks}
    for above, below in graph.dataflow.dependencies:
        if above in steps and below in tasks:
            yield steps[above].make_error(
                f"task {below!r} waits for its end, and a step below for {below!r}: a stream has none; put the rest "
                "into a second dataflow, reading the table"
            )
        elif above in steps and below in steps:
            yield steps[below].make_error(f"waits for {above!r} without its rows, but {ONE_GROUP}: leave the edge out")
    for name in graph.consumed:
        rule = "an ordinary task takes its rows, which have no end: write a table, and read that"
        yield steps[name].make_error(rule)


def _find_channels(look: Look) -> Refusals:
    for name, said in look.flow.graph.channels.items():
        for output, channel in said.items():
            if channel.kind == "buffered":
                rule = f"rows of {output.step!r} have no end that a buffer could wait for: leave it out"
                yield look.flow.steps[name].make_error(rule, "kind")
    for name in look.ends:
        for reader in look.list_readers(name):
            yield look.flow.steps[reader].make_error(
                f"takes the rows of {name!r}, which writes them: take those of the step above it, or read the table in "
                "a second dataflow"
            )


def _find_waits(look: Look) -> Refusals:
    """A person's word is waited for while both graphs run, so that there is something to compare."""
    settings = look.flow.streaming
    assert settings is not None
    if settings.confirm == "manual" and settings.channel != "replay":
        rule = f"through channel={settings.channel!r} a new graph has no rows before it takes over: 'manual' needs"
        yield look.flow.make_error(f"{rule} 'replay'", "confirm")
    if settings.confirm == "manual" and settings.overlap == "sequential":
        rule = "with overlap='sequential' a new graph runs once the old one has gone, so nothing could be compared"
        yield look.flow.make_error(f"{rule}: 'manual' needs 'beside'", "confirm")


def _find_split_rows(look: Look) -> Refusals:
    """Rows in an inbox are one graph's each."""
    settings = look.flow.streaming
    assert settings is not None
    if settings.channel == "inbox" and settings.overlap == "sequential":
        rule = "through channel='inbox' a new graph gets its rows beside the old one: leave it out, or channel='replay'"
        yield look.flow.make_error(rule, "overlap")
    if settings.channel == "inbox" and settings.reach_s > 0:
        rule = "of windows that overlap a row would be two graphs', and in an inbox it is one's: use channel='replay'"
        yield look.flow.make_error(rule, "reach")


def _find_sinks(look: Look) -> Refusals:
    for name in look.ends:
        count = len(look.flow.graph.inputs[name])
        if isinstance(look.mirrors[name], SinkStep) and count != 1:
            rule = f"gets the rows of one step, not of {count}: join them in a step above it"
            yield look.flow.steps[name].make_error(rule)


def _find_tables(look: Look) -> Refusals:
    taken: dict[str, str] = {}
    reads = {normalise_location(path) for each in look.sources if (path := _find_path(look.mirrors[each]))}
    for step, table in look.list_writers():
        if mistake := _find_table_mistake(table):
            yield step.make_error(f"Table({table.location!r}): {mistake}", "writes")
        if table.key in taken:
            rule = f"Table({table.location!r}) is written by {taken[table.key]!r}, too: union their rows in one step"
            yield step.make_error(rule, "writes")
        if table.key in reads:
            rule = f"Table({table.location!r}) is what a source reads: it would feed itself; write another"
            yield step.make_error(rule, "writes")
        yield from _find_nested(step, table, taken, reads)
        taken[table.key] = step.id


def _find_nested(step: AuthoredStep, table: Table, taken: Mapping[str, str], reads: Iterable[str]) -> Refusals:
    """Folders of one table that look like partitions of another, or like files of what is read."""
    told = f"Table({table.location!r}) and "
    for place in (each for each in taken if _are_nested(each, table.key)):
        rule = f"{told}{place!r} of {taken[place]!r} are one inside the other: give each a folder of its own"
        yield step.make_error(rule, "writes")
    for place in (each for each in reads if _are_nested(each, table.key)):
        rule = f"{told}{place!r}, which a source reads, are one inside the other: write beside it"
        yield step.make_error(rule, "writes")


def _are_nested(one: str, other: str) -> bool:
    short, long = sorted((f"{one}/", f"{other}/"), key=len)
    return short != long and long.startswith(short)


def _find_path(mirror: StepMirror) -> str | None:
    return mirror.source.path if isinstance(mirror, SourceStep) else None


def _find_table_mistake(table: Table) -> str:
    if table.mode != "append":
        return "a stream only appends: write mode='append', or a function with @task.spark_stream_sink"
    if not table.is_path:
        return "a stream writes tables by path: name it, or write a function with @task.spark_stream_sink"
    if table.format not in FILE_FORMATS and table.format != "delta":
        known = ", ".join((*sorted(FILE_FORMATS), "delta"))
        return f"a stream writes {known}, not {table.format}: write a function with @task.spark_stream_sink"
    return ""


def _find_carried(look: Look) -> Refusals:
    assert look.flow.streaming is not None
    carried = {name: step for name, step in look.list_steps() if step.declared.carries}
    for step in carried.values():
        if not step.declared.stateful:
            yield step.make_error("is state that a step keeps: say stateful=True as well", "carries")
        if look.flow.streaming.channel != "carry":
            rule = "state is carried over by SparkDataflow(..., channel='carry') alone: set it, or leave this out"
            yield step.make_error(rule, "carries")
    if look.flow.streaming.channel == "carry":
        if not carried:
            rule = "'carry' hands on state, and no step names any: carries=[...] of one, or another channel"
            yield look.flow.make_error(rule, "channel")
        for name, step in look.list_steps():
            if step.declared.stateful and name not in carried:
                rule = "its state would be lost in a switch, as channel='carry' reads no row again: name what it keeps"
                yield step.make_error(rule, "carries")
        yield from _find_inexact(look)


def _find_inexact(look: Look) -> Refusals:
    """What would be read twice, or not at all, and so counted in a state that goes on."""
    assert look.flow.streaming is not None
    if look.flow.streaming.overlap == "sequential":
        rule = "'sequential' is what channel='carry' does anyway, but for a look at the new graph before: leave it out"
        yield look.flow.make_error(rule, "overlap")
    mirrors = {name: look.mirrors[name] for name in look.sources}
    sources = {name: each.make_spec(name) for name, each in mirrors.items() if isinstance(each, SourceStep)}
    for end in look.ends:
        read = [spec for name, spec in sources.items() if name in look.above[end]]
        if inexact := explain_inexact(read):
            rule = f"{inexact}, and what is read twice would count twice in what is carried on: use another channel"
            yield look.flow.steps[end].make_error(rule, "channel")


FINDERS: tuple[Callable[[Look], Refusals], ...] = (
    _find_flow_settings,
    _find_settings,
    _find_timeouts,
    _find_repeats,
    _find_missing,
    _find_batch_steps,
    _find_idle_words,
    _find_unlike_settings,
    _find_ordinary_tasks,
    _find_channels,
    _find_waits,
    _find_split_rows,
    _find_sinks,
    _find_tables,
    _find_idle_steps,
    _find_carried,
)
"""In the order in which they are told: what a stream lacks before what a step of it says."""
