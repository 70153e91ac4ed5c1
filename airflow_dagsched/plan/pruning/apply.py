"""Pruning as a step of planning: a plan with groups comes out with what each group leaves out.

    groups ──prune_groups──> partitions, steps, workers, instances ──sizing──> containers ──trim_instances──> fewer

``count_remaining`` is what the sizes are then made of. Streaming is never pruned: it has no end at which its input
would be known to be empty.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.dataflow import Source, Step
from airflow_dagsched.model.graph import Graph
from airflow_dagsched.model.order import natural_key, sort_naturally
from airflow_dagsched.model.partition_order import sort_partitions
from airflow_dagsched.plan.plan_types import Group, Plan, Pruned
from airflow_dagsched.plan.pruning.conditions.condition import ALWAYS, Condition, Some
from airflow_dagsched.plan.pruning.instances import list_surplus, may_go, trim_group
from airflow_dagsched.plan.pruning.layout import partition_name
from airflow_dagsched.plan.pruning.pruning_input import PruningInput
from airflow_dagsched.plan.pruning.sources import Selection, combine_condition, select_listed
from airflow_dagsched.plan.pruning.steps import Emptiness, Selections, find_idle_steps
from airflow_dagsched.plan.pruning.workers import Scene, find_needed_workers
from airflow_dagsched.plan.reasons.pruning import HeldElsewhere, WholeReason
from airflow_dagsched.plan.report.sentences import (
    say_idle,
    say_pruned,
    say_source_kept,
    say_whole,
    say_workers_kept,
)
from airflow_dagsched.plan.settings import DEFAULTS, Settings


def select_all(graph: Graph, asked: PruningInput) -> Selections:
    """What each step reads of each of its sources, as far as the dataflow lists them."""
    return {
        (step.id, path): _select_partitions(step, path, asked) for step in graph.steps for path in _list_paths(step)
    }


def _select_partitions(step: Step, path: str, asked: PruningInput) -> Selection:
    sources = [source for source in step.sources if source.path == path]
    # Of two that are called the same the one that is last in order counts, whichever is declared first.
    declared = sort_partitions(one for source in sources for one in source.partitions)
    listed = {partition_name(one): one for one in declared}
    # A source declared twice is one table: its partitions are those that either declares, each once.
    whole = sources[0] if len(sources) == 1 else Source(path=path, partitions=tuple(listed.values()))
    return select_listed(whole, combine_conditions(step, path, asked))


def combine_conditions(step: Step, path: str, asked: PruningInput) -> Condition:
    """What the step asks of its source at ``path``: of one that it reads twice, either."""
    sources = (source for source in step.sources if source.path == path)
    conditions = tuple(dict.fromkeys(combine_condition(step.id, source, asked) for source in sources))
    return conditions[0] if len(conditions) == 1 else _join_alternatives(conditions)


def _join_alternatives(conditions: Iterable[Condition]) -> Condition:
    """In one order, whatever the order of the sources; with none on one of them: none."""
    parts = tuple(sorted(conditions, key=str))
    # One read of the whole table needs all of it.
    return ALWAYS if ALWAYS in parts else Some(parts)


def _list_paths(step: Step) -> list[str]:
    return sort_naturally({source.path for source in step.sources}) if step.sources else []


def prune_groups(
    made: Plan,
    graph: Graph,
    cluster: Cluster,
    asked: PruningInput,
    *,
    selections: Selections | None = None,
    settings: Settings = DEFAULTS,
    with_all_holders: bool = False,
) -> Plan:
    """``made``, which has its groups, with what they leave out.

    :param selections: of a lister, else what is declared.
    :param with_all_holders: of the workers no one that holds something needed; else all but the fewest that hold all.
    """
    if asked.mode is False:
        return replace(made, groups=tuple(_keep_whole(group, "switched off") for group in made.groups))
    found = select_all(graph, asked) if selections is None else selections
    idle = find_idle_steps(graph, found, asked)
    scene = Scene(graph, cluster, asked, found, settings, idle.datasets, with_all_holders)
    return replace(made, groups=tuple(_prune_group(group, scene, idle) for group in made.groups))


def trim_instances(
    made: Plan, graph: Graph, cluster: Cluster, asked: PruningInput, *, selections: Selections | None = None
) -> Plan:
    """``made``, which is placed, without instances and containers no rows come to. ``declared`` looks at no step."""
    # ``declared`` is the lightweight way: it believes conditions, and never asks what steps do with their rows.
    if asked.mode in (False, "declared"):
        return made
    if selections is None:
        # Choosing partitions takes time, and most dataflows have no step whose instances may go.
        selections = select_all(graph, asked) if any(may_go(step) for step in graph.steps) else {}
    scene = Scene(graph, cluster, asked, selections)
    groups = (group if _is_streaming(group, graph) else trim_group(group, scene) for group in made.groups)
    return replace(made, groups=tuple(groups))


def count_remaining(group: Group, graph: Graph, workers: Sequence[Worker]) -> tuple[dict[str, int], list[Worker]]:
    """What is left to place: step -> its number of instances, and the workers they may be on, in natural order."""
    gone = {(one.what, one.id) for one in group.pruned}
    # A step's id may contain a slash, an index never.
    fewer = Counter(name.rpartition("/")[0] for what, name in gone if what == "instance")
    steps = [graph.steps[graph.index[name]] for name in group.steps if ("step", name) not in gone]
    counts = {step.id: step.parallelism - fewer[step.id] if fewer else step.parallelism for step in steps}
    left = (worker for worker in workers if ("worker", worker.id) not in gone)
    return counts, sorted(left, key=lambda worker: natural_key(worker.id))


def narrow_sources(step: Step, group: Group) -> tuple[Source, ...]:
    """The step's sources with the partitions that the group reads, as far as they are listed."""
    gone = {one.id for one in group.pruned if one.what == "partition"}
    return tuple(
        replace(source, partitions=tuple(one for one in source.partitions if prefix + partition_name(one) not in gone))
        for source in step.sources
        for prefix in [f"{step.id}/{_key_prefix(source.path, _list_paths(step))}"]
    )


