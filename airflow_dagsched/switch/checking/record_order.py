"""Numbers, times and epochs in their order, and what may come behind what."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from airflow_dagsched.switch.checking.facts import Log, MarkKind, Violation

CLOCKS_S = 60.0
"""By so much the clocks of hosts may differ."""
ONCE: tuple[MarkKind, ...] = ("epoch", "drained", "current", "aborted")
"""What an epoch comes to once; it may be started and stopped again."""


def check_times(log: Log) -> Iterator[Violation]:
    """No record is of a time long before those that were there already."""
    newest = -inf
    for n, at in log.times:
        if at < newest - CLOCKS_S:
            yield Violation("clock", n, f"is {newest - at:.10g} s older than one before it")
        newest = max(newest, at)


def check_epochs(log: Log) -> Iterator[Violation]:
    """They are 1, 2, 3 ..; of long ago a snapshot may have left some out."""
    before = 0
    for each in sorted(log.epochs.values(), key=lambda each: each.n):
        follows = before < each.epoch if each.n <= log.compacted else each.epoch == before + 1
        if not follows:
            yield Violation("epoch", each.n, f"epoch {each.epoch} is asked for behind epoch {before}")
        before = max(before, each.epoch)


def check_known(log: Log) -> Iterator[Violation]:
    """Nothing is said of an epoch before it is asked for."""
    said = [(n, epoch) for (_, epoch), numbers in log.marks.items() for n in numbers]
    said += [(each.n, each.epoch) for each in log.batches]
    said += [(each.n, epoch) for each in log.fences for epoch in (each.old, each.new) if not log.is_forgotten(epoch)]
    for n, epoch in sorted(said):
        if log.find_first("epoch", epoch) > n:
            yield Violation("epoch", n, f"epoch {epoch} has not been asked for yet")


def check_once(log: Log) -> Iterator[Violation]:
    """What can happen to an epoch once is recorded once."""
    for (kind, epoch), numbers in log.marks.items():
        if kind in ONCE:
            for n in numbers[1:]:
                yield Violation("twice", n, f"{kind!r} of epoch {epoch} was record {numbers[0]} already")


def check_one_switch(log: Log) -> Iterator[Violation]:
    """An epoch is asked for when the one before it is settled: the owner, or given up."""
    for each in log.epochs.values():
        for other in log.epochs:
            settled = min(log.find_first("current", other), log.find_first("aborted", other))
            if other < each.epoch and settled > each.n:
                yield Violation(
                    "switch",
                    each.n,
                    f"epoch {each.epoch} is asked for while epoch {other} is neither current nor aborted",
                )


def check_aborted(log: Log) -> Iterator[Violation]:
    """Only what owns no window can be given up, and then it is over."""
    for epoch in log.epochs:
        aborted = log.find_first("aborted", epoch)
        fence = log.find_fence_into(epoch)
        if aborted < inf and fence:
            yield Violation(
                "aborted", int(max(aborted, fence.n)), f"epoch {epoch} is aborted, and owns windows behind a fence"
            )
        later = [
            n for kind in ("started", "drained", "current") for n in log.marks.get((kind, epoch), ()) if n > aborted
        ]
        yield from (Violation("aborted", n, f"epoch {epoch} was aborted by record {aborted}") for n in sorted(later))


def check_started(log: Log) -> Iterator[Violation]:
    """What is drained has nothing left to start for."""
    for (kind, epoch), numbers in log.marks.items():
        drained = log.find_first("drained", epoch)
        if kind == "started":
            yield from (
                Violation("started", n, f"epoch {epoch} was drained by record {drained}")
                for n in numbers
                if n > drained
            )


def check_drained(log: Log) -> Iterator[Violation]:
    """An epoch is drained when each query's watermark has passed the fence; what hands its state on, at once."""
    for epoch in log.epochs:
        drained = log.find_first("drained", epoch)
        if drained < inf:
            yield from _check_drained(log, epoch, int(drained))


def _check_drained(log: Log, epoch: int, drained: int) -> Iterator[Violation]:
    fence = log.find_fence_out_of(epoch, drained)
    if fence is None:
        yield Violation("drained", drained, f"epoch {epoch} has no fence to drain up to")
        return
    successor = log.epochs.get(fence.new)
    if successor and (successor.channel == "carry" or successor.overlap == "cold"):
        return
    # Of a query without a batch nobody knows what it would have emitted.
    reached = dict.fromkeys(log.epochs[epoch].queries, -inf)
    for each in log.batches:
        if each.epoch == epoch and each.n < drained:
            reached[each.query] = max(reached.get(each.query, -inf), each.watermark)
    for query, watermark in reached.items():
        if watermark < fence.find_bound(query):
            behind = f"the watermark of {query!r} was {watermark:.10g}, the fence is {fence.find_bound(query):.10g}"
            yield Violation("drained", drained, f"epoch {epoch} is not: {behind}")


def check_current(log: Log) -> Iterator[Violation]:
    """An epoch is the owner when the one before it is drained; the first, when it has started."""
    for epoch in log.epochs:
        current = log.find_first("current", epoch)
        if current < inf:
            yield from _check_current(log, epoch, int(current))


def _check_current(log: Log, epoch: int, current: int) -> Iterator[Violation]:
    fence = log.find_fence_into(epoch, current)
    earlier = [other for other in log.epochs if log.find_first("current", other) < current]
    if fence is None:
        if earlier:
            yield Violation("current", current, f"no fence gives epoch {epoch} the windows of epoch {max(earlier)}")
        elif current > log.compacted and log.find_first("started", epoch) > current:
            yield Violation("current", current, f"epoch {epoch} has not started")
    elif not log.is_forgotten(fence.old) and log.find_first("drained", fence.old) > current:
        yield Violation("current", current, f"epoch {fence.old} is not drained")


RULES = (
    check_times, check_epochs, check_known, check_once, check_one_switch, check_aborted, check_started, check_drained,
    check_current,
)  # fmt: skip
