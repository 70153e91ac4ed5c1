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
from airflow_dagsched.plan.needs import measure_padding, resolve_step_needs
from airflow_dagsched.plan.pruning.owners import Held, cover_blocks, find_holders, join_holders
from airflow_dagsched.plan.pruning.pruning_input import PruningInput
from airflow_dagsched.plan.pruning.steps import Selections, name_dataset
from airflow_dagsched.plan.reasons.pruning import (
    Broadcast,
    ConditionMissing,
    HolderUnknown,
    MakesRows,
    NoRoomForStep,
    SourceUnknown,
    WorkerObjection,
    WorksAnywhere,
)
from airflow_dagsched.plan.settings import DEFAULTS, Settings


class Needed(Struct, frozen=True):
    """The workers a group needs, or why it may need any."""

    workers: frozenset[str] = field(default_factory=frozenset)
    any_because: WorkerObjection | None = None


class Scene(Struct, frozen=True, dict=True):
    """All that the choice of workers depends on."""

    graph: Graph
    cluster: Cluster
    asked: PruningInput
    selections: Selections
    settings: Settings = DEFAULTS
    empty: frozenset[str] = frozenset()
    """Datasets without rows."""
    with_all_holders: bool = False
    """Whether all who hold something needed stay, not the fewest that hold all of it."""

    @cached_property
    def channels_into(self) -> Mapping[str, Sequence[Channel]]:
        """The channels into each step, in an order of their own: that of the file means nothing."""
        found: dict[str, list[Channel]] = {}
        ordered = sorted(self.graph.dataflow.channels, key=lambda channel: (channel.src, channel.output, channel.dst))
        for channel in ordered:
            found.setdefault(channel.dst, []).append(channel)
        return found


def find_needed_workers(scene: Scene, running: Sequence[str]) -> Needed:
    """The workers that the group whose steps ``running`` are not left out needs. Facts, then the first objection."""
    steps = [scene.graph.steps[scene.graph.index[name]] for name in running]
    # The first is enough, and the cheapest come first.
    objection = next(_list_objections(scene, steps), None)
    if objection is not None:
        return Needed(any_because=objection)
    partitions = list(_list_partitions(scene, steps))
    chosen = _choose_workers(scene, steps, partitions)
    problem = next(_list_problems(scene, steps, partitions), None)
    return Needed(chosen) if problem is None else Needed(any_because=problem)


def _list_objections(scene: Scene, steps: Sequence[Step]) -> Iterator[WorkerObjection]:
    """Why it is not known what the group reads."""
    inside = {step.id for step in steps}
    for step in steps:
        # Rows out of nothing can be made on any worker, so none of them may be missing.
        if not (step.sources or scene.channels_into.get(step.id)):
            yield MakesRows(step.id)
        yield from _list_unlisted(scene, step)
    for channel in _list_channels_into(scene, steps):
        name = name_dataset(channel.src, channel.output)
        # At a parse, and before the earlier group has run, nobody knows where it will have written.
        if channel.src not in inside and name not in scene.asked.stored and name not in scene.empty:
            yield HolderUnknown(name)
    if scene.asked.mode == "analysed":
        yield from _list_unanalysed(scene, steps, inside)


def _list_channels_into(scene: Scene, steps: Sequence[Step]) -> Iterator[Channel]:
    return (channel for step in steps for channel in scene.channels_into.get(step.id, ()))


def _list_unlisted(scene: Scene, step: Step) -> Iterator[WorkerObjection]:
    # By path: of several sources the first objection is told, however they are listed.
    for source in sorted(step.sources, key=lambda source: source.path):
        selection = scene.selections[step.id, source.path]
        if not selection.listed:
            yield SourceUnknown(source.path, step.id, selection.objection or "not listed")
        elif scene.asked.mode == "declared" and not selection.is_declared:
            yield ConditionMissing(source.path, step.id)


def _list_unanalysed(scene: Scene, steps: Sequence[Step], inside: Collection[str]) -> Iterator[WorkerObjection]:
    for step in steps:
        if step.works_without_input and not step.pinned:
            yield WorksAnywhere(step.id)
    for channel in _list_channels_into(scene, steps):
        if channel.routing == "broadcast" and channel.src in inside:
            yield Broadcast(channel.src, channel.dst)


def _list_partitions(scene: Scene, steps: Sequence[Step]) -> Iterator[Partition]:
    for step in steps:
        for source in step.sources:
            yield from scene.selections[step.id, source.path].needed
    for name in sorted({name_dataset(channel.src, channel.output) for channel in _list_channels_into(scene, steps)}):
        if name in scene.asked.stored:
            yield from scene.asked.stored[name].partitions


def _choose_workers(scene: Scene, steps: Sequence[Step], partitions: Sequence[Partition]) -> frozenset[str]:
    held = _find_holders(scene, partitions)
    pinned = _list_pinned(scene, steps)
    return join_holders(held, pinned) if scene.with_all_holders else cover_blocks(held, pinned)


def _find_holders(scene: Scene, partitions: Sequence[Partition]) -> list[Held]:
    blocks = (block for partition in partitions for block in partition.blocks)
    return find_holders(blocks, scene.cluster.workers)


def _list_pinned(scene: Scene, steps: Sequence[Step]) -> set[str]:
    known = {worker.id for worker in scene.cluster.workers}
    return {worker for step in steps for worker in step.pinned if worker in known}


def _list_problems(scene: Scene, steps: Sequence[Step], partitions: Sequence[Partition]) -> Iterator[WorkerObjection]:
    """Why those who hold the data will not do."""
    if not partitions:
        yield "no partition needed"
    blocks = [block for partition in partitions for block in partition.blocks]
    if not all(partition.blocks for partition in partitions) or not all(block.hosts for block in blocks):
        yield "holders unknown"
    held = _find_holders(scene, partitions)
    # Some block will be read from afar anyway: then no worker is better than another.
    if not all(one.workers for one in held):
        yield "holder gone"
    # All of them, not those of the least cover alone: where these are too small the others are there, too.
    holders = join_holders(held, _list_pinned(scene, steps))
    workers = [worker for worker in scene.cluster.workers if worker.id in holders]
    for step in steps:
        if not any(_has_room(worker, step, scene.settings) for worker in workers):
            yield NoRoomForStep(step.id)


def _has_room(worker: Worker, step: Step, settings: Settings) -> bool:
    need = resolve_step_needs(step, settings)
    memory = need.memory_mb + measure_padding(need.memory_mb, settings)
    allowed = not step.pinned or worker.id in step.pinned
    return allowed and need.cores <= worker.free_cores and memory <= worker.free_memory_mb
