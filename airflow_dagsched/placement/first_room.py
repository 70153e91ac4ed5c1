"""The first offer with room, found in logarithmic time: a tree of maxima over what is left of each offer.

       max                  Each node has the most memory, disk and cores of the offers below it. A search
  max       max             goes left where all three are enough; they may be in different offers, so it
w1   w2   w3   w4           may have to go on to the right.
"""

from __future__ import annotations

from airflow_dagsched.placement.request import Work
from airflow_dagsched.placement.room import SLACK, Room

FULL = -1.0


class FirstRoom:
    """Over one ``Room``, whose offers only shrink within a wave; mutable, as it is."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._width = 1 << max(0, len(room.limits) - 1).bit_length()
        self._last: int | None = None
        needs = [work.needs.values() for work in room.request.works]
        self._least = tuple(min(values) - SLACK for values in zip(*needs, strict=True))
        self._fill()

    def first(self, work: Work, index: int, start: int = 0) -> int | None:
        """The first offer from ``start`` on with room for the instance; None: none has.

        Whoever takes an offer takes the one that was found last, before asking again.
        """
        self._refresh()
        at = self._search(work, start)
        while at is not None and not self._room.fits(work, index, at):
            at = self._search(work, at + 1)
        self._last = at
        return at

    def _fill(self) -> None:
        self._wave, self._last = self._room.memory, None
        self._memory, self._disk, self._cores = ([FULL] * 2 * self._width for _ in range(3))
        for at in range(len(self._room.limits)):
            self._set(at)
        for node in range(self._width - 1, 0, -1):
            self._pull(node)

    def _set(self, at: int) -> None:
        """What is left of offer ``at``: nothing, if that is too little for any instance."""
        left = self._room.memory[at], self._room.disk(at), self._room.cores[at]
        if any(has < least for has, least in zip(left, self._least, strict=True)):
            left = FULL, FULL, FULL
        node = self._width + at
        self._memory[node], self._disk[node], self._cores[node] = left

    def _pull(self, node: int) -> bool:
        """Set a node from those below; whether that changed it."""
        left, right, changed = 2 * node, 2 * node + 1, False
        for values in (self._memory, self._disk, self._cores):
            most = max(values[left], values[right])
            changed = changed or values[node] != most
            values[node] = most
        return changed

    def _refresh(self) -> None:
        """Take in what changed since: one offer, or all of them in a new wave.

        The disk of an offer may be less than the tree says, if it shares a worker: too much is found, never too little.
        """
        if self._wave is not self._room.memory:
            self._fill()
        elif self._last is not None:
            node = self._width + self._last
            self._set(self._last)
            while node > 1 and self._pull(node // 2):
                node //= 2

    def _search(self, work: Work, start: int) -> int | None:
        """The first leaf from ``start`` on that has the memory, the disk and the cores."""
        if start >= self._width:
            return None
        memory, disk, cores = (need - SLACK for need in work.needs.values())
        node = self._width + start
        while node:
            if self._memory[node] >= memory and self._disk[node] >= disk and self._cores[node] >= cores:
                if node >= self._width:
                    return node - self._width
                node *= 2
                continue
            while node & 1:
                node //= 2
            node += node > 0
        return None
