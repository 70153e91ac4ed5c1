"""Steps that have nothing to do: emptiness spreads along channels from sources and datasets known to be empty.

    /data/orders (no partition matches) ──> read ══> clean ══> join ══> report
                                            /data/rates ═══════╝
    read and clean do not work without input: they and their datasets are empty, and so is the join,
    which needs all its inputs. report counts, so it works without input: it runs and writes its 0.

A step runs unless it declares that it does no work without input, and its inputs are known to be empty; or all that
read its rows have nothing to do, and rows are all it leaves. Loops of repeated steps and streaming steps always run.
Rules K1 to K4.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Iterator, Mapping

from msgspec import Struct

from airflow_dagsched.model.dataflow import Step
from airflow_dagsched.model.graph import Graph
from airflow_dagsched.model.order import sort_naturally
from airflow_dagsched.plan.pruning.emptiness import Causes
from airflow_dagsched.plan.pruning.pruning_input import NO_PRUNING_INPUT, PruningInput
from airflow_dagsched.plan.pruning.sources import Selection
from airflow_dagsched.plan.reasons.pruning import (
    DatasetWithoutRows,
    EmptyInput,
    IdleReason,
    IdleWriter,
    NoInput,
    NoReader,
    SourceWithoutMatch,
)

Selections = Mapping[tuple[str, str], Selection]
"""(step, path of a source) -> what the step reads of it."""


class Emptiness(Struct, frozen=True):
    """What has no rows, and why."""

    steps: Mapping[str, IdleReason]
    """Step that need not run -> reason."""
    datasets: frozenset[str]


def name_dataset(src: str, output: str) -> str:
    """The name of a dataset, as in the run manifest."""
    return f"{src}/{output}"


def find_idle_steps(graph: Graph, selections: Selections, asked: PruningInput = NO_PRUNING_INPUT) -> Emptiness:
    """The steps that need not run. Linear in steps and channels."""
    datasets: dict[str, EmptyInput] = {name: DatasetWithoutRows(name) for name in asked.empty}
    # Found before, with more facts than there are now: not asked again.
    idle = dict(asked.idle)
    candidates = [step for step in _list_candidates(graph) if step.id not in idle]
    if not candidates:
        return Emptiness(idle, frozenset(datasets))
    inputs, outputs = list_inputs(graph), _list_outputs(graph)
    for step in candidates:
        # Sources of this step hide datasets of the same name: names of inputs are the step's own.
        known = ChainMap(dict(_empty_sources(step, selections)), datasets)
        causes = asked.empty_if.get(step.id, _find_causes(step, inputs[step.id]))
        cause = next((each for each in causes if all(name in known for name in each)), None)
        if cause is not None:
            idle[step.id] = NoInput(tuple(known[name] for name in sort_naturally(cause)))
            datasets |= dict.fromkeys(outputs.get(step.id, ()), IdleWriter(step.id))
    # Backwards: a step that nobody reads any more may be the last reader of the one before it.
    for step in reversed(candidates):
        readers = _list_readers(graph, step) if step.id in asked.only_rows and step.id not in idle else []
        if readers and all(reader in idle for reader in readers):
            idle[step.id] = NoReader(tuple(readers))
    return Emptiness(idle, frozenset(datasets))


def _list_readers(graph: Graph, step: Step) -> list[str]:
    node = graph.index[step.id]
    return sort_naturally(graph.ids[after] for after in graph.successors[node] if graph.is_step(after))


def list_inputs(graph: Graph) -> dict[str, tuple[str, ...]]:
    """For each step the names of its datasets and sources."""
    found = {step.id: [source.path for source in step.sources] for step in graph.steps}
    for channel in graph.dataflow.channels:
        found[channel.dst].append(name_dataset(channel.src, channel.output))
    return {step: tuple(sort_naturally(set(names))) for step, names in found.items()}


def _list_outputs(graph: Graph) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for channel in graph.dataflow.channels:
        found.setdefault(channel.src, set()).add(name_dataset(channel.src, channel.output))
    return found


def _list_candidates(graph: Graph) -> Iterator[Step]:
    """Steps that may be left out, each after those it reads from."""
    # A loop always runs: its first round begins without the rows of its last.
    loops = {first for node, first in enumerate(graph.loop) if node != first}
    for node in graph.order:
        if graph.is_step(node) and graph.loop[node] not in loops:
            step = graph.steps[node]
            if step.mode == "batch" and not step.works_without_input and not step.repeat:
                yield step


def _find_causes(step: Step, inputs: Collection[str]) -> Causes:
    """``needs``: with ``all`` one empty input is enough, with ``any`` all must be; without inputs nothing is known."""
    if step.needs == "any":
        return (frozenset(inputs),) if inputs else ()
    return tuple(frozenset({name}) for name in inputs)


def _empty_sources(step: Step, selections: Selections) -> Iterator[tuple[str, EmptyInput]]:
    for source in step.sources:
        selection = selections.get((step.id, source.path))
        if selection is not None and selection.is_empty:
            yield source.path, SourceWithoutMatch(source.path, str(selection.condition))
