"""Which windows are whose, by the fences.

::

    epoch 1  ────────┤ upto 30
    epoch 2          ├────────┤ upto 60      (30, 60]
    epoch 3                   ├───────
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf

from airflow_dagsched.switch.checking.facts import Log


@dataclass(frozen=True, slots=True)
class Owned:
    """The windows of an epoch: those behind ``after``, up to and with ``upto``."""

    epoch: int
    after: float
    upto: float
    query: str = ""
    """Empty: of all its queries."""

    def has(self, window: float) -> bool:
        return self.after < window <= self.upto


def find_owned(log: Log, epoch: int, query: str, before: float = inf) -> Owned:
    """What the records before a number give the epoch; nothing, if no window is its own."""
    into, out = log.find_fence_into(epoch, before), log.find_fence_out_of(epoch, before)
    if into is None and epoch != _find_first_owner(log, before):
        return Owned(epoch, inf, inf, query)
    return Owned(epoch, into.find_bound(query) if into else -inf, out.find_bound(query) if out else inf, query)


def _find_first_owner(log: Log, before: float) -> int | None:
    """Who owns windows without a fence: by the first fence, else the first that was not given up."""
    for fence in log.fences:
        if fence.n < before:
            return fence.old
    alive = (each for each in log.epochs if log.find_first("aborted", each) >= before)
    return min(alive, default=None)


def list_owned(log: Log) -> Iterator[Owned]:
    """Owners in the order of their windows."""
    for epoch in sorted(log.epochs):
        owned = [find_owned(log, epoch, query) for query in sorted(_list_queries(log, epoch))]
        unlike = {(each.after, each.upto) for each in owned}
        told = owned if len(unlike) > 1 else [replace(owned[0], query="")]
        yield from (each for each in told if each.after < each.upto)


def _list_queries(log: Log, epoch: int) -> set[str]:
    fences = (log.find_fence_into(epoch), log.find_fence_out_of(epoch))
    named = {query for fence in fences if fence for query in fence.by_query}
    return named | {each.query for each in log.batches if each.epoch == epoch} or {""}
