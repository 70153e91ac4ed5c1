"""The facts a policy decides from: steps in their order with levels, sizes and reads; offers in natural order.

a ══> b ══> d      level 0: a     The batch form places level after level: a level is a barrier, what
    a ══> c ══> d      level 1: b c   ran before it has given back its memory and cores. The streaming form
                   level 2: d     has no levels: every instance holds what it needs from start to end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from airflow_dagsched.model.dataflow import Block, Dataflow, Step
from airflow_dagsched.model.graph import Graph
from airflow_dagsched.model.order import levels, natural_key, natural_sort
from airflow_dagsched.model.validate import valid_graph
from airflow_dagsched.placement.settings import PlacementSettings
from airflow_dagsched.placement.values import Amounts, Offer, Residency


class Input(Struct, frozen=True):
    """A channel into a step; ``src`` is the number of the step it comes from."""

    src: int
    bytes: int
    routing: str


class Work(Struct, frozen=True):
    """One step as a policy sees it."""

    step: str
    number: int
    parallelism: int
    needs: Amounts
    """Of one instance."""
    seconds: float
    level: int
    pinned: frozenset[str]
    inputs: tuple[Input, ...]
    blocks: tuple[Block, ...]
    """All it reads from outside, in order: instance ``i`` of ``p`` reads the ``i``-th of ``p`` even runs."""


class Request(Struct, frozen=True):
    """What is to be placed, where, and how."""

    name: str
    works: tuple[Work, ...]
    offers: tuple[Offer, ...]
    settings: PlacementSettings
    residency: Residency
    stateful: bool
    """Whether a streaming step keeps state."""
    beside: Mapping[tuple[int, int], str]
    """Workers that instances (number, index) have to be on, since what they receive is there."""

    @property
    def cap(self) -> int | None:
        """Instances of a container, at most: of all steps if they are resident, else of each; None: no cap."""
        return self.settings.max_instances_per_worker

    @property
    def instances(self) -> int:
        return sum(work.parallelism for work in self.works)

    def allowed(self, work: Work, index: int = 0) -> frozenset[str]:
        """The only workers that the instance may be on; empty: any."""
        worker = self.beside.get((work.number, index))
        return work.pinned if worker is None else frozenset((worker,))


def request_of(
    dataflow: Dataflow,
    offers: Sequence[Offer],
    settings: PlacementSettings,
    beside: Mapping[str, str] | None = None,
) -> Request:
    """The request to place ``dataflow``; ``beside`` maps ``step/index`` to a worker. Raises ``InvalidInput``."""
    graph = valid_graph(dataflow)
    streaming = [step for step in graph.steps if step.mode == "streaming"]
    return Request(
        name=dataflow.name,
        works=_works(graph, settings),
        offers=tuple(sorted(offers, key=lambda offer: natural_key(offer.id))),
        settings=settings,
        residency="all" if streaming else "slots",
        stateful=any(step.stateful for step in streaming),
        beside={_instance(graph, name): worker for name, worker in (beside or {}).items()},
    )


def _instance(graph: Graph, name: str) -> tuple[int, int]:
    step, _, index = name.rpartition("/")
    return graph.index[step], int(index)


def _works(graph: Graph, settings: PlacementSettings) -> tuple[Work, ...]:
    level = levels(graph.condensed, graph.order)
    inputs = _inputs(graph)
    return tuple(
        Work(
            step=step.id,
            number=number,
            parallelism=_parallelism(step, settings),
            needs=_needs(step, settings),
            seconds=step.runtime_s or settings.instance_runtime_s,
            level=level[graph.loop[number]],
            pinned=frozenset(step.pinned),
            inputs=inputs[number],
            blocks=_blocks(step),
        )
        for number, step in enumerate(graph.steps)
    )


def _parallelism(step: Step, settings: PlacementSettings) -> int:
    return (settings.step_parallelism or {}).get(step.id) or step.parallelism


def _needs(step: Step, settings: PlacementSettings) -> Amounts:
    """Zero means not declared: then the setting counts."""
    return Amounts(step.memory_mb or settings.instance_memory_mb, step.disk_mb or settings.instance_disk_mb, step.cores)


def _inputs(graph: Graph) -> list[tuple[Input, ...]]:
    found: list[list[Input]] = [[] for _ in graph.steps]
    for channel in graph.dataflow.channels:
        src, dst = graph.index[channel.src], graph.index[channel.dst]
        if src != dst:
            found[dst].append(Input(src, channel.bytes, channel.routing))
    return [tuple(sorted(inputs, key=lambda one: (one.src, one.bytes, one.routing))) for inputs in found]


def _blocks(step: Step) -> tuple[Block, ...]:
    """Of all partitions by path, then as listed; a partition without blocks is one whose hosts are unknown."""
    sources = {path: [source for source in step.sources if source.path == path] for path in _paths(step)}
    parts = (part for path in sources for source in sources[path] for part in source.partitions)
    return tuple(block for part in parts for block in part.blocks or (Block(bytes=part.bytes),))


def _paths(step: Step) -> list[str]:
    return natural_sort({source.path for source in step.sources})
