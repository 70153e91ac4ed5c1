"""Which workers hold the needed data: the least set that covers it, all of them, and who reads what.

A partition has blocks, a block has hosts (replicas). Cover: greedily the worker with the most bytes not covered yet
(Chvatal 1979), pinned workers first, ties in natural order. A host that is no live worker counts for nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct

from airflow_dagsched.model.cluster import Worker
from airflow_dagsched.model.dataflow import Block
from airflow_dagsched.model.order import sort_naturally


class Held(Struct, frozen=True):
    """Some bytes and the workers that hold them."""

    bytes: int
    workers: frozenset[str]


def find_holders(blocks: Iterable[Block], workers: Collection[Worker]) -> list[Held]:
    """The blocks with their live holders. A worker without a free core runs nothing: it is none."""
    on: dict[str, list[str]] = {}
    for worker in workers:
        # Several workers may be on one host: each of them reads its disks.
        if worker.free_cores:
            on.setdefault(worker.host, []).append(worker.id)
    return [Held(block.bytes, frozenset(name for host in block.hosts for name in on.get(host, ()))) for block in blocks]


def cover_blocks(held: Iterable[Held], pinned: Iterable[str] = ()) -> frozenset[str]:
    """Workers so that each block which has holders has one among them, and all of ``pinned``."""
    chosen = set(pinned)
    # Blocks without a live holder are nobody's gain: they are read from afar, wherever the step runs.
    open_ = {at: one for at, one in enumerate(held) if one.workers and chosen.isdisjoint(one.workers)}
    of: dict[str, list[int]] = {}
    for at, one in open_.items():
        for worker in one.workers:
            of.setdefault(worker, []).append(at)
    gain = {worker: sum(_weigh_block(open_[at]) for at in of[worker]) for worker in sort_naturally(of)}
    while open_:
        best = max(gain, key=gain.__getitem__)  # the first of equals, in natural order
        chosen.add(best)
        for one in (open_.pop(at) for at in of[best] if at in open_):
            for worker in one.workers:
                # Kept up to date instead of summed anew: a table may have 100,000 blocks.
                gain[worker] -= _weigh_block(one)
    return frozenset(chosen)


def join_holders(held: Iterable[Held], pinned: Iterable[str] = ()) -> frozenset[str]:
    """All workers that hold something, and all of ``pinned``."""
    return frozenset(pinned).union(*(one.workers for one in held))


def _weigh_block(one: Held) -> int:
    """A block of unknown size counts too."""
    return max(1, one.bytes)


def assign_readers(
    partitions: Mapping[str, frozenset[str]], pinned: Iterable[str], workers: Iterable[str]
) -> dict[str, tuple[str, ...]]:
    """Who reads which partition, given each one's holders; the keys are the required workers.

    A partition without a holder among ``workers`` is dealt to all of them in turn (rule A2); a pinned worker is
    required, though it may hold nothing (A3).
    """
    live = sort_naturally(workers)
    names = sort_naturally(partitions)
    orphans = [name for name in names if partitions[name].isdisjoint(live)]
    # Dealt in turn: all of them on one worker would make it the last to end.
    reader = dict(zip(orphans, deal_turns(len(orphans), live), strict=True))
    for name in names:
        reader.setdefault(name, next((worker for worker in live if worker in partitions[name]), ""))
    required = sort_naturally({*reader.values(), *pinned})
    return {worker: tuple(name for name in names if reader[name] == worker) for worker in required}


def deal_turns(count: int, workers: Sequence[str], first: int = 0) -> list[str]:
    """``count`` turns over ``workers``, starting with number ``first``."""
    return [workers[(first + at) % len(workers)] for at in range(count)]
