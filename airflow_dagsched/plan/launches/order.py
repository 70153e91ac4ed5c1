"""In which order groups that wait for room are launched, where the longest remaining path first is not the best.

    two workers, launches of 11, 11, 10, 10 and 10 s

    longest first   w1 ▐aaaaaaaaaaa▌▐cccccccccc▌▐eeeeeeeeee▌   31 s
                    w2 ▐bbbbbbbbbbb▌▐dddddddddd▌
    searched        w1 ▐aaaaaaaaaaa▌▐bbbbbbbbbbb▌
                    w2 ▐cccccccccc▌▐dddddddddd▌▐eeeeeeeeee▌    30 s

The groups are the activities of a project (see ``rcpsp``) whose resources are all cores and all memory together.
What its schedule is worth on single workers, and with the room for spills, the time line says: only the
order is taken over, and only where the plan then ends sooner. Of few groups all orders are tried on the time line
itself (see ``tree``). The effort is counted, so equal plans get equal orders.
"""

from __future__ import annotations

from collections.abc import Iterator

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.plan.cost import DIGITS, Priced, price
from airflow_dagsched.plan.given import Given
from airflow_dagsched.plan.launches.queue import tails
from airflow_dagsched.plan.launches.room import Room
from airflow_dagsched.plan.launches.tree import Tree, all_orders
from airflow_dagsched.plan.rcpsp.project import Project
from airflow_dagsched.plan.rcpsp.schedule import schedule
from airflow_dagsched.plan.rcpsp.serial import FOREVER

EFFORT = 10_000
"""Launches placed while searching."""
MOST = 300
"""Groups and ordinary tasks; of more, the longest remaining path decides."""
FEW = 10
"""Of no more, all orders are tried, as far as ``MOMENTS`` go."""
MOMENTS = 1_000
"""Looked at, on the time line, of all orders together: some hundredths of a second."""
MICROSECONDS = 1_000_000
LONGEST = FOREVER // (2 * MOST)
"""Microseconds a launch takes, at most, while orders are searched: a century, where failures make it take longer."""


def in_best_order(priced: Priced, given: Given, *, failures: bool = True) -> Priced:
    """The same groups, launched in the order that ends first; ``failures`` as ``priced`` was priced."""
    best = priced
    if len(priced.spans) > MOST or not _some_wait_for_room(priced):
        return best
    soonest = soonest_end(priced, given)
    for turns in _orders(priced, given):
        if best.cost.makespan_s <= soonest:
            break
        try:
            other = price(priced.home, given, failures=failures, turns=turns)
        except DoesNotFit:
            continue
        best = min(best, other, key=lambda one: one.cost)
    return best


def soonest_end(priced: Priced, given: Given) -> float:
    """Seconds in which these groups end at least, in whatever order: by their longest path, and by what they hold."""
    workers = given.work.workers
    cores = sum(worker.free_cores for worker in workers)
    memory = sum(worker.free_memory_mb for worker in workers)
    held = [(shape, priced.jobs[first].seconds) for first, shape in priced.shapes.items()]
    path = max(tails(priced.jobs, priced.edges).values(), default=0.0)
    by_cores = sum(shape.held_cores * seconds for shape, seconds in held) / max(1, cores)
    by_memory = sum(shape.memory_mb * len(shape.places) * seconds for shape, seconds in held) / max(1, memory)
    return round(max(path, by_cores, by_memory), DIGITS)


def searched_whole(priced: Priced, given: Given, sooner_than: float, moments: int) -> Tree | None:
    """All orders of launches, as far as so many ``moments`` go; None where room for spills decides, too.

    ``sooner_than``: seconds; an order that ends no sooner is not told.
    """
    if given.cluster.spill_mb is not None:
        return None
    return all_orders(priced.jobs, priced.edges, Room(given.work.workers), (sooner_than, moments))


def _orders(priced: Priced, given: Given) -> Iterator[dict[int, int]]:
    """Orders worth a try: for each group and task its turn."""
    tree = searched_whole(priced, given, priced.cost.makespan_s, MOMENTS) if len(priced.spans) <= FEW else None
    if tree is not None and tree.turns is not None:
        yield tree.turns
    if tree is None or not tree.complete:
        nodes = sorted(priced.spans)
        starts = schedule(_project(priced, given, nodes), effort=EFFORT).starts
        order = sorted(range(len(nodes)), key=lambda at: (starts[at], nodes[at]))
        yield {nodes[at]: turn for turn, at in enumerate(order)}


def ready_at(priced: Priced) -> dict[int, float]:
    """For each group and ordinary task the second in which all it waits for has ended."""
    ready = dict.fromkeys(priced.spans, 0.0)
    for node, nexts in priced.edges.items():
        for after in nexts:
            ready[after] = max(ready[after], priced.spans[node].end_s)
    return ready


def _some_wait_for_room(priced: Priced) -> bool:
    """Else the longest path decides, whatever the order."""
    ready = ready_at(priced)
    return any(span.start_s > ready[node] for node, span in priced.spans.items())


def _project(priced: Priced, given: Given, nodes: list[int]) -> Project:
    """Ordinary tasks hold nothing."""
    place = {node: at for at, node in enumerate(nodes)}
    shapes = [priced.shapes.get(node) for node in nodes]
    lengths = [priced.jobs[node].seconds for node in nodes]
    workers = given.work.workers
    return Project(
        durations=tuple(min(round(seconds * MICROSECONDS), LONGEST) for seconds in lengths),
        demands=tuple((one.held_cores, one.memory_mb * len(one.places)) if one else (0, 0) for one in shapes),
        successors=tuple(tuple(place[after] for after in priced.edges[node]) for node in nodes),
        capacities=(sum(worker.free_cores for worker in workers), sum(worker.free_memory_mb for worker in workers)),
    )
