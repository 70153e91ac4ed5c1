"""The first offer with room, found in logarithmic time: a tree of maxima over what is left of each offer.

       max                  Each node has the most memory and the most cores of the offers below it.
  max       max             A search goes left where both are enough; they may be in different offers,
w1   w2   w3   w4           so it may come back and go right.
"""

from __future__ import annotations

from airflow_dagsched.placement.request import Work
from airflow_dagsched.placement.room import SLACK, Room


class FirstRoom:
    """Over one ``Room``, whose offers only shrink within a wave; mutable, as it is."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._last: int | None = None
        self._width = 1 << max(0, len(room.limits) - 1).bit_length()
        self._fill()

    def first(self, work: Work, index: int) -> int | None:
        """The first offer with room for the instance; None: none has. Call it again after each ``take``."""
        self._refresh()
        at = self._search(work, 0)
        while at is not None and not self._room.fits(work, index, at):
            at = self._search(work, at + 1)
        self._last = at
        return at

    def _fill(self) -> None:
        width, room = self._width, self._room
        pad = [-1.0] * (width - len(room.limits))
        self._source = room.memory
        self._memory = [0.0] * width + room.memory + pad
        self._cores = [0.0] * width + room.cores + pad
        for node in range(width - 1, 0, -1):
            self._pull(node)
        self._last = None

    def _pull(self, node: int) -> None:
        left, right = 2 * node, 2 * node + 1
        self._memory[node] = max(self._memory[left], self._memory[right])
        self._cores[node] = max(self._cores[left], self._cores[right])

    def _refresh(self) -> None:
        """Take in what changed since: one offer, or all of them in a new wave."""
        if self._source is not self._room.memory:
            self._fill()
        elif self._last is not None:
            node = self._width + self._last
            self._memory[node] = self._room.memory[self._last]
            self._cores[node] = self._room.cores[self._last]
            while node > 1:
                node //= 2
                self._pull(node)

    def _search(self, work: Work, start: int) -> int | None:
        """The first leaf from ``start`` on that has the memory and the cores."""
        memory, cores = work.needs.memory_mb - SLACK, work.needs.cores - SLACK
        node = self._width + start
        if start >= self._width:
            return None
        while not (self._memory[node] >= memory and self._cores[node] >= cores and node >= self._width):
            if self._memory[node] >= memory and self._cores[node] >= cores:
                node *= 2
                continue
            while node & 1:
                node //= 2
            if not node:
                return None
            node += 1
        return node - self._width
