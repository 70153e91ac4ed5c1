"""Step instances that get no rows: a scan with fewer tasks than instances, a worker to which no rows come.

    before placement: a scan of 3 tasks, parallelism 8                      instances 3 to 7 have nothing to read
    after:            w1 [scan/0 clean/0]  w2 [scan/1 clean/1]  w2 holds    scan/1 and clean/1 go, then the container,
                      nothing of the day                                    then w2 (Jet's "null supplier")

An instance goes only if its step does no work without input, but for scans: Spark makes a task of a split, never of
none. Where each instance of a scan has a block of its own, all stay: what is planned far from its block reads it from
afar. (A step that reads another's rows where they are stored is as wide as if they were handed on.) One instance of a
step that runs always stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec.structs import replace

from airflow_dagsched.model.cluster import Worker
from airflow_dagsched.model.dataflow import Channel, Partition, Step
from airflow_dagsched.model.order import sort_naturally
from airflow_dagsched.plan.plan_types import Container, Group, Pruned
from airflow_dagsched.plan.pruning.owners import assign_readers, find_holders
from airflow_dagsched.plan.pruning.presence import Edge, spread_presence
from airflow_dagsched.plan.pruning.tasks import SCAN_SETTINGS, scan_tasks
from airflow_dagsched.plan.pruning.workers import Scene
from airflow_dagsched.plan.reasons.pruning import NoRowsOnWorker, TooManyInstances
from airflow_dagsched.plan.report.sentences import say_pruned


def count_useful_instances(scene: Scene, running: Sequence[str]) -> dict[str, int]:
    """For each running step how many of its instances, the first so many, may get rows."""
    found: dict[str, int] = {}
    for name in running:
        step, channels = scene.graph.steps[scene.graph.index[name]], scene.channels_into.get(name, ())
        # In the order of ``running``, which is topological: what a step reads is counted before it.
        found[name] = min(step.parallelism, _count_most_instances(scene, step, channels, found))
    return found


def _count_most_instances(scene: Scene, step: Step, channels: Sequence[Channel], found: Mapping[str, int]) -> int:
    if step.mode == "streaming":
        return step.parallelism
    if not channels:
        # One stays even without a task: the step runs, and writes its output, if only an empty one.
        return max(1, _count_tasks(scene, step)) if step.sources else step.parallelism
    alike = (scene.graph.steps[scene.graph.index[channel.src]].parallelism == step.parallelism for channel in channels)
    # Only forwarded rows stay in their instance; a shuffle may fill any.
    here = all(channel.routing == "forward" and channel.src in found for channel in channels)
    if step.works_without_input or step.sources or not (here and all(alike)):
        return step.parallelism
    return max(found[channel.src] for channel in channels)


def _count_tasks(scene: Scene, step: Step) -> int:
    selections = [scene.selections[step.id, source.path] for source in step.sources]
    # What an earlier group stored is cut into files by how that group wrote it, not by partitions.
    if not all(one.listed and one.path not in scene.asked.stored for one in selections):
        return step.parallelism
    # Then how scans are cut is the author's, and a launch says nothing of it.
    if any(name.startswith(SCAN_SETTINGS) for name in step.application):
        return step.parallelism
    # Each is a scan of its own, cut into as many tasks as the step has instances.
    tasks = [scan_tasks(selection.needed, step.parallelism) for selection in selections]
    return step.parallelism if None in tasks else sum(filter(None, tasks))


def list_surplus(scene: Scene, running: Sequence[str]) -> Iterator[Pruned]:
    """An entry for each instance that gets no rows, told before placement."""
    for name, useful in count_useful_instances(scene, running).items():
        reason = say_pruned(TooManyInstances(useful))
        for index in range(useful, scene.graph.steps[scene.graph.index[name]].parallelism):
            yield Pruned(what="instance", id=f"{name}/{index}", reason=reason)


def trim_group(group: Group, scene: Scene) -> Group:
    """The placed group without the instances to whose worker no rows come, and without what that leaves empty."""
    dropped = _find_dropped(group, scene)
    if not dropped:
        return group
    kept = [box for box in _remove_instances(group, dropped) if box.instances or box.standbys or box.warmups]
    # Executors first, as everywhere: what holds copies alone is none.
    kept.sort(key=lambda box: not box.instances)
    left = sort_naturally({box.worker for box in group.containers} - {box.worker for box in kept})
    gone = [Pruned(what="worker", id=worker, reason=say_pruned("worker idle")) for worker in left]
    return replace(
        group, containers=tuple(kept), pruned=(*group.pruned, *_list_dropped_instances(group, dropped), *gone)
    )


def _find_dropped(group: Group, scene: Scene) -> set[tuple[str, str]]:
    """Steps and the workers on which they get no rows; none of most groups, whose steps all work without input."""
    # Most steps work without input: then nothing need be traced.
    movable = {step for step in group.steps if may_go(scene.graph.steps[scene.graph.index[step]])}
    if not movable:
        return set()
    on = _list_workers_by_step(group)
    rows = _find_workers_with_rows(group, scene, on)
    # ``rows[step]``: with rows on no worker at all one instance would still have to stay, so all do.
    return {(step, worker) for step in on if step in movable and rows[step] for worker in on[step] - rows[step]}


def _list_workers_by_step(group: Group) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for box in group.containers:
        for step, _ in box.instances:
            found.setdefault(step, set()).add(box.worker)
    return {step: frozenset(workers) for step, workers in found.items()}


def _find_workers_with_rows(group: Group, scene: Scene, on: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    """For each step the workers it is on to which rows may come."""
    order = [step for step in group.steps if step in on]
    counts = Counter(step for box in group.containers for step, _ in box.instances)
    start = {step: _find_entry_workers(scene, step, counts[step], on) for step in order}
    edges = [
        _draw_edge(channel, on) for step in order for channel in scene.channels_into.get(step, ()) if channel.src in on
    ]
    reached = spread_presence(order, start, edges, sort_naturally({box.worker for box in group.containers}))
    return {step: reached[step] & on[step] for step in order}


def _find_entry_workers(scene: Scene, name: str, instances: int, on: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Where rows come to the step from outside its group: to the readers of its sources, or anywhere."""
    step, channels = scene.graph.steps[scene.graph.index[name]], scene.channels_into.get(name, ())
    selections = [scene.selections[name, source.path] for source in step.sources]
    outside = any(channel.src not in on for channel in channels)
    # Rows from another group, made here, or from a source nobody has listed, may turn up anywhere.
    if outside or not (channels or selections) or not all(selection.listed for selection in selections):
        return on[name]
    workers = [worker for worker in scene.cluster.workers if worker.id in on[name]]
    needed = [partition for selection in selections for partition in selection.needed]
    held = [found for partition in needed for found in _find_block_holders(partition, workers)]
    # Each instance is a task: with a block for each, what is planned far from its own reads it from afar.
    return on[name] if len(held) >= instances else _find_readers(held, on[name])


