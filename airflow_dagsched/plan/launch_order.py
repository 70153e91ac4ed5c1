"""In which order groups that wait for room are launched, where the longest remaining path first is not the best.

    two workers, launches of 11, 11, 10, 10 and 10 s

    longest first   w1 ▐aaaaaaaaaaa▌▐cccccccccc▌▐eeeeeeeeee▌   31 s
                    w2 ▐bbbbbbbbbbb▌▐dddddddddd▌
    searched        w1 ▐aaaaaaaaaaa▌▐bbbbbbbbbbb▌
                    w2 ▐cccccccccc▌▐dddddddddd▌▐eeeeeeeeee▌    30 s

The groups are the activities of a project (see ``rcpsp``) whose resources are all cores and all memory together.
What its schedule is worth on single workers, and with the room for spills, the time line says: only the
order is taken over, and only where the plan then ends sooner. The effort is counted, so equal plans get equal orders.
"""

from __future__ import annotations

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.plan.cost import Priced, price
from airflow_dagsched.plan.given import Given
from airflow_dagsched.plan.rcpsp.project import Project
from airflow_dagsched.plan.rcpsp.schedule import schedule

EFFORT = 20_000
"""Launches placed while searching."""
MOST = 300
"""Groups and ordinary tasks; of more, the longest remaining path decides."""
MICROSECONDS = 1_000_000


def in_best_order(priced: Priced, given: Given, *, failures: bool = True) -> Priced:
    """The same groups, launched in the order that ends first; ``failures`` as ``priced`` was priced."""
    if len(priced.spans) > MOST or not _some_wait_for_room(priced):
        return priced
    nodes = sorted(priced.spans)
    starts = schedule(_project(priced, given, nodes), effort=EFFORT).starts
    order = sorted(range(len(nodes)), key=lambda at: (starts[at], nodes[at]))
    turns = {nodes[at]: turn for turn, at in enumerate(order)}
    try:
        other = price(priced.home, given, failures=failures, turns=turns)
    except DoesNotFit:
        return priced
    return min(priced, other, key=lambda one: one.cost)


def _some_wait_for_room(priced: Priced) -> bool:
    """Else the longest path decides, whatever the order."""
    ready = dict.fromkeys(priced.spans, 0.0)
    for node, nexts in priced.edges.items():
        for after in nexts:
            ready[after] = max(ready[after], priced.spans[node].end_s)
    return any(span.start_s > ready[node] for node, span in priced.spans.items())


def _project(priced: Priced, given: Given, nodes: list[int]) -> Project:
    """Ordinary tasks hold nothing."""
    place = {node: at for at, node in enumerate(nodes)}
    shapes = [priced.shapes.get(node) for node in nodes]
    lengths = [priced.spans[node].end_s - priced.spans[node].start_s for node in nodes]
    workers = given.work.workers
    return Project(
        durations=tuple(round(seconds * MICROSECONDS) for seconds in lengths),
        demands=tuple((one.held_cores, one.memory_mb * len(one.places)) if one else (0, 0) for one in shapes),
        successors=tuple(tuple(place[after] for after in priced.edges[node]) for node in nodes),
        capacities=(sum(worker.free_cores for worker in workers), sum(worker.free_memory_mb for worker in workers)),
    )
