"""No group waits without a reason: each starts once all it waits for has ended, or when what it needs becomes free.

    w1 ▐aaaaaaa▌▐ccc▌       c is ready at once, but a has the room until it ends: c starts then
    w2 ▐bbb▌·····▐ddd▌      d is ready when b ends, and w2 is free from then on: a violation

At each moment at which something ends, a group that still waits must lack room, beside those that run then, on the
workers that it is on in the end, or for what it spills. Which of those that wait comes first is the planner's choice.
Where many wait, it need not have tried each of them at each moment: no more is asked than that they start at an end.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field

from airflow_dagsched.model.units import MIB
from airflow_dagsched.plan.checking.facts.free_capacity import (
    APPLICATIONS,
    UNLIMITED,
    Free,
    Holding,
    measure_free,
    return_capacity,
    take_capacity,
)
from airflow_dagsched.plan.checking.facts.plan_facts import Facts, Violation, measure_tolerance
from airflow_dagsched.plan.checking.times.timeline import find_earliest_ends, find_ready_times

TRIED = 32  # as many as the planner's time line tries behind the first without room (``timeline.PASSED``)
"""Groups waiting at one moment, at most, of which each is known to have been tried."""


def check_waiting(facts: Facts) -> Iterator[Violation]:
    """Each group against when the last that it waits for ends.

    Part-way through a run what is left starts when the others leave room, which the plan does not say; a policy that
    moves containers puts off what comes behind them as a whole; a container pruned once it was placed had its room.
    """
    if facts.has_begun:
        return
    ready = find_ready_times(facts, find_earliest_ends(facts))
    groups = facts.plan.groups
    late = [at for at, group in enumerate(groups) if group.start_s > ready[at] + measure_tolerance(ready[at])]
    if facts.is_as_sized:
        yield from _check_ends(facts, late, ready)
        yield from _check_free_workers(facts, late, ready)
    # Placed or pruned, only this much is sure: if all groups that are ready first start late, nothing is there to
    # hold them.
    elif late and set(late).issuperset(_list_first_ready(ready[: len(groups)])):
        first = min([groups[at] for at in late], key=lambda group: group.start_s)
        yield Violation("times", first.id, f"is the first, and starts at {first.start_s:g} s: nothing holds it up")


def _list_first_ready(ready: Sequence[float]) -> Iterator[int]:
    """The groups for which nothing runs that could end sooner: before them there are ordinary tasks alone."""
    soonest = min(ready)
    return (at for at, moment in enumerate(ready) if moment <= soonest + measure_tolerance(soonest))


def _check_ends(facts: Facts, late: Sequence[int], ready: Sequence[float]) -> Iterator[Violation]:
    """Room becomes free when a group ends, and at no other moment."""
    groups = facts.plan.groups
    ends = sorted([group.end_s for group in groups]) if late else []
    for at in late:
        start = groups[at].start_s
        # The first end that is not clearly before the start: is it the moment of the start?
        end = bisect_left(ends, start - measure_tolerance(start))
        if end == len(ends) or ends[end] > start + measure_tolerance(start):
            text = f"is ready at {ready[at]:g} s, starts at {start:g} s, when nothing becomes free"
            yield Violation("times", groups[at].id, text)


def _check_free_workers(facts: Facts, late: Sequence[int], ready: Sequence[float]) -> Iterator[Violation]:
    """Go from moment to moment; whoever waits and has room is told once."""
    if not late:
        return
    waiting_line = _WaitingLine.of(facts, late, ready)
    for now in sorted({*waiting_line.ends, *(ready[at] for at in late)}):
        # Moments are ends and arrivals: between two of them nothing changes that a group could wait for.
        waiting_line.advance_time(now)
        for at in waiting_line.list_idle() if waiting_line.waiting else ():
            group = facts.plan.groups[at]
            text = f"starts at {group.start_s:g} s, but has room on its workers from {now:g} s on"
            yield Violation("times", group.id, text)


class _WaitingLine(Struct):
    """What is free at a moment, and who waits then; groups by number."""

    free: Free
    held: Sequence[Holding]
    spill_room: int
    """Bytes."""
    spills: Mapping[int, int]
    """Bytes that each group spills."""
    starts: list[float]
    ends: list[float]
    ready: Sequence[float]
    starting: list[int]
    """By their starts, the next last; the others likewise."""
    ending: list[int]
    arriving: list[int]
    spilled: list[tuple[float, int]]
    """When the last reader of a spill ends, and its bytes."""
    waiting: dict[int, None] = field(default_factory=dict)

    @classmethod
    def of(cls, facts: Facts, late: Sequence[int], ready: Sequence[float]) -> _WaitingLine:
        groups, spill_mb = facts.plan.groups, facts.cluster.spill_mb
        starts, ends = [group.start_s for group in groups], [group.end_s for group in groups]
        spills = list(_list_spills(facts)) if spill_mb is not None else []
        amounts: dict[int, int] = {}
        for writer, _, amount in spills:
            amounts[writer] = amounts.get(writer, 0) + amount
        return cls(
            measure_free(facts.cluster, facts.settings.applications),
            facts.holdings,
            UNLIMITED if spill_mb is None else spill_mb * MIB,
            amounts,
            starts,
            ends,
            ready,
            sorted(range(len(groups)), key=starts.__getitem__, reverse=True),
            sorted(range(len(groups)), key=ends.__getitem__, reverse=True),
            sorted(late, key=ready.__getitem__, reverse=True),
            sorted([(gone, amount) for _, gone, amount in spills], reverse=True),
        )

    def advance_time(self, now: float) -> None:
        """Whatever ends until ``now`` makes room for what starts then."""
        ending, starting = self.ending, self.starting
        while ending and self.ends[ending[-1]] <= now:
            return_capacity(self.free, self.held[ending.pop()])
        while self.spilled and self.spilled[-1][0] <= now:
            self.spill_room += self.spilled.pop()[1]
        while self.arriving and self.ready[self.arriving[-1]] <= now:
            self.waiting[self.arriving.pop()] = None
        # After the ends, and with what starts at this very moment: that is what left no room.
        while starting and self.starts[starting[-1]] <= now + measure_tolerance(now):
            at = starting.pop()
            take_capacity(self.free, self.held[at])
            self.spill_room -= self.spills.get(at, 0)
            self.waiting.pop(at, None)

    def list_idle(self) -> list[int]:
        """Those that wait and have room, which then wait no more."""
        # So many waiting groups need not all have been tried: none of them can be blamed.
        if len(self.waiting) > TRIED:
            return []
        idle_groups = [at for at in self.waiting if self._has_room(at)]
        for at in idle_groups:
            del self.waiting[at]  # told once, not at each later moment
        return idle_groups

    def _has_room(self, at: int) -> bool:
        """Whether it leaves nothing short where it takes something; what is no worker has no room."""
        held = self.held[at]
        if self.spills.get(at, 0) > self.spill_room:
            return False
        if any(where not in self.free for where, _ in held if where != APPLICATIONS):
            return False
        # A copy of the rows it takes from: looking changes nothing.
        return take_capacity({where: list(self.free[where]) for where, _ in held if where in self.free}, held)


def _list_spills(facts: Facts) -> Iterator[tuple[int, float, int]]:
    """Of each spill the group that writes it, when it is gone, and its bytes."""
    groups = facts.plan.groups
    number = {group.id: at for at, group in reversed(list(enumerate(groups)))}
    for spill in facts.plan.spills:
        readers = [groups[number[facts.group_of[name]]].end_s for name in spill.dst if name in facts.group_of]
        if readers and spill.src in facts.group_of:
            yield number[facts.group_of[spill.src]], max(readers), spill.bytes
