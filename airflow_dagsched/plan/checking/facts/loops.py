"""Which steps repeat together: those on one cycle.

a ══> b ══> c       a and b repeat: the loop of both is called after a, c is in none
^─────┘
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain

from airflow_dagsched.model.dataflow import Dataflow

Nexts = Mapping[str, list[str]]


def find_loops(dataflow: Dataflow) -> dict[str, str]:
    """For each step that repeats the last of its loop, whichever that is; two passes over the edges (Kosaraju)."""
    steps = [step.id for step in dataflow.steps if step.repeat]
    nexts: dict[str, list[str]] = {name: [] for name in steps}
    backs: dict[str, list[str]] = {name: [] for name in steps}
    if steps:
        for src, dst in chain(((channel.src, channel.dst) for channel in dataflow.channels), dataflow.dependencies):
            # Only steps marked ``repeat`` can be on a loop: any other cycle was refused with the dataflow.
            if src in nexts and dst in nexts:
                nexts[src].append(dst)
                backs[dst].append(src)
    loop: dict[str, str] = {}
    # By falling ends, backwards along the edges: what is reached first is the whole loop, and nothing beyond it.
    for last in reversed(_order_by_ends(steps, nexts)):
        reached = [] if last in loop else [last]
        loop.setdefault(last, last)
        for name in reached:
            fresh = [before for before in backs[name] if before not in loop]
            loop.update(dict.fromkeys(fresh, last))
            reached += fresh
    return loop


def _order_by_ends(steps: Iterable[str], nexts: Nexts) -> list[str]:
    """Depth first, each step once all behind it that are new have been gone through."""
    seen: set[str] = set()
    ended = []
    for step in steps:
        # A stack of its own, for Python recurses 1,000 deep at most.
        path = [] if step in seen else [(step, iter(nexts[step]))]
        seen.add(step)
        while path:
            fresh = next((after for after in path[-1][1] if after not in seen), None)
            if fresh is None:
                ended.append(path.pop()[0])
            else:
                seen.add(fresh)
                path.append((fresh, iter(nexts[fresh])))
    return ended
