"""Pruning as a step of planning: a plan with groups comes out with what each group leaves out.

    grouped ──prune──> partitions, pruned steps, workers, instances ──sized──> containers ──trim──> fewer

``remaining`` is what the sizes are then made of. Streaming is never pruned: it has no end at which its input would be
known to be empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.graph import Graph
from airflow_dagsched.model.order import natural_key, natural_sort
from airflow_dagsched.plan.prune.asked import Asked
from airflow_dagsched.plan.prune.condition import ALWAYS
from airflow_dagsched.plan.prune.instances import surplus, trimmed
from airflow_dagsched.plan.prune.layout import spelled
from airflow_dagsched.plan.prune.sources import Selection, condition_for, select
from airflow_dagsched.plan.prune.steps import Emptiness, Selections, idle_steps
from airflow_dagsched.plan.prune.workers import Scene, workers_needed
from airflow_dagsched.plan.settings import DEFAULTS, Settings
from airflow_dagsched.plan.values import Group, Plan, Pruned

OFF = "pruning is switched off"
STREAMING = "streaming is never pruned"


def select_all(graph: Graph, asked: Asked) -> Selections:
    """What each step reads of each of its sources, as far as the dataflow lists them."""
    return {
        (step.id, source.path): select(source, condition_for(step.id, source, asked))
        for step in graph.steps
        for source in step.sources
    }


def prune(
    made: Plan,
    graph: Graph,
    cluster: Cluster,
    asked: Asked,
    *,
    selections: Selections | None = None,
    settings: Settings = DEFAULTS,
) -> Plan:
    """``made``, which has its groups, with what they leave out. ``selections``: of a lister, else what is declared."""
    if asked.mode is False:
        return replace(made, groups=tuple(_whole(group, OFF) for group in made.groups))
    found = select_all(graph, asked) if selections is None else selections
    idle = idle_steps(graph, found, empty=asked.empty, empty_if=asked.empty_if)
    scene = Scene(graph, cluster, asked, found, settings, idle.datasets)
    return replace(made, groups=tuple(_pruned(group, scene, idle) for group in made.groups))


def trim(made: Plan, graph: Graph, cluster: Cluster, asked: Asked, *, selections: Selections | None = None) -> Plan:
    """``made``, which is placed, without instances and containers no rows come to. ``declared`` looks at no step."""
    if asked.mode in (False, "declared"):
        return made
    found = select_all(graph, asked) if selections is None else selections
    scene = Scene(graph, cluster, asked, found)
    groups = (group if _streams(group, graph) else trimmed(group, scene) for group in made.groups)
    return replace(made, groups=tuple(groups))


def remaining(group: Group, graph: Graph, workers: Sequence[Worker]) -> tuple[dict[str, int], list[Worker]]:
    """What is left to place: step -> its number of instances, and the workers they may be on, in natural order."""
    gone = {(one.what, one.id) for one in group.pruned}
    steps = [graph.steps[graph.index[name]] for name in group.steps if ("step", name) not in gone]
    counts = {
        step.id: sum(("instance", f"{step.id}/{at}") not in gone for at in range(step.parallelism)) for step in steps
    }
    left = (worker for worker in workers if ("worker", worker.id) not in gone)
    return counts, sorted(left, key=lambda worker: natural_key(worker.id))


def _whole(group: Group, reason: str) -> Group:
    """The group with nothing left out."""
    stays = tuple(Pruned(what="step", id=step, reason=reason) for step in group.steps)
    return replace(group, partitions={}, pruned=(), unpruned=stays)


def _streams(group: Group, graph: Graph) -> bool:
    return any(graph.steps[graph.index[step]].mode == "streaming" for step in group.steps)


def _pruned(group: Group, scene: Scene, idle: Emptiness) -> Group:
    if _streams(group, scene.graph):
        return _whole(group, STREAMING)
    running = [step for step in group.steps if step not in idle.steps]
    steps = [Pruned(what="step", id=step, reason=idle.steps[step]) for step in group.steps if step in idle.steps]
    if not running:
        return replace(group, pruned=tuple(steps))
    gone, stay = _workers(scene, running)
    partitions = [entry for step in running for entry in _partitions(step, scene)]
    return replace(
        group,
        partitions={step: keys for step in running if (keys := _keys(step, scene)) is not None},
        pruned=(*steps, *partitions, *surplus(scene, running), *gone),
        unpruned=(*_unpruned(running, scene), *stay),
    )


def _workers(scene: Scene, running: Sequence[str]) -> tuple[list[Pruned], list[Pruned]]:
    """Entries of the workers that go, and of those that stay although nothing is known to need them."""
    names = natural_sort(worker.id for worker in scene.cluster.workers)
    if len(names) < 2:
        return [], []
    needed = workers_needed(scene, running)
    if needed.any_because:
        return [], [Pruned(what="worker", id=name, reason=needed.any_because) for name in names]
    reason = f"holds nothing the group needs: {', '.join(natural_sort(needed.workers))} do"
    return [Pruned(what="worker", id=name, reason=reason) for name in names if name not in needed.workers], []


def _of(step: str, scene: Scene) -> list[tuple[str, Selection]]:
    """The step's selections that a condition was put on, with what stands in front of their keys."""
    sources = scene.graph.steps[scene.graph.index[step]].sources
    found = ((source.path, scene.selections[step, source.path]) for source in sources)
    return [(f"{path}/" if len(sources) > 1 else "", one) for path, one in sorted(found) if one.condition != ALWAYS]


def _keys(step: str, scene: Scene) -> tuple[str, ...] | None:
    """The partitions the step reads; None if nothing is known of them."""
    told = [(prefix, one) for prefix, one in _of(step, scene) if one.is_declared]
    keys = (prefix + spelled(partition) for prefix, one in told for partition in one.needed)
    return tuple(keys) if told else None


def _partitions(step: str, scene: Scene) -> Iterator[Pruned]:
    for prefix, selection in _of(step, scene):
        yield from selection.pruned(f"{step}/{prefix}")


def _unpruned(running: Sequence[str], scene: Scene) -> Iterator[Pruned]:
    """Conditions that could not be used."""
    for step in running:
        for _, one in _of(step, scene):
            if one.off:
                yield Pruned(what="partition", id=f"{step}/{one.path}", reason=one.off)
