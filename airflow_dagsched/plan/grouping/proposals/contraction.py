"""From one application per step to fewer: merge where the longest path shrinks, as long as that pays.

    a(10) ══> b(10) ══> c(10)      three applications: 3 x start + 30 s, on one core each
              └═══════> d(1)       {a b c}, all resident: start + 10 s, on three cores

A plan takes at least ``max(core-seconds held / cores, longest path)``. A merge of two neighbours takes a start,
the spill between them and, if all are resident, the shorter of the two off their paths, and costs core-seconds,
since the shorter one's cores are held as long as the longer one's. In rounds the longest paths are shortened by
their cheapest merges; the groupings on the way, from all single to fully merged, are the candidates.

Edge contraction as in acyclic multilevel partitioning (Herrmann et al., SISC 2019), with this estimate in place
of the cut: groups of the least cut hold idle cores.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from airflow_dagsched.plan.costing.evaluator import Evaluator
from airflow_dagsched.plan.grouping.proposals.merging import Bundle, Merging

NEAR = 0.95
"""Paths of this share of the longest one are shortened in the same round."""
ROUNDS = 60
WALKED = 20_000
"""Groups and edges over which those rounds go together: of more, fewer rounds."""
SHORTER = 0.9
"""A grouping is a candidate once its longest path is so much shorter than the last candidate's."""


def contract_longest_paths(group_of: Sequence[int], evaluator: Evaluator) -> Iterator[list[int]]:
    """Groupings from ``group_of`` on, each with a shorter longest path than the one before it."""
    merging = Merging(group_of, evaluator)
    told = float("inf")
    size = len(merging.nexts) + sum(map(len, merging.nexts.values()))
    # Counted in groups and edges, not in seconds: the groupings are the same on any machine.
    for _ in range(min(ROUNDS, WALKED // size)):
        head, tail, longest = _measure_paths(merging)
        # Not each round: evaluating a grouping takes longer than merging towards it.
        if longest < SHORTER * told:
            told = longest
            yield list(merging.group_of)
        if not _shorten_paths(merging, head, tail, longest):
            break
    yield list(merging.group_of)


def _measure_paths(merging: Merging) -> tuple[dict[int, float], dict[int, float], float]:
    """Seconds before the start of each group and task, from its start to the end of all, and the most of both."""
    seconds = _time_groups(merging)
    waiting = {node: len(above) for node, above in merging.above.items()}
    order = sorted(node for node, count in waiting.items() if not count)
    head = dict.fromkeys(waiting, 0.0)
    for node in order:
        end = head[node] + seconds[node]
        for after in merging.nexts[node]:
            head[after] = max(head[after], end)
            waiting[after] -= 1
            if not waiting[after]:
                order.append(after)
    tail: dict[int, float] = {}
    for node in reversed(order):
        tail[node] = seconds[node] + max([tail[after] for after in merging.nexts[node]], default=0.0)
    return head, tail, max(tail.values(), default=0.0)


def _time_groups(merging: Merging) -> dict[int, float]:
    runtime = merging.problem.arrays.runtime_s
    return {node: merging.bundles[node].seconds if node in merging.bundles else runtime[node] for node in merging.nexts}


def _shorten_paths(merging: Merging, head: dict[int, float], tail: dict[int, float], longest: float) -> bool:
    """Merge neighbours on the longest paths, each group at most once, the cheapest first; whether any was."""
    # By cost, then by number: equal problems are merged equally.
    offers = sorted(_rank_merges(merging, head, tail, longest), key=lambda offer: offer[:3])
    done: set[int] = set()
    for _, one, other in offers:
        # Its bundle has changed since the offer: there is another round.
        if one in done or other in done:
            continue
        bundle = merging.describe_merge(one, other)
        # The estimate ranks, the sized bundle decides: together they may need more waves.
        if bundle is not None and _measure_gain(merging, one, other, bundle) > 0:
            merging.merge_bundles(one, other, bundle)
            done |= {one, other}
    return bool(done)


def _rank_merges(
    merging: Merging, head: dict[int, float], tail: dict[int, float], longest: float
) -> Iterator[tuple[float, int, int]]:
    """Pairs on long paths: (core-seconds that the merge costs for each second it takes off, the pair)."""
    for one, bundle in merging.bundles.items():
        for other in merging.nexts[one]:
            on_path = head[one] + bundle.seconds + tail.get(other, 0.0) >= NEAR * longest
            if other in merging.bundles and on_path:
                second = merging.bundles[other]
                wasted = abs(bundle.seconds - second.seconds) * min(bundle.cores, second.cores)
                # No division by zero where a step takes no time.
                yield wasted / max(1e-9, min(bundle.seconds, second.seconds)), one, other


def _measure_gain(merging: Merging, one: int, other: int, bundle: Bundle) -> float:
    return merging.bundles[one].seconds + merging.bundles[other].seconds - bundle.seconds
