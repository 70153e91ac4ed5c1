"""How much a search for better placements may do, told in work and not in seconds: one plan on every machine."""

from __future__ import annotations

from dataclasses import dataclass

MAX_NODES = 200_000
"""Offers priced for an instance by branch and bound, in all groups and shapes of a plan: about a second."""
MAX_TRIES = 20_000
"""Moves and swaps priced, in all groups and shapes of a plan: about half a second."""


@dataclass(eq=False)
class Effort:
    """What is left to the searches of one group, over all its shapes of container."""

    nodes: int = MAX_NODES
    tries: int = MAX_TRIES

    @classmethod
    def share_out(cls, groups: int) -> Effort:
        """That of each of so many groups of a plan."""
        return cls(MAX_NODES // max(1, groups), MAX_TRIES // max(1, groups))
