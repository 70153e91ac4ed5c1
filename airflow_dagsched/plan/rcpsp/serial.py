"""The serial scheme: activities one by one, in the order of a list, each as early as order and resources allow.

The resource profile is two lists, ``times`` and ``free``: what is free from ``times[k]`` to ``times[k + 1]``,
packed. A schedule takes about a microsecond an activity for projects of some hundred activities (the profile
is searched from where the activity may start, so the worst case is quadratic).

Source: Kelley 1963; Kolisch, "Serial and parallel resource-constrained project scheduling methods
revisited" (EJOR 90, 1996). Every active schedule is that of some list, and among them is an optimal one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from airflow_dagsched.plan.rcpsp.project import Network

Ends = list[int]
"""When each activity ends."""
FOREVER = 1 << 62
"""After the end of every schedule."""


def schedule_serially(net: Network, sequence: Iterable[int]) -> Ends:
    """Ends of all activities of the list ``sequence``."""
    # A last entry that no schedule reaches: the search needs no test for the end of the list.
    times, free = [0, FOREVER], [net.free, net.free]
    above, durations, demands, guard = net.above, net.durations, net.demands, net.guard
    ends = [0] * len(net)
    for activity in sequence:
        ready = 0
        for before in above[activity]:
            end = ends[before]
            if end > ready:  # noqa: PLR1730  a call of max here costs a tenth of the schedule
                ready = end
        duration = durations[activity]
        # Of no length it holds nothing: it need not be placed.
        ends[activity] = _place_activity(times, free, guard, ready, duration, demands[activity]) if duration else ready
    return ends


def _place_activity(times: list[int], free: list[int], guard: int, start: int, duration: int, demand: int) -> int:
    """Take ``demand`` for ``duration`` as early as possible from ``start`` on; returns when that ends."""
    first = last = bisect_right(times, start) - 1
    end = start + duration
    while True:
        # A resource that runs short borrows its guard bit: all are there only if none did.
        if (free[last] - demand) & guard == guard:
            last += 1
            if times[last] >= end:
                break
        else:
            last += 1
            # Too little here: the earliest start is behind this stretch.
            first, start = last, times[last]
            end = start + duration
    if times[last] != end:
        times.insert(last, end)
        # Split where it ends before where it starts: so ``first`` stays where it is.
        free.insert(last, free[last - 1])
    if times[first] != start:
        first += 1
        last += 1
        times.insert(first, start)
        free.insert(first, free[first - 1])
    for at in range(first, last):
        free[at] -= demand
    return end
