"""Streaming steps of which no group can have both: it would hold all that lies between them, and that does not fit.

a ══> b ══> d      Three cores: {a b c d} holds four, and without b or c it would wait for a group that waits
a ══> c ══> d      for it. So the application of d starts once that of a has ended.
"""

from __future__ import annotations

from collections.abc import Sequence

from airflow_dagsched.plan.checking.facts.plan_facts import Facts

StreamHolding = tuple[int, int, int]
"""Cores, MiB, and steps."""


NOTHING: StreamHolding = (0, 0, 0)
"""What an ordinary task holds."""


def find_separated(
    facts: Facts, held: Sequence[StreamHolding], nexts: Sequence[Sequence[int]], order: Sequence[int]
) -> list[list[int]]:
    """For each step those before it that are in another group; all by node.

    ``order``: the nodes, each behind all it takes from.
    """
    workers = facts.cluster.workers
    most = (
        sum(worker.free_cores for worker in workers),
        sum(worker.free_memory_mb for worker in workers),
        facts.settings.max_steps_per_group,
    )
    # Sets, where the planner has bit masks: the checker shares no code with it.
    behind = _list_behind(nexts, order)
    by_node: list[list[int]] = [[] for _ in nexts]
    for node in order:
        if held[node] != NOTHING:
            apart = _find_too_far(node, order, nexts, behind, held, most)
            by_node[node] = [before for before in apart if held[before] != NOTHING]
    return by_node


def _list_behind(nexts: Sequence[Sequence[int]], order: Sequence[int]) -> list[set[int]]:
    """Each node with all that takes from it, also through others."""
    by_node: list[set[int]] = [set() for _ in nexts]
    for node in reversed(order):
        by_node[node] = {node}.union(*[by_node[after] for after in nexts[node]])
    return by_node


def _find_too_far(
    node: int,
    order: Sequence[int],
    nexts: Sequence[Sequence[int]],
    behind: Sequence[set[int]],
    held: Sequence[StreamHolding],
    most: StreamHolding,
) -> list[int]:
    """From the nearest on: a group with something still before it would hold as much, and more."""
    far: set[int] = set()
    ahead = [at for at in order if at != node and node in behind[at]]
    # All that lies between two steps is behind the one and before the other; a group with both has all of it.
    before_it = {node, *ahead}
    for at in reversed(ahead):
        # Who leads straight to one that is too far is too far as well: between lies at least as much.
        if not far.isdisjoint(nexts[at]) or _is_too_much(behind[at] & before_it, held, most):
            far.add(at)
    return sorted(far)


def _is_too_much(nodes: set[int], held: Sequence[StreamHolding], most: StreamHolding) -> bool:
    sums = map(sum, zip(*[held[node] for node in nodes], strict=True))
    return any(needed > available for needed, available in zip(sums, most, strict=True))
