"""As many as possible each to one of the places it may go to, where every place has room for so many.

Source: augmenting paths, after Berge and Kuhn. ::

    x may go to a;  y to a or b;  room for one each        y -> a        x has no room
    y makes room for x                                     y -> b, x -> a
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Choices = Mapping[int, Sequence[int]]


def match_bipartite(choices: Choices, capacity: Mapping[int, int], matching: dict[int, int]) -> None:
    """Add to ``matching`` whoever finds a place; whoever has one keeps one, though it may be another."""
    # Not networkx: callers go on from a matching that they have, and its import costs more than theirs take.
    held: dict[int, list[int]] = {}
    for who, place in matching.items():
        held.setdefault(place, []).append(who)
    for who in choices:
        if who not in matching:
            _place_one(who, choices, capacity, matching, held)


def _place_one(
    who: int, choices: Choices, capacity: Mapping[int, int], matching: dict[int, int], held: dict[int, list[int]]
) -> None:
    """Search breadth first for a place with room, by way of places whose holders may go elsewhere."""
    came: dict[int, int] = dict.fromkeys(choices[who], who)
    # It grows while it is walked: breadth first, so the first path found is a shortest one.
    for place in (open_ := list(came)):
        if len(held.get(place, ())) < capacity.get(place, 0):
            _shift_path(who, place, came, matching, held)
            return
        for other in held.get(place, ()):
            for further in choices[other]:
                if further not in came:
                    came[further] = other
                    open_.append(further)


def _shift_path(
    who: int, place: int, came: dict[int, int], matching: dict[int, int], held: dict[int, list[int]]
) -> None:
    """All along the path, from the place with room back to ``who``."""
    while True:
        goes = came[place]
        before = matching.get(goes)
        matching[goes] = place
        held.setdefault(place, []).append(goes)
        if before is None:
            assert goes == who
            return
        held[before].remove(goes)
        place = before
