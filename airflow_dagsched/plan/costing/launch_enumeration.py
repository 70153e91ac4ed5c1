"""Every order in which few groups can be launched, depth first; what cannot end sooner than the best is not looked at.

    two workers of 4 cores, 3 ready groups of 4        ┌─ a ─┬─ b ── wait ── c ...
                                                   now ┤     └─ c ── wait ── b ...
    at each moment some ready group that finds         └─ b ─── ...
    room starts; only if none does, time goes on

What is looked at is what the time line does with one order or another (see ``timeline``): a group that finds room is
never held back. Orders that leave the same running on the same workers at one moment are one. Branch and bound on
the parallel schedule generation scheme, as Demeulemeester and Herroelen (1992) without the delaying.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from airflow_dagsched.plan.costing.capacity import FreeCapacity
from airflow_dagsched.plan.costing.timeline import Job, count_waits, measure_job_tails

ROUNDING = 1e-9  # seconds: sums in another order are no improvement


class Tree(Struct, frozen=True):
    """What was found."""

    turns: dict[int, int] | None
    """The turn of each job, where some order ends sooner than was asked for."""
    left: int
    """Moments that might still have been looked at."""

    @property
    def complete(self) -> bool:
        """Whether all orders were looked at, so that none ends sooner."""
        return self.left > 0


class _Moment(Struct, frozen=True):
    """What runs, as (end, job, workers), and what could; in order of the jobs."""

    now: float
    running: tuple[tuple[float, int, tuple[int, ...]], ...]
    ready: tuple[int, ...]
    above: tuple[tuple[int, int], ...]
    """Jobs that wait, each for so many others."""
    started: tuple[int, ...]


class _Search(Struct):
    jobs: Mapping[int, Job]
    edges: Mapping[int, Sequence[int]]
    tail: Mapping[int, float]
    room: FreeCapacity
    cores: int
    """Of the cluster."""
    best: float
    left: int
    """Moments that may still be looked at."""
    found: tuple[int, ...] | None = None
    seen: set[tuple[float, tuple[tuple[float, int, tuple[int, ...]], ...], tuple[int, ...]]] = field(
        default_factory=set
    )

    def explore_from(self, at: _Moment) -> None:
        """At all that can follow."""
        # What else is in a moment follows from these: what has ended is all that is neither here nor above.
        key = at.now, at.running, at.ready
        # Bound last: the other two are look-ups, and most moments are met again.
        if self.left <= 0 or key in self.seen or self.bound_rest(at) >= self.best - ROUNDING:
            return
        self.left -= 1
        self.seen.add(key)
        # A group that finds room is started, never delayed: that is what the time line does, too.
        if self.start_each(at):
            return
        if at.running:
            self.wait_for_end(at)
        else:
            self.best, self.found = at.now, at.started

    def bound_rest(self, at: _Moment) -> float:
        """No order from here on ends sooner."""
        held = 0.0
        latest = at.now
        for end, node, at_workers in at.running:
            shape = self.jobs[node].shape
            held += (end - at.now) * shape.held_cores if shape and at_workers else 0.0
            # A tail counts from the start of its job.
            latest = max(latest, end - self.jobs[node].seconds + self.tail[node])
        for node in (*at.ready, *(node for node, _ in at.above)):
            shape = self.jobs[node].shape
            held += self.jobs[node].seconds * shape.held_cores if shape else 0.0
            latest = max(latest, at.now + self.tail[node])
        # All cores busy from now on: the area bound of the rest.
        return max(latest, at.now + held / max(1, self.cores))

    def start_each(self, at: _Moment) -> bool:
        """Each ready group in turn that finds room; whether any did."""
        some = False
        for node in at.ready:
            shape = self.jobs[node].shape
            assert shape is not None
            at_workers = self.room.find_workers(shape)
            if at_workers:
                some = True
                self.room.take_room(shape, at_workers)
                running = tuple(sorted((*at.running, (at.now + self.jobs[node].seconds, node, at_workers))))
                ready = tuple(one for one in at.ready if one != node)
                self.explore_from(_Moment(at.now, running, ready, at.above, (*at.started, node)))
                # Undone behind each branch: one account of what is free serves the whole search.
                self.room.give_back(shape, at_workers)
        return some

    def wait_for_end(self, at: _Moment) -> None:
        """For the next end."""
        now = at.running[0][0]
        # All that ends at a moment ends before anything starts at it, as on the time line.
        ended = [one for one in at.running if one[0] == now]
        for _, node, at_workers in ended:
            shape = self.jobs[node].shape
            if shape is not None:
                self.room.give_back(shape, at_workers)
        self.explore_from(
            self.add_arrived(_Moment(now, at.running[len(ended) :], at.ready, at.above, at.started), ended)
        )
        for _, node, at_workers in ended:
            shape = self.jobs[node].shape
            if shape is not None:
                self.room.take_room(shape, at_workers)

    def add_arrived(self, at: _Moment, ended: Sequence[tuple[float, int, tuple[int, ...]]]) -> _Moment:
        """What waited for these only is ready; what needs no room has started."""
        above = dict(at.above)
        for _, node, _ in ended:
            for after in self.edges[node]:
                above[after] -= 1
        free = sorted(node for node, count in above.items() if not count)
        # Ordinary tasks take no room, so there is nothing to decide: they start as soon as they may.
        tasks = [node for node in free if self.jobs[node].shape is None]
        running = sorted((*at.running, *((at.now + self.jobs[node].seconds, node, ()) for node in tasks)))
        ready = sorted({*at.ready, *free} - {*tasks})
        waiting = tuple(one for one in above.items() if one[1])
        return _Moment(at.now, tuple(running), tuple(ready), waiting, (*at.started, *tasks))


def search_orders(
    jobs: Mapping[int, Job],
    edges: Mapping[int, Sequence[int]],
    room: FreeCapacity,
    limit: tuple[float, int],
) -> Tree:
    """The order of ``jobs`` that ends first; ``limit``: what it has to end sooner than, and moments to look at.

    ``edges`` lead from each job to those that wait for it, without cycles; ``room`` is as it was in the end.
    """
    above = count_waits(jobs, edges)
    search = _Search(jobs, edges, measure_job_tails(jobs, edges), room, room.cores, *limit)
    search.explore_from(search.add_arrived(_Moment(0.0, (), (), tuple(sorted(above.items())), ()), ()))
    turns = None if search.found is None else {node: turn for turn, node in enumerate(search.found)}
    return Tree(turns, search.left)
