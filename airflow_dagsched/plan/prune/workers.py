"""Which workers a group needs: the owners of its partitions and those its steps are pinned to, nobody else.

    w1 holds day=1    w2 holds day=2, day=3    w3 holds nothing         where day = 2: w2
    shuffles, broadcasts and single-task stages run on whatever workers there are: they need none of their own

Two ways to be sure, after Jet: ``declared`` believes conditions that say what is needed of each source; ``analysed``
(the heavier one, drafted and dropped there) looks at all steps instead, and lets no worker go while a step that works
without input could be on it, or a broadcast could go there. ``auto`` takes what either source of facts gives, and a
worker goes with all that is on it. A wrong choice costs time, never rows: Spark reads from elsewhere. Rules M1, M2, M6.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property

from msgspec import Struct, field

from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.dataflow import Channel, Partition, Step
from airflow_dagsched.model.graph import Graph
from airflow_dagsched.plan.needs import need_of, padding
from airflow_dagsched.plan.prune.asked import Asked
from airflow_dagsched.plan.prune.owners import cover, held_by
from airflow_dagsched.plan.prune.steps import Selections, dataset_of
from airflow_dagsched.plan.settings import DEFAULTS, Settings


class Needed(Struct, frozen=True):
    """The workers a group needs, or why it may need any."""

    workers: frozenset[str] = field(default_factory=frozenset)
    any_because: str = ""


class Scene(Struct, frozen=True, dict=True):
    """All that the choice of workers depends on."""

    graph: Graph
    cluster: Cluster
    asked: Asked
    selections: Selections
    settings: Settings = DEFAULTS
    empty: frozenset[str] = frozenset()
    """Datasets without rows."""

    @cached_property
    def inbound(self) -> Mapping[str, Sequence[Channel]]:
        """The channels into each step, in an order of their own: that of the file means nothing."""
        found: dict[str, list[Channel]] = {}
        ordered = sorted(self.graph.dataflow.channels, key=lambda channel: (channel.src, channel.output, channel.dst))
        for channel in ordered:
            found.setdefault(channel.dst, []).append(channel)
        return found


def workers_needed(scene: Scene, running: Sequence[str]) -> Needed:
    """The workers that the group whose steps ``running`` are not left out needs. Facts, then the first objection."""
    steps = [scene.graph.steps[scene.graph.index[name]] for name in running]
    objection = next(_objections(scene, steps), "")
    if objection:
        return Needed(any_because=objection)
    partitions = list(_partitions(scene, steps))
    chosen = _chosen(scene, steps, partitions)
    problem = next(_problems(scene, steps, partitions, chosen), "")
    return Needed(any_because=problem) if problem else Needed(chosen)


def _objections(scene: Scene, steps: Sequence[Step]) -> Iterator[str]:
    """Why it is not known what the group reads."""
    inside = {step.id for step in steps}
    for step in steps:
        if not (step.sources or scene.inbound.get(step.id)):
            yield f"step {step.id!r} makes its rows itself: any worker may"
        yield from _unlisted(scene, step)
    for channel in _into(scene, steps):
        name = dataset_of(channel.src, channel.output)
        if channel.src not in inside and name not in scene.asked.stored and name not in scene.empty:
            yield f"who holds dataset {name!r} is not known"
    if scene.asked.mode == "analysed":
        yield from _analysed(scene, steps, inside)


def _into(scene: Scene, steps: Sequence[Step]) -> Iterator[Channel]:
    return (channel for step in steps for channel in scene.inbound.get(step.id, ()))


def _unlisted(scene: Scene, step: Step) -> Iterator[str]:
    for source in step.sources:
        selection = scene.selections[step.id, source.path]
        if not selection.listed:
            yield f"{source.path}, which step {step.id!r} reads: {selection.off}"
        elif scene.asked.mode == "declared" and not selection.is_declared:
            yield f"nothing says which partitions of {source.path} step {step.id!r} needs"


def _analysed(scene: Scene, steps: Sequence[Step], inside: Collection[str]) -> Iterator[str]:
    for step in steps:
        if step.works_without_input and not step.pinned:
            yield f"step {step.id!r} works without input, on any worker"
    for channel in _into(scene, steps):
        if channel.routing == "broadcast" and channel.src in inside:
            yield f"the rows from {channel.src!r} to {channel.dst!r} are broadcast to all workers"


def _partitions(scene: Scene, steps: Sequence[Step]) -> Iterator[Partition]:
    for step in steps:
        for source in step.sources:
            yield from scene.selections[step.id, source.path].needed
    for name in sorted({dataset_of(channel.src, channel.output) for channel in _into(scene, steps)}):
        if name in scene.asked.stored:
            yield from scene.asked.stored[name].partitions


def _chosen(scene: Scene, steps: Sequence[Step], partitions: Sequence[Partition]) -> frozenset[str]:
    known = {worker.id for worker in scene.cluster.workers}
    pinned = {worker for step in steps for worker in step.pinned if worker in known}
    blocks = (block for partition in partitions for block in partition.blocks)
    return cover(held_by(blocks, scene.cluster.workers), pinned)


def _problems(
    scene: Scene, steps: Sequence[Step], partitions: Sequence[Partition], chosen: Collection[str]
) -> Iterator[str]:
    """Why the chosen ones will not do."""
    if not partitions:
        yield "no partition is needed: any worker will do"
    blocks = [block for partition in partitions for block in partition.blocks]
    if not all(partition.blocks for partition in partitions) or not all(block.hosts for block in blocks):
        yield "who holds the data is not known: any worker is as near"
    if not all(one.workers for one in held_by(blocks, scene.cluster.workers)):
        yield "a host of the data is gone or has no free core"
    workers = [worker for worker in scene.cluster.workers if worker.id in chosen]
    for step in steps:
        if not any(_has_room(worker, step, scene.settings) for worker in workers):
            yield f"no worker that holds the data has room for step {step.id!r}"


def _has_room(worker: Worker, step: Step, settings: Settings) -> bool:
    need = need_of(step, settings)
    memory = need.memory_mb + padding(need.memory_mb, settings)
    allowed = not step.pinned or worker.id in step.pinned
    return allowed and need.cores <= worker.free_cores and memory <= worker.free_memory_mb
