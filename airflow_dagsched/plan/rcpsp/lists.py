"""Activity lists: from ranks, from schedules, and from two other lists.

    a schedule            its list: a b c d, by starts      its list for the mirrored network: d c b a, from
    │aaa│ccccc│           (read again it gives the          the last end on (read there it gives a schedule
    │bb │dd│              same schedule or a shorter one)   that is as late as possible and no longer)

Reading lists to and fro is forward-backward improvement: each pass closes gaps that the one before could not
see. Sources: Li and Willis (EJOR 56, 1992); Valls, Ballestin, Quintanilla, "Justification and RCPSP: a
technique that pays" (EJOR 165, 2005); the crossover of lists is Hartmann's (Naval Research Logistics 45, 1998).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from airflow_dagsched.plan.rcpsp.project import Network


def sort_by_rank(net: Network, rank: Sequence[float]) -> list[int]:
    """Among the activities that are free, the least of ``rank`` comes first, then the least position."""
    waiting = [len(before) for before in net.above]
    free = [(rank[at], at) for at in net.order if not waiting[at]]
    heapq.heapify(free)
    found = []
    while free:
        at = heapq.heappop(free)[1]
        found.append(at)
        for after in net.below[at]:
            waiting[after] -= 1
            if not waiting[after]:
                heapq.heappush(free, (rank[after], after))
    return found


def list_onward(net: Network, ends: Sequence[int]) -> list[int]:
    """Activities by their starts: the list for the same network."""
    starts = [end - duration for end, duration in zip(ends, net.durations, strict=True)]
    # Stable: activities of no length, which start with those behind them, stay before these.
    return sorted(net.order, key=starts.__getitem__)


def list_back(net: Network, ends: Sequence[int]) -> list[int]:
    """Activities from the last end to the first: the list for the mirrored network."""
    # Sorted and turned, not sorted backwards: so ties are in the order of the mirrored network.
    return sorted(net.order, key=ends.__getitem__)[::-1]


def cross_lists(one: Sequence[int], other: Sequence[int], first: int, count: int) -> list[int]:
    """``first`` activities as in ``one``, then ``count`` as in ``other``, then the rest as in ``one``."""
    head = one[:first]
    taken = set(head)
    # In the mother's order: both parents keep to the edges, and so does every mix of their orders.
    middle = [at for at in other if at not in taken][:count]
    taken.update(middle)
    return [*head, *middle, *(at for at in one if at not in taken)]
