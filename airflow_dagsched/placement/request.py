"""The facts a policy decides from: steps in their order with levels, sizes and reads; offers in natural order.

a ══> b ══> d      level 0: a     The batch form places level after level: a level is a barrier, what
    a ══> c ══> d      level 1: b c   ran before it has given back its memory and cores. The streaming form
                   level 2: d     has no levels: every instance holds what it needs from start to end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from airflow_dagsched.model.dataflow import Block, Dataflow, Partition, Step
from airflow_dagsched.model.graph import Graph
from airflow_dagsched.model.order import measure_levels, natural_key, sort_naturally
from airflow_dagsched.model.partition_order import sort_blocks, sort_partitions
from airflow_dagsched.model.validate import build_valid_graph
from airflow_dagsched.placement.containers.sizing import resolve_needs, resolve_runtime
from airflow_dagsched.placement.settings import PlacementSettings
from airflow_dagsched.placement.values import Amounts, Offer, Residency


class InputChannel(Struct, frozen=True):
    """A channel into a step; ``src`` is the number of the step it comes from."""

    src: int
    bytes: int
    routing: str


class StepRequest(Struct, frozen=True):
    """One step as a policy sees it."""

    id: str
    number: int
    parallelism: int
    needs: Amounts
    """What one instance needs."""
    seconds: float
    level: int
    pinned: frozenset[str]
    inputs: tuple[InputChannel, ...]
    blocks: tuple[Block, ...]
    """All it reads from outside, in order: instance ``i`` of ``p`` reads the ``i``-th of ``p`` even runs."""


class Request(Struct, frozen=True):
    """What is to be placed, where, and how."""

    name: str
    steps: tuple[StepRequest, ...]
    offers: tuple[Offer, ...]
    settings: PlacementSettings
    residency: Residency
    stateful: bool
    """Whether a step keeps state."""
    beside: Mapping[tuple[int, int], str]
    """Workers that instances (number, index) have to be on, since what they receive is there."""
    racks: Mapping[str, str]
    """Host -> its rack: of all that are known, also of hosts without an offer."""

    @property
    def is_capped(self) -> bool:
        """Whether containers or workers hold so many instances at most: of all if resident, else of each step."""
        return bool(self.settings.instances_per_container or self.settings.max_instances_per_worker)

    @property
    def instance_count(self) -> int:
        """Instances of all steps together."""
        return sum(step.parallelism for step in self.steps)

    def list_instances(self) -> list[tuple[StepRequest, int]]:
        """Step and index of every instance, in the order of the steps."""
        return [(step, index) for step in self.steps for index in range(step.parallelism)]

    def sum_needs(self, at: int) -> float:
        """What all instances need together of dimension ``at``."""
        return sum(step.needs.list_values()[at] * step.parallelism for step in self.steps)

    def get_allowed_workers(self, step: StepRequest, index: int = 0) -> frozenset[str]:
        """The only workers that the instance may be on; empty: any."""
        # Where what it receives is goes before where the author would have it.
        worker = self.beside.get((step.number, index))
        return step.pinned if worker is None else frozenset((worker,))


def make_request(
    dataflow: Dataflow,
    offers: Sequence[Offer],
    settings: PlacementSettings,
    beside: Mapping[str, str] | None = None,
    *,
    racks: Mapping[str, str] | None = None,
) -> Request:
    """The request to place ``dataflow``; ``beside`` maps ``step/index`` to a worker. Raises ``InvalidInput``.

    :param racks: of hosts without an offer, too; None: those that the offers tell.
    """
    graph = build_valid_graph(dataflow)
    streaming = [step for step in graph.steps if step.mode == "streaming"]
    return Request(
        name=dataflow.name,
        steps=_list_steps(graph, settings),
        offers=tuple(sorted(offers, key=lambda offer: natural_key(offer.id))),
        settings=settings,
        residency="all" if streaming else "slots",
        stateful=any(step.stateful for step in graph.steps),
        beside={_parse_instance(graph, name): worker for name, worker in (beside or {}).items()},
        racks={offer.host: offer.rack for offer in offers if offer.rack is not None} if racks is None else racks,
    )


def _parse_instance(graph: Graph, name: str) -> tuple[int, int]:
    step, _, index = name.rpartition("/")
    return graph.index[step], int(index)


def _list_steps(graph: Graph, settings: PlacementSettings) -> tuple[StepRequest, ...]:
    level = measure_levels(graph.condensed, graph.order)
    inputs = _list_inputs(graph)
    return tuple(
        StepRequest(
            id=step.id,
            number=number,
            parallelism=_get_parallelism(step, settings),
            needs=_get_needs(step, settings),
            seconds=resolve_runtime(step.runtime_s, settings.instance_runtime_s),
            level=level[graph.loop[number]],
            pinned=frozenset(step.pinned),
            inputs=inputs[number],
            blocks=_list_blocks(step),
        )
        for number, step in enumerate(graph.steps)
    )


def _get_parallelism(step: Step, settings: PlacementSettings) -> int:
    # None as a value is Twister2's: a constraint without a number of its own.
    return (settings.step_parallelism or {}).get(step.id) or step.parallelism


def _get_needs(step: Step, settings: PlacementSettings) -> Amounts:
    cores, memory_mb, disk_mb = resolve_needs(step, settings.instance_memory_mb, settings.instance_disk_mb)
    return Amounts(memory_mb, disk_mb, cores)


def _list_inputs(graph: Graph) -> list[tuple[InputChannel, ...]]:
    inputs: list[list[InputChannel]] = [[] for _ in graph.steps]
    for channel in graph.dataflow.channels:
        src, dst = graph.index[channel.src], graph.index[channel.dst]
        if src != dst:  # a step that reads its own output moves nothing between workers
            inputs[dst].append(InputChannel(src, channel.bytes, channel.routing))
    # Channels in one order, however the author wrote them: equal dataflows make equal requests.
    return [tuple(sorted(into, key=lambda each: (each.src, each.bytes, each.routing))) for into in inputs]


def _list_blocks(step: Step) -> tuple[Block, ...]:
    """Blocks of all partitions by path, then in one order however they are listed."""
    listed: dict[str, list[Partition]] = {}
    for source in step.sources:
        listed.setdefault(source.path, []).extend(source.partitions)
    parts = (part for path in sort_naturally(listed) for part in sort_partitions(listed[path]))
    return tuple(block for part in parts for block in sort_blocks(part))