def _find_block_holders(partition: Partition, workers: Collection[Worker]) -> Sequence[frozenset[str]]:
    """Of each of its blocks; one that nobody holds where it is not known what it consists of."""
    return [one.workers for one in find_holders(partition.blocks, workers)] or [frozenset()]


def _find_readers(held: Sequence[frozenset[str]], workers: Collection[str]) -> frozenset[str]:
    """Which of the workers read blocks, given the holders of each."""
    # Whoever has a copy may be whom Spark hands it to; what nobody here has is dealt out.
    near = {f"on {worker}": frozenset({worker}) for worker in frozenset[str]().union(*held)}
    far = {f"block {at}": holders for at, holders in enumerate(held) if not holders}
    return frozenset(worker for worker, read in assign_readers({**near, **far}, (), workers).items() if read)


def _draw_edge(channel: Channel, on: Mapping[str, frozenset[str]]) -> Edge:
    """Forwarded rows stay on their worker if the next step is there too; else they may come to any."""
    # Where the reader is not on all its writer's workers, rows of the others may come to any.
    here = channel.routing == "forward" and on[channel.src] <= on[channel.dst]
    return Edge(channel.src, channel.dst, "here" if here else "all")


def may_go(step: Step) -> bool:
    """Whether instances of the step to which no rows come are left out."""
    return step.mode == "batch" and not step.works_without_input


def _remove_instances(group: Group, dropped: Collection[tuple[str, str]]) -> Iterator[Container]:
    """The containers without the instances, and without the copies of their state, which are on other workers."""
    # Each instance is active once: so those that go can be told from copies elsewhere by name alone.
    gone = {one for box in group.containers for one in box.instances if (one[0], box.worker) in dropped}
    for box in group.containers:
        held = (box.instances, box.standbys, box.warmups)
        instances, standbys, warmups = (tuple(one for one in role if one not in gone) for role in held)
        yield replace(box, instances=instances, standbys=standbys, warmups=warmups)


def _list_dropped_instances(group: Group, dropped: Collection[tuple[str, str]]) -> Iterator[Pruned]:
    for box in group.containers:
        for step, index in box.instances:
            if (step, box.worker) in dropped:
                yield Pruned(what="instance", id=f"{step}/{index}", reason=say_pruned(NoRowsOnWorker(box.worker)))
