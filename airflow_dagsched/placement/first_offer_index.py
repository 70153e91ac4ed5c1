"""The first offer with room, found in logarithmic time: a tree of maxima over what is left of each offer.

       max                  Each node has the most memory, disk and cores of the offers below it. A search
  max       max             goes left where all three are enough; they may be in different offers, so it
w1   w2   w3   w4           may have to go on to the right.
"""

from __future__ import annotations

from airflow_dagsched.model.units import TOLERANCE
from airflow_dagsched.placement.offer_capacity import OfferCapacity
from airflow_dagsched.placement.request import StepRequest

FULL = -1.0


class FirstOfferIndex:
    """An index of one ``OfferCapacity``, whose offers only shrink within a wave; mutable, as it is."""

    def __init__(self, capacity: OfferCapacity) -> None:
        self._capacity = capacity
        # A power of two: below node n are 2n and 2n + 1, and the leaves begin at ``_width``.
        self._width = 1 << max(0, len(capacity.limits) - 1).bit_length()
        self._last: int | None = None
        needs = [step.needs.list_values() for step in capacity.request.steps]
        # Room for less than any instance is none: full offers fall out of the tree, and searches pass them over.
        self._least = tuple(min(values) - TOLERANCE for values in zip(*needs, strict=True))
        self._fill_tree()

    def find_first(self, step: StepRequest, index: int, start: int = 0) -> int | None:
        """The first offer from ``start`` on with room for the instance; None: none has.

        Whoever takes an offer takes the one that was found last, before asking again.
        """
        self._refresh_tree()
        at = self._search_tree(step, start)
        # The tree has maxima alone, no pins, caps or waves that share memory: what it finds is asked again.
        while at is not None and not self._capacity.fits_in_wave(step, index, at):
            at = self._search_tree(step, at + 1)
        self._last = at
        return at

    def _fill_tree(self) -> None:
        # ``begin_wave`` puts new lists in place: another list is another wave, with all leaves stale.
        self._wave, self._last = self._capacity.free_memory, None
        self._memory, self._disk, self._cores = ([FULL] * 2 * self._width for _ in range(3))
        for at in range(len(self._capacity.limits)):
            self._set_leaf(at)
        for node in range(self._width - 1, 0, -1):
            self._update_node(node)

    def _set_leaf(self, at: int) -> None:
        """What is left of offer ``at``: nothing, if that is too little for any instance."""
        free = self._capacity.free_memory[at], self._capacity.get_free_disk(at), self._capacity.free_cores[at]
        if any(has < least for has, least in zip(free, self._least, strict=True)):
            free = FULL, FULL, FULL
        node = self._width + at
        self._memory[node], self._disk[node], self._cores[node] = free

    def _update_node(self, node: int) -> bool:
        """Set a node from those below; whether that changed it."""
        first, second, changed = 2 * node, 2 * node + 1, False
        for values in (self._memory, self._disk, self._cores):
            most = max(values[first], values[second])
            changed = changed or values[node] != most
            values[node] = most
        return changed

    def _refresh_tree(self) -> None:
        """Take in what changed since: one offer, or all of them in a new wave.

        The disk of an offer may be less than the tree says, if it shares a worker: too much is found, never too little.
        """
        if self._wave is not self._capacity.free_memory:
            self._fill_tree()
        elif self._last is not None:
            node = self._width + self._last
            self._set_leaf(self._last)
            # Only as far up as a maximum has changed.
            while node > 1 and self._update_node(node // 2):
                node //= 2

    def _search_tree(self, step: StepRequest, start: int) -> int | None:
        """The first leaf from ``start`` on that has the memory, the disk and the cores."""
        if start >= self._width:
            return None
        memory, disk, cores = (need - TOLERANCE for need in step.needs.list_values())
        node = self._width + start
        while node:
            if self._memory[node] >= memory and self._disk[node] >= disk and self._cores[node] >= cores:
                if node >= self._width:
                    return node - self._width
                node *= 2
                continue
            # Up from right children to where there is a sibling to the right; past the last one node is 0: none.
            while node & 1:
                node //= 2
            node += node > 0
        return None
