"""As many as possible each to one of the places it may go to, where every place has room for so many.

Source: augmenting paths, after Berge and Kuhn. ::

    x may go to a;  y to a or b;  room for one each        y -> a        x has no room
    y makes room for x                                     y -> b, x -> a
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Choices = Mapping[int, Sequence[int]]


def match(choices: Choices, room: Mapping[int, int], found: dict[int, int]) -> None:
    """Add to ``found`` whoever finds a place; whoever has one keeps one, though it may be another."""
    held: dict[int, list[int]] = {}
    for who, place in found.items():
        held.setdefault(place, []).append(who)
    for who in choices:
        if who not in found:
            _seat(who, choices, room, found, held)


def _seat(
    who: int, choices: Choices, room: Mapping[int, int], found: dict[int, int], held: dict[int, list[int]]
) -> None:
    """Search breadth first for a place with room, by way of places whose holders may go elsewhere."""
    came: dict[int, int] = dict.fromkeys(choices[who], who)
    for place in (open_ := list(came)):
        if len(held.get(place, ())) < room.get(place, 0):
            _shift(who, place, came, found, held)
            return
        for other in held.get(place, ()):
            for further in choices[other]:
                if further not in came:
                    came[further] = other
                    open_.append(further)


def _shift(who: int, place: int, came: dict[int, int], found: dict[int, int], held: dict[int, list[int]]) -> None:
    """All along the path, from the place with room back to ``who``."""
    while True:
        goes = came[place]
        before = found.get(goes)
        found[goes] = place
        held.setdefault(place, []).append(goes)
        if before is None:
            assert goes == who
            return
        held[before].remove(goes)
        place = before
