"""Lower bounds of the makespan, and so the reason to stop a search.

    head >= h │▒▒▒▒▒▒ work of the activities that   │ tail >= q
    ──────────┤       start after h and end q before├──────────
       h      │       the end ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒    │    q

Whatever cannot start before h and is followed by q more must be done in between, by what there is of a
resource: the makespan is at least h + work / capacity + q (Carlier 1982 for one machine, with the work of
several). Without resources it is the critical path.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from airflow_dagsched.plan.rcpsp.paths import measure_heads, measure_tails
from airflow_dagsched.plan.rcpsp.project import Network

STEPS = 50_000
"""About so many sums of work are made for each resource: so large projects try few values of h, at least four."""


def lower_bound(net: Network) -> int:
    """No schedule of the network is shorter; zero without activities."""
    head, tail = measure_heads(net), measure_tails(net)
    paths = zip(head, net.durations, tail, strict=True)
    critical = max((before + duration + after for before, duration, after in paths), default=0)
    by_tail = sorted(range(len(net)), key=tail.__getitem__, reverse=True)
    kinds = range(len(net.capacities))
    return max([critical, *(_bound_by_work(net, kind, head, tail, by_tail) for kind in kinds)])


def _bound_by_work(net: Network, kind: int, head: Sequence[int], tail: Sequence[int], by_tail: Sequence[int]) -> int:
    """The most of h + work / capacity + q; ``by_tail`` has the longest tails first."""
    work = [(head[at], net.durations[at] * net.amounts[at][kind], tail[at]) for at in by_tail]
    work = [item for item in work if item[1]]
    capacity, best = net.capacities[kind], 0
    for h in _select_evenly(sorted({before for before, _, _ in work}), max(4, STEPS // max(1, len(work)))):
        # By falling tails, as ``work`` is: each prefix is all that is followed by at least the last one's q.
        late = [(amount, q) for before, amount, q in work if before >= h]
        totals = accumulate(amount for amount, _ in late)
        # Rounded up: time is whole.
        best = max(best, h + max(-(-total // capacity) + q for total, (_, q) in zip(totals, late, strict=True)))
    return best


def _select_evenly(values: Sequence[int], most: int) -> Sequence[int]:
    """All of them, or at most so many at even distances, the least among them."""
    return values[:: max(1, -(-len(values) // most))]
