"""No group waits without a reason: each starts once all it waits for has ended, or when what it needs becomes free.

    w1 ▐aaaaaaa▌▐ccc▌       c is ready at once, but a has the room until it ends: c starts then
    w2 ▐bbb▌·····▐ddd▌      d is ready when b ends, and w2 is free from then on: a violation

At each moment at which something ends, a group that still waits must lack room, beside those that run then, on the
workers that it is on in the end, or for what it spills. Which of those that wait comes first is the planner's choice.
Where many wait, it need not have tried each of them at each moment: no more is asked than that they start at an end.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter

from airflow_dagsched.plan.check.capacity import Amounts, held_by
from airflow_dagsched.plan.check.facts import Facts, Violation
from airflow_dagsched.plan.values import Group

TOLERANCE_S = 1e-3
TRIED = 32
"""Groups waiting at one moment, at most, of which each is known to have been tried."""
SPILLS = ""
"""Where spills are, in bytes in place of disk: no worker has an empty id."""
MIB = 2**20
UNLIMITED = 2**62

_start, _end = attrgetter("start_s"), attrgetter("end_s")


def check_starts(facts: Facts, ends: Mapping[str, float]) -> Iterator[Violation]:
    """``ends``: of groups as predicted, of ordinary tasks the earliest.

    Part-way through a run what is left starts when the others leave room, which the plan does not say; a policy that
    moves containers puts off what comes behind them as a whole; a container pruned once it was placed had its room.
    """
    if facts.part_way:
        return
    ready = _ready(facts, ends)
    late = [group for group in facts.plan.groups if group.start_s > ready[group.id] + TOLERANCE_S]
    if facts.as_sized:
        yield from _without_an_end(facts, late, ready)
        yield from _with_room(facts, late, ready)
    elif late and all(group in late for group in facts.plan.groups if not ready[group.id]):
        first = min(late, key=_start)
        yield Violation("times", first.id, f"is the first, and starts at {first.start_s:g} s: nothing holds it up")


def _ready(facts: Facts, ends: Mapping[str, float]) -> dict[str, float]:
    """When the last that each group waits for ends."""
    ready = {group.id: 0.0 for group in facts.plan.groups}
    for src, dst in facts.edges.units:
        if dst in ready and ends.get(src, 0.0) > ready[dst]:
            ready[dst] = ends[src]
    return ready


def _without_an_end(facts: Facts, late: list[Group], ready: Mapping[str, float]) -> Iterator[Violation]:
    """Room becomes free when a group ends, and at no other moment."""
    ends = sorted(map(_end, facts.plan.groups)) if late else []
    for group in late:
        at = bisect_left(ends, group.start_s - TOLERANCE_S)
        if at == len(ends) or ends[at] > group.start_s + TOLERANCE_S:
            text = f"is ready at {ready[group.id]:g} s, starts at {group.start_s:g} s, when nothing becomes free"
            yield Violation("times", group.id, text)


def _with_room(facts: Facts, late: list[Group], ready: Mapping[str, float]) -> Iterator[Violation]:
    """Go from moment to moment; whoever waits and has room is told once."""
    if not late:
        return
    line = _Line.of(facts, sorted(late, key=lambda group: ready[group.id]))
    for now in sorted({*map(_end, facts.plan.groups), *(ready[group.id] for group in late)}):
        line.advance(now, ready)
        for group in line.idle():
            text = f"starts at {group.start_s:g} s, but has room on its workers from {now:g} s on"
            yield Violation("times", group.id, text)


@dataclass(slots=True)
class _Line:
    """What is free at a moment, and who waits then."""

    free: dict[str, list[int]]
    holds: dict[str, list[tuple[str, Amounts]]]
    """By group: what it takes where while it runs; what it spills apart."""
    starting: list[Group]
    """By their starts, the next last; the others likewise."""
    ending: list[Group]
    arriving: list[Group]
    spilled: list[tuple[float, int]]
    """When the last reader of a spill ends, and its bytes."""
    waiting: dict[str, Group] = field(default_factory=dict)

    @classmethod
    def of(cls, facts: Facts, late: list[Group]) -> _Line:
        room = facts.cluster.spill_mb
        free = {
            worker.id: [worker.free_cores, worker.free_memory_mb, _or_unlimited(worker.free_disk_mb)]
            for worker in facts.cluster.workers
        }
        holds = {group.id: list(held_by(group)) for group in facts.plan.groups}
        free[SPILLS] = [0, 0, UNLIMITED if room is None else room * MIB]
        groups = facts.plan.groups
        spilled = list(_spilled(facts, holds)) if room is not None else []
        return cls(
            free,
            holds,
            sorted(groups, key=_start, reverse=True),
            sorted(groups, key=_end, reverse=True),
            late[::-1],
            sorted(spilled, reverse=True),
        )

    def advance(self, now: float, ready: Mapping[str, float]) -> None:
        """Whatever ends until ``now`` makes room for what starts then."""
        while self.ending and self.ending[-1].end_s <= now:
            self._change(self.ending.pop(), 1)
        while self.spilled and self.spilled[-1][0] <= now:
            self.free[SPILLS][2] += self.spilled.pop()[1]
        while self.arriving and ready[self.arriving[-1].id] <= now:
            group = self.arriving.pop()
            self.waiting[group.id] = group
        while self.starting and self.starting[-1].start_s <= now + TOLERANCE_S:
            group = self.starting.pop()
            self._change(group, -1)
            self.waiting.pop(group.id, None)

    def idle(self) -> list[Group]:
        """Those that wait and have room, which then wait no more."""
        if len(self.waiting) > TRIED:
            return []
        found = [group for group in self.waiting.values() if self._fits(group)]
        for group in found:
            del self.waiting[group.id]
        return found

    def _change(self, group: Group, sign: int) -> None:
        for where, amounts in self.holds[group.id]:
            if where in self.free and (where != SPILLS or sign < 0):
                free = self.free[where]
                for at in range(3):
                    free[at] += sign * amounts[at]

    def _fits(self, group: Group) -> bool:
        needed: dict[str, list[int]] = {}
        for where, amounts in self.holds[group.id]:
            there = needed.setdefault(where, [0, 0, 0])
            for at in range(3):
                there[at] += amounts[at]
        rooms = ((self.free.get(where, (0, 0, 0)), amounts) for where, amounts in needed.items())
        return all(has >= takes for free, amounts in rooms for has, takes in zip(free, amounts, strict=True))


def _or_unlimited(disk_mb: int | None) -> int:
    return UNLIMITED if disk_mb is None else disk_mb


def _spilled(facts: Facts, holds: dict[str, list[tuple[str, Amounts]]]) -> Iterator[tuple[float, int]]:
    """When each spill is gone; its writer takes the room."""
    ends = {group.id: group.end_s for group in facts.plan.groups}
    for spill in facts.plan.spills:
        readers = [ends[facts.home[name]] for name in spill.dst if name in facts.home]
        if readers and spill.src in facts.home:
            holds[facts.home[spill.src]].append((SPILLS, (0, 0, spill.bytes)))
            yield max(readers), spill.bytes
