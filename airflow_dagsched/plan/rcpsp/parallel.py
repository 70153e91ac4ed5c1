"""The parallel scheme: walking along time, whatever is ready and has room starts, the most urgent first.

Ready activities wait in one heap for each packed demand: all in a heap fit or none does. So a schedule costs
O(n log n) times the number of different demands that are ready at once: few where resources are workers or slots.

Source: Brooks and White 1965; Kolisch (EJOR 90, 1996): schedules without delay, good but not always with an
optimal one among them. With one resource and demands of one it is Graham's list scheduling.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

from airflow_dagsched.plan.rcpsp.project import Network
from airflow_dagsched.plan.rcpsp.serial import Ends

Heap = list[tuple[int, int]]


def schedule_in_parallel(net: Network, rank: Sequence[int]) -> Ends:
    """Ends of all activities; among those ready, the least of ``rank`` comes first, then the least position."""
    below, demands, durations = net.below, net.demands, net.durations
    ends = [0] * len(net)
    waiting = [len(before) for before in net.above]
    ready = _list_ready(net, rank, waiting)
    free, now = net.free, 0
    running: Heap = []
    while True:
        for activity in _take_startable(net, ready, free):
            free -= demands[activity]
            ends[activity] = now + durations[activity]
            heappush(running, (ends[activity], activity))
        if not running:
            return ends
        now = running[0][0]
        # All that ends now gives back before anything starts: half of it might leave no room for the most urgent.
        while running and running[0][0] == now:
            activity = heappop(running)[1]
            free += demands[activity]
            for after in below[activity]:
                waiting[after] -= 1
                if not waiting[after]:
                    heappush(ready.setdefault(demands[after], []), (rank[after], after))


def _list_ready(net: Network, rank: Sequence[int], waiting: Sequence[int]) -> dict[int, Heap]:
    """Packed demand -> the activities with it that wait for nothing but room, by rank."""
    ready: dict[int, Heap] = {}
    for activity, count in enumerate(waiting):
        if not count:
            heappush(ready.setdefault(net.demands[activity], []), (rank[activity], activity))
    return ready


def _take_startable(net: Network, ready: dict[int, Heap], free: int) -> list[int]:
    """Take the activities that start now, the most urgent that has room first, until none has."""
    demands, guard = net.demands, net.guard
    found = []
    fitting = [heap for demand, heap in ready.items() if (free - demand) & guard == guard]
    while fitting:
        # Heaps compare by their first entry: rank, then position.
        heap = min(fitting) if len(fitting) > 1 else fitting[0]
        activity = heappop(heap)[1]
        found.append(activity)
        free -= demands[activity]
        if not heap:
            del ready[demands[activity]]  # an empty heap would be compared, and is of no use
        # Room only shrinks here: a heap that did not fit before need not be looked at again.
        fitting = [heap for heap in fitting if heap and (free - demands[heap[0][1]]) & guard == guard]
    return found
