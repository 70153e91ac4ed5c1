"""Each of several alike instances to a worker, at the least cost in all: successive shortest paths.

a, nearest to w1 (full of b)      b ──> w2 costs less than a ──> w2:  b moves, a gets its place

Whoever finds its nearest worker full takes the cheapest chain of moves that ends where there is room. Each chain is a
shortest path, so what is placed so far is always the least (the minimum-cost flow of the transport problem).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

Costs = Sequence[Sequence[float]]
"""Of each instance on each worker."""
STEP = 1e-12
"""What costs less by no more than this costs the same: else rounding could go round in circles."""


def assign_at_least_cost(costs: Costs, room: Sequence[int]) -> list[int]:
    """The worker of each instance; ``room``: instances that each worker takes, of which there is enough in all."""
    free, on = list(room), [set[int]() for _ in room]
    for instance, own in enumerate(costs):
        end, chain = _find_chain(costs, own, free, on)
        free[end] -= 1
        # From the end back: each in the chain goes on to the next worker, which makes room for the one before.
        while chain[end] is not None:
            start, moved = chain[end] or (0, 0)
            on[start].remove(moved)
            on[end].add(moved)
            end = start
        on[end].add(instance)
    worker = {instance: at for at, there in enumerate(on) for instance in there}
    return [worker[instance] for instance in range(len(costs))]


Chain = list[tuple[int, int] | None]
"""How each worker is reached: from which other one, and which instance moves; None: by the new instance itself."""


def _find_chain(costs: Costs, own: Sequence[float], free: Sequence[int], on: Sequence[set[int]]) -> tuple[int, Chain]:
    """The worker with room that is reached at the least cost, and how each is reached (Bellman-Ford)."""
    cost, chain = list(own), list[tuple[int, int] | None]([None] * len(own))
    open_ = [at for at, left in enumerate(free) if left]
    nearest = min(open_, key=lambda at: (own[at], at))
    # As near as it gets, with room: no chain of moves could be cheaper.
    if own[nearest] <= min(own):
        return nearest, chain
    waiting = deque(range(len(own)))
    while waiting:
        start = waiting.popleft()
        for moved in sorted(on[start]):
            for end, there in enumerate(costs[moved]):
                reached = cost[start] + there - costs[moved][start]
                if reached < cost[end] - STEP:
                    cost[end], chain[end] = reached, (start, moved)
                    if end not in waiting:
                        waiting.append(end)
    return min(open_, key=lambda at: (cost[at], at)), chain
