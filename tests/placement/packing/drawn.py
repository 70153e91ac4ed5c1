"""Random items and bins for hypothesis, and the least number of bins by trying everything."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from airflow_dagsched.placement.packing.kinds import Size


@st.composite
def instances(draw: st.DrawFn, most: int = 60) -> tuple[list[Size], Size]:
    """Items of one to three dimensions that fit into a bin alone, and the bin; equal and zero sizes among them."""
    room = tuple(draw(st.lists(st.integers(0, 12), min_size=1, max_size=3), label="room"))
    size = st.tuples(*(st.integers(0, value) for value in room))
    return draw(st.lists(size, max_size=most), label="sizes"), room


def fits(box: Sequence[Size], room: Size) -> bool:
    return all(sum(values) <= most for values, most in zip(zip(*box, strict=True), room, strict=True))


def can_pack(sizes: Sequence[Size], rooms: Sequence[Size]) -> bool:
    """Whether there is a way at all: every item into every room."""
    if not sizes:
        return True
    first, rest = sizes[0], sizes[1:]
    for at, room in enumerate(rooms):
        left = tuple(has - need for has, need in zip(room, first, strict=True))
        if min(left) >= 0 and can_pack(rest, [*rooms[:at], left, *rooms[at + 1 :]]):
            return True
    return False
