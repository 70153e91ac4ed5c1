"""Step instances that get no rows: a scan with fewer tasks than instances, a worker to which no rows come.

    before placement: a scan of 3 tasks, parallelism 8                      instances 3 to 7 have nothing to read
    after:            w1 [scan/0 clean/0]  w2 [scan/1 clean/1]  w2 holds    scan/1 and clean/1 go, then the container,
                      nothing of the day                                    then w2 (Jet's "null supplier")

An instance goes only if its step does no work without input, but for scans: Spark makes a task of a split, never of
none. (A step that reads another's rows where they are stored is as wide as if they were handed on.) One instance of a
step that runs always stays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec.structs import replace

from airflow_dagsched.model.dataflow import Channel, Step
from airflow_dagsched.model.order import natural_sort
from airflow_dagsched.plan.prune.layout import spelled
from airflow_dagsched.plan.prune.owners import assigned, held_by
from airflow_dagsched.plan.prune.presence import Edge, presence
from airflow_dagsched.plan.prune.tasks import scan_tasks
from airflow_dagsched.plan.prune.workers import Scene
from airflow_dagsched.plan.values import Container, Group, Pruned


def useful_instances(scene: Scene, running: Sequence[str]) -> dict[str, int]:
    """For each running step how many of its instances, the first so many, may get rows."""
    found: dict[str, int] = {}
    for name in running:
        step, channels = scene.graph.steps[scene.graph.index[name]], scene.inbound.get(name, ())
        found[name] = min(step.parallelism, _most(scene, step, channels, found))
    return found


def _most(scene: Scene, step: Step, channels: Sequence[Channel], found: Mapping[str, int]) -> int:
    if step.mode == "streaming":
        return step.parallelism
    if not channels:
        return max(1, _tasks(scene, step)) if step.sources else step.parallelism
    alike = (scene.graph.steps[scene.graph.index[channel.src]].parallelism == step.parallelism for channel in channels)
    here = all(channel.routing == "forward" and channel.src in found for channel in channels)
    if step.works_without_input or step.sources or not (here and all(alike)):
        return step.parallelism
    return max(found[channel.src] for channel in channels)


def _tasks(scene: Scene, step: Step) -> int:
    selections = [scene.selections[step.id, source.path] for source in step.sources]
    if not all(one.listed and one.path not in scene.asked.stored for one in selections):
        return step.parallelism
    tasks = scan_tasks(partition for selection in selections for partition in selection.needed)
    return step.parallelism if tasks is None else tasks


def surplus(scene: Scene, running: Sequence[str]) -> Iterator[Pruned]:
    """An entry for each instance that gets no rows, told before placement."""
    for name, useful in useful_instances(scene, running).items():
        tasks = f"there are rows for {useful} of its instances only"
        for index in range(useful, scene.graph.steps[scene.graph.index[name]].parallelism):
            yield Pruned(what="instance", id=f"{name}/{index}", reason=tasks)


def trimmed(group: Group, scene: Scene) -> Group:
    """The placed group without the instances to whose worker no rows come, and without what that leaves empty."""
    dropped = _dropped(group, scene)
    kept = tuple(box for box in (_without(box, dropped) for box in group.containers) if box.instances)
    if len(kept) == len(group.containers) and not dropped:
        return group
    left = natural_sort({box.worker for box in group.containers} - {box.worker for box in kept})
    gone = [Pruned(what="worker", id=worker, reason="nothing on it works without input") for worker in left]
    return replace(group, containers=kept, pruned=(*group.pruned, *_instances(group, dropped), *gone))


def _dropped(group: Group, scene: Scene) -> set[tuple[str, str]]:
    """Steps and the workers on which they get no rows; none of most groups, whose steps all work without input."""
    movable = {step for step in group.steps if may_go(scene.graph.steps[scene.graph.index[step]])}
    if not movable:
        return set()
    on = _placed(group)
    rows = _rows_on(group, scene, on)
    return {(step, worker) for step in on if step in movable and rows[step] for worker in on[step] - rows[step]}


def _placed(group: Group) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for box in group.containers:
        for step, _ in box.instances:
            found.setdefault(step, set()).add(box.worker)
    return {step: frozenset(workers) for step, workers in found.items()}


def _rows_on(group: Group, scene: Scene, on: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    """For each step the workers it is on to which rows may come."""
    order = [step for step in group.steps if step in on]
    start = {step: _starts(scene, step, on, scene.inbound.get(step, ())) for step in order}
    edges = [_edge(channel, on) for step in order for channel in scene.inbound.get(step, ()) if channel.src in on]
    reached = presence(order, start, edges, natural_sort({box.worker for box in group.containers}))
    return {step: reached[step] & on[step] for step in order}


def _starts(scene: Scene, name: str, on: Mapping[str, frozenset[str]], channels: Sequence[Channel]) -> frozenset[str]:
    """Where rows come to the step from outside its group: to the readers of its sources, or anywhere."""
    step = scene.graph.steps[scene.graph.index[name]]
    selections = [scene.selections[name, source.path] for source in step.sources]
    outside = any(channel.src not in on for channel in channels)
    if outside or not (channels or selections) or not all(selection.listed for selection in selections):
        return on[name]
    workers = [worker for worker in scene.cluster.workers if worker.id in on[name]]
    held = {
        f"{selection.path}/{spelled(partition)}": frozenset[str]().union(
            *(one.workers for one in held_by(partition.blocks, workers))
        )
        for selection in selections
        for partition in selection.needed
    }
    return frozenset(worker for worker, names in assigned(held, (), on[name]).items() if names)


def _edge(channel: Channel, on: Mapping[str, frozenset[str]]) -> Edge:
    """Forwarded rows stay on their worker if the next step is there too; else they may come to any."""
    here = channel.routing == "forward" and on[channel.src] <= on[channel.dst]
    return Edge(channel.src, channel.dst, "here" if here else "all")


def may_go(step: Step) -> bool:
    """Whether instances of the step to which no rows come are left out."""
    return step.mode == "batch" and not step.works_without_input


def _without(box: Container, dropped: Collection[tuple[str, str]]) -> Container:
    return replace(box, instances=tuple(one for one in box.instances if (one[0], box.worker) not in dropped))


def _instances(group: Group, dropped: Collection[tuple[str, str]]) -> Iterator[Pruned]:
    for box in group.containers:
        for step, index in box.instances:
            if (step, box.worker) in dropped:
                yield Pruned(what="instance", id=f"{step}/{index}", reason=f"no rows come to worker {box.worker!r}")