def _key_prefix(path: str, paths: Sequence[str]) -> str:
    """What stands in front of a key, of a step that reads ``paths``."""
    return f"{path}/" if len(paths) > 1 else ""


def _keep_whole(group: Group, reason: WholeReason) -> Group:
    """The group with nothing left out."""
    stays = tuple(Pruned(what="step", id=step, reason=say_whole(reason)) for step in group.steps)
    return replace(group, partitions={}, pruned=(), unpruned=stays)


def _is_streaming(group: Group, graph: Graph) -> bool:
    return any(graph.steps[graph.index[step]].mode == "streaming" for step in group.steps)


def _prune_group(group: Group, scene: Scene, idle: Emptiness) -> Group:
    if _is_streaming(group, scene.graph):
        return _keep_whole(group, "streaming")
    running = [step for step in group.steps if step not in idle.steps]
    steps = [
        Pruned(what="step", id=step, reason=say_idle(idle.steps[step])) for step in group.steps if step in idle.steps
    ]
    # Nothing runs: no partition is read, and no worker is needed for it.
    if not running:
        return replace(group, pruned=tuple(steps))
    gone, stay = _prune_workers(group.id, scene, running)
    reading = [step for step in running if scene.graph.steps[scene.graph.index[step]].sources]
    partitions = [entry for step in reading for entry in _prune_partitions(step, scene)]
    return replace(
        group,
        partitions={step: keys for step in reading if (keys := _partition_names(step, scene)) is not None},
        pruned=(*steps, *partitions, *list_surplus(scene, running), *gone),
        unpruned=(*_explain_unpruned(reading, scene), *stay),
    )


def _prune_workers(group: str, scene: Scene, running: Sequence[str]) -> tuple[list[Pruned], list[Pruned]]:
    """Entries of the workers that go; or one, of the group, that says why all stay."""
    names = sort_naturally(worker.id for worker in scene.cluster.workers)
    # The only worker cannot go.
    if len(names) < 2:
        return [], []
    needed = find_needed_workers(scene, running)
    if needed.any_because is not None:
        return [], [Pruned(what="worker", id=group, reason=say_workers_kept(needed.any_because))]
    reason = say_pruned(HeldElsewhere(tuple(sort_naturally(needed.workers))))
    return [Pruned(what="worker", id=name, reason=reason) for name in names if name not in needed.workers], []


def _list_selections(step: str, scene: Scene) -> list[tuple[str, Selection]]:
    """The step's selections that a condition was put on, with what stands in front of their keys."""
    paths = _list_paths(scene.graph.steps[scene.graph.index[step]])
    found = ((_key_prefix(path, paths), scene.selections[step, path]) for path in paths)
    return [(prefix, one) for prefix, one in found if one.condition != ALWAYS]


def _partition_names(step: str, scene: Scene) -> tuple[str, ...] | None:
    """The partitions the step reads; None if nothing is known of them."""
    told = [(prefix, one) for prefix, one in _list_selections(step, scene) if one.is_declared]
    # As text: the plan names partitions as Spark names their folders.
    keys = (prefix + partition_name(partition) for prefix, one in told for partition in one.needed)
    return tuple(keys) if told else None


def _prune_partitions(step: str, scene: Scene) -> Iterator[Pruned]:
    for prefix, selection in _list_selections(step, scene):
        yield from selection.list_pruned(f"{step}/{prefix}")


def _explain_unpruned(reading: Sequence[str], scene: Scene) -> Iterator[Pruned]:
    """Conditions that could not be used."""
    for step in reading:
        for _, one in _list_selections(step, scene):
            if one.objection is not None:
                yield Pruned(what="partition", id=f"{step}/{one.path}", reason=say_source_kept(one.objection))
