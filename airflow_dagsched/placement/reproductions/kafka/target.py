"""The target of trunk: dealt round robin, then levelled by single moves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from airflow_dagsched.placement.high_availability.copies import Copies

MayMove = Callable[[int, int], bool]
"""Whether copies may go from a worker to another."""


def allow_any(source: int, target: int) -> bool:
    """No bounds."""
    return True


def deal_actives(copies: Copies, instances: Sequence[int]) -> None:
    """Round robin, in natural order of instances and workers."""
    for at, instance in enumerate(instances):
        # Capacity is only in the levelling: the deal counts workers.
        copies.add_copy(copies.active, at % len(copies.loads), instance)


def balance_loads(copies: Copies, held: list[set[int]], may_move: MayMove = allow_any) -> None:
    """Move single copies until none lowers the difference of two loads without turning it round."""
    while _balance_all_pairs(copies, held, may_move):
        pass


def _balance_all_pairs(copies: Copies, held: list[set[int]], may_move: MayMove) -> bool:
    moved = False
    workers = range(len(copies.loads))
    lightest = min((_compute_load_with(copies, worker, +1) for worker in workers), default=0.0)
    for source in workers:
        if _compute_load_with(copies, source, -1) < lightest:
            continue  # no worker would take from this one
        for target in workers:
            moved |= source != target and _balance_pair(copies, held, may_move, source, target)
        lightest = min(_compute_load_with(copies, worker, +1) for worker in workers)
    return moved


def _balance_pair(copies: Copies, held: list[set[int]], may_move: MayMove, source: int, target: int) -> bool:
    if not _is_helpful(copies, source, target):
        return False
    moved = False
    # A sorted copy, as in Kafka: the set changes while it is walked.
    for instance in sorted(held[source]):
        if not _is_helpful(copies, source, target):
            break
        if not copies.holds_copy(target, instance) and may_move(source, target):
            copies.drop_copy(held, source, instance)
            copies.add_copy(held, target, instance)
            moved = True
    return moved


def _is_helpful(copies: Copies, source: int, target: int) -> bool:
    apart = copies.loads[source] - copies.loads[target]
    after = _compute_load_with(copies, source, -1) - _compute_load_with(copies, target, +1)
    # No move may turn the difference round: so a capacity of 1 beside 100 keeps what it was dealt.
    return apart > 0 and 0 <= after < apart


def _compute_load_with(copies: Copies, worker: int, more: int) -> float:
    return (copies.count_copies(worker) + more) / copies.capacity[worker]
