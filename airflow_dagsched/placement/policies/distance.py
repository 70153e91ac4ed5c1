"""How far a worker is from what an instance reads: seconds to get the blocks there.

    host of a live replica   0
    its rack                 rack_share x what follows
    anywhere else            latencies + bytes / the lesser bandwidth, of worker and data node

A block whose hosts nobody knows is as far from all workers as the network makes it: no preference by place.
"""

from __future__ import annotations

from collections.abc import Sequence

from airflow_dagsched.model.dataflow import Block
from airflow_dagsched.model.units import MIB
from airflow_dagsched.placement.request import Request, StepRequest
from airflow_dagsched.placement.settings import PlacementSettings
from airflow_dagsched.placement.values import Offer


def select_blocks(step: StepRequest, index: int) -> tuple[Block, ...]:
    """The blocks that one instance reads: the ``index``-th of as many even runs as there are instances."""
    # ceil(i n / p): runs that differ by one block at most, and leave none out.
    first, end = (-(-at * len(step.blocks) // step.parallelism) for at in (index, index + 1))
    return step.blocks[first:end]


class OfferSites:
    """The offers by host and by rack, and how fast each is: made once, asked for each instance."""

    def __init__(self, request: Request) -> None:
        self.offers = request.offers
        self._settings, self._racks = request.settings, request.racks
        self._on_host: dict[str, list[int]] = {}
        self._in_rack: dict[str, list[int]] = {}
        for at, offer in enumerate(self.offers):
            self._on_host.setdefault(offer.host, []).append(at)
            if offer.rack is not None:
                self._in_rack.setdefault(offer.rack, []).append(at)

    def compute_read_seconds(self, blocks: Sequence[Block]) -> list[float]:
        """Seconds to get all ``blocks`` to each offer; rounded to the nanosecond, so that equals are equal."""
        count, size = len(blocks), sum(block.bytes for block in blocks)
        each = size / max(1, count)
        # All as if far, less what is saved near: a block is near few of the offers.
        seconds = [count * compute_transfer_seconds(each, offer, self._settings) for offer in self.offers]
        for block in blocks:
            for at, saved in self._find_savings(block).items():
                seconds[at] -= saved * compute_transfer_seconds(block.bytes, self.offers[at], self._settings)
        return [round(value, 9) for value in seconds]

    def _find_savings(self, block: Block) -> dict[int, float]:
        """Offers near ``block``, with the share of the transfer that they save: all of it on a replica's host."""
        local = [at for host in block.hosts for at in self._on_host.get(host, ())]
        # A replica's host may be full, and offer nothing: its rack is where it was.
        racks = sorted({rack for host in block.hosts if (rack := self._racks.get(host)) is not None})
        saved = {at: 1 - self._settings.rack_share for rack in racks for at in self._in_rack.get(rack, ())}
        return {**saved, **dict.fromkeys(local, 1.0)}


def compute_transfer_seconds(count: float, offer: Offer, settings: PlacementSettings) -> float:
    """Seconds to get so many bytes from a data node to the worker of ``offer``."""
    # The slower end decides.
    bandwidth = min(offer.bandwidth_mb_s or settings.worker_bandwidth_mb_s, settings.datanode_bandwidth_mb_s)
    latency = settings.worker_latency_s if offer.latency_s is None else offer.latency_s
    return latency + settings.datanode_latency_s + count / MIB / bandwidth
