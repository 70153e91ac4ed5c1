"""The parallel scheme: walking along time, whatever is ready and has room starts, the most urgent first.

Ready activities wait in one heap for each packed demand: all in a heap fit or none does. So a schedule costs
O(n log n) times the number of different demands, which is small where resources are workers or slots.

Source: Brooks and White 1965; Kolisch (EJOR 90, 1996): schedules without delay, good but not always with an
optimal one among them. With one resource and demands of one it is Graham's list scheduling.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

from airflow_dagsched.plan.rcpsp.project import Network
from airflow_dagsched.plan.rcpsp.serial import Ends

Heap = list[tuple[int, int]]


@dataclass(slots=True)
class _Line:
    """The state of the walk along time."""

    net: Network
    rank: Sequence[int]
    free: int
    ends: Ends
    ready: dict[int, Heap] = field(default_factory=dict)
    """Packed demand -> (rank, activity)."""
    running: Heap = field(default_factory=list)
    """(end, activity)."""

    def arrive(self, activity: int) -> None:
        heap = self.ready.setdefault(self.net.demands[activity], [])
        heapq.heappush(heap, (self.rank[activity], activity))

    def start(self, now: int) -> None:
        """Start the most urgent that has room until none has."""
        guard = self.net.guard
        fitting = [heap for demand, heap in self.ready.items() if (self.free - demand) & guard == guard and heap]
        while fitting:
            heap = min(fitting)
            demand = self.net.demands[heap[0][1]]
            self._take(heapq.heappop(heap)[1], demand, now)
            fitting = [heap for heap in fitting if heap and self._has_room(heap)]

    def _has_room(self, heap: Heap) -> bool:
        guard = self.net.guard
        return (self.free - self.net.demands[heap[0][1]]) & guard == guard

    def _take(self, activity: int, demand: int, now: int) -> None:
        self.free -= demand
        self.ends[activity] = now + self.net.durations[activity]
        heapq.heappush(self.running, (self.ends[activity], activity))


def parallel(net: Network, rank: Sequence[int]) -> Ends:
    """Ends of all activities; among those ready, the least of ``rank`` comes first, then the least position."""
    line = _Line(net, rank, net.free, [0] * len(net))
    waiting = [len(before) for before in net.above]
    for activity, count in enumerate(waiting):
        if not count:
            line.arrive(activity)
    line.start(0)
    while line.running:
        now = line.running[0][0]
        while line.running and line.running[0][0] == now:
            activity = heapq.heappop(line.running)[1]
            line.free += net.demands[activity]
            for after in net.below[activity]:
                waiting[after] -= 1
                if not waiting[after]:
                    line.arrive(after)
        line.start(now)
    return line.ends
