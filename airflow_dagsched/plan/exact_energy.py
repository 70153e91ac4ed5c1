"""What must run behind a step, before it, or between two: for the solver's model of resident groups.

    a ══> b1 .. b40 ══> c      16 cores: few of b1 .. b40 share the group of a, or that of c. The others start once
                               a's group has ended, end before c's group starts, and hold their core-seconds meanwhile

A solver sees only that all together find room, so it lets most of b1 .. b40 run beside a, each a little. For the
steps through which most of the work passes this adds, with a variable for each step behind: in one group, or apart.

Energetic reasoning as in cumulative scheduling (Erschler, Lopez 1991; Baptiste, Le Pape, Nuijten 2001).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_dagsched.plan.between import reached
from airflow_dagsched.plan.given import Given

PASSED = 8
"""Steps through which most of the work passes, at most."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Steps that are never split, in the solver's model."""

    start: Any
    end: Any
    cores: int
    ticks: int
    """That they are held at least."""

    @property
    def area(self) -> int:
        return self.cores * self.ticks


@dataclass(frozen=True, slots=True)
class Energy:
    """The model, and for pairs of units, the first one before the other, whether they are apart: a variable or 1."""

    cp: Any
    makespan: Any
    cores: int
    units: Mapping[int, Unit]
    apart: dict[tuple[int, int], Any]

    def add(self, given: Given, far: Sequence[Sequence[int]]) -> None:
        """All that the steps of ``given`` with most work before and behind them imply.

        ``far``: for each unit those before it that are in other groups.
        """
        above, below = _around(given)
        chosen = sorted(self.units, key=lambda one: (-self._area(above[one]) - self._area(below[one]), one))[:PASSED]
        for one in chosen:
            self._room(one, above[one], below[one], far)
            waiting = [self.units[other].area * self._apart(one, other, far) for other in below[one]]
            self.cp.add(self.cores * (self.makespan - self.units[one].end) >= sum(waiting))
            waiting = [self.units[other].area * self._apart(other, one, far) for other in above[one]]
            self.cp.add(self.cores * self.units[one].start >= sum(waiting))
        for one in chosen:
            for other in chosen:
                if one in far[other]:
                    between = [unit for unit in below[one] if unit in above[other]]
                    self._between(one, other, between, far)

    def _room(self, one: int, above: Sequence[int], below: Sequence[int], far: Sequence[Sequence[int]]) -> None:
        """What shares the group of ``one`` fits beside it, and it lasts as long."""
        unit = self.units[one]
        pairs = [(other, self._apart(other, one, far)) for other in above]
        pairs += [(other, self._apart(one, other, far)) for other in below]
        self.cp.add(sum(self.units[other].cores * (1 - apart) for other, apart in pairs) <= self.cores - unit.cores)
        for other, apart in pairs:
            self.cp.add(unit.end - unit.start >= self.units[other].ticks * (1 - apart))

    def _between(self, one: int, other: int, between: Sequence[int], far: Sequence[Sequence[int]]) -> None:
        """What shares a group with neither end."""
        wait = self.units[other].start - self.units[one].end
        alone = [self._apart(one, unit, far) + self._apart(unit, other, far) - 1 for unit in between]
        inside = [self.units[unit] for unit in between]
        self.cp.add(self.cores * wait >= sum(unit.area * apart for unit, apart in zip(inside, alone, strict=True)))
        for unit, apart in zip(inside, alone, strict=True):
            self.cp.add(wait >= unit.ticks * apart)

    def _area(self, units: Sequence[int]) -> int:
        return sum(self.units[unit].area for unit in units)

    def _apart(self, one: int, other: int, far: Sequence[Sequence[int]]) -> Any:
        """Whether ``other``, which waits for ``one``, starts once the group of that has ended; or with it."""
        if one in far[other]:
            return 1
        if (one, other) not in self.apart:
            before, behind = self.units[one], self.units[other]
            apart = self.apart[one, other] = self.cp.new_bool_var("")
            self.cp.add(behind.start >= before.end).only_enforce_if(apart)
            self.cp.add(behind.start == before.start).only_enforce_if(~apart)
            self.cp.add(behind.end == before.end).only_enforce_if(~apart)
        return self.apart[one, other]


def _around(given: Given) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    """For each unit of steps those before it, and those behind it."""
    graph = given.graph
    units = sorted(set(graph.loop[: len(graph.steps)]))
    order = [node for node in graph.order if graph.loop[node] == node]
    sets = reached(graph.condensed, order[::-1])
    below = {one: [other for other in units if other != one and sets[one] >> other & 1] for one in units}
    above = {one: [other for other in units if other != one and sets[other] >> one & 1] for one in units}
    return above, below
