"""When the first in line will have room: whoever ends by then may go ahead of it, and harms nobody.

EASY backfilling (Lifka, "The ANL/IBM SP scheduling system", 1995), with what groups are planned to take.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from airflow_dagsched.plan.simulate.jobs import Need, Place
from airflow_dagsched.plan.simulate.luck import NEVER


def room_at(places: Sequence[Place], free: list[Need], ending: Iterable[tuple[float, Sequence[Place]]]) -> float:
    """The time from which ``places`` have room on any workers, as groups end and give back theirs.

    ``free`` is what each worker has now; it is used up. Never, if even an empty cluster has no room.
    """
    need = tuple(map(max, zip(*(need for _, need in places), strict=True)))
    slots = sum(_slots(offered, need) for offered in free)
    for end, given in sorted(ending):
        for worker, back in given:
            slots -= _slots(free[worker], need)
            free[worker] = _sum(free[worker], back)
            slots += _slots(free[worker], need)
        if slots >= len(places):
            return end
    return NEVER


def _slots(free: Sequence[int], need: Sequence[int]) -> int:
    """How many containers have room on a worker; a lost one has less than nothing."""
    return max(0, min(has // want for has, want in zip(free, need, strict=True) if want))


def _sum(one: Need, other: Need) -> Need:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]
