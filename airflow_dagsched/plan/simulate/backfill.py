"""When the first in line will have room: whoever ends by then may go ahead of it, and harms nobody.

EASY backfilling (Lifka, "The ANL/IBM SP scheduling system", 1995), with what groups are planned to take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from airflow_dagsched.plan.simulate.jobs import Need, Place
from airflow_dagsched.plan.simulate.modelled_capacity import count_slots
from airflow_dagsched.plan.simulate.sampled_conditions import NEVER

Ending = tuple[float, Sequence[Place]]
"""When a group is planned to end, and what it gives back."""


def find_room_time(missing: int, need: Need, free: Callable[[int], Need], ending: Iterable[Ending]) -> float:
    """The time from which ``missing`` more containers have room on any workers; never, if that does not come.

    ``free`` tells what a worker has now; ``ending`` comes in the order of time.
    """
    later: dict[int, Need] = {}
    for end, given in ending:
        for worker, back in given:
            before = later.get(worker) or free(worker)
            later[worker] = before[0] + back[0], before[1] + back[1], before[2] + back[2]
            # Slots of a worker, not sums: two cores here and two there hold no container of four.
            missing -= count_slots(later[worker], need) - count_slots(before, need)
        if missing <= 0:
            return end
    return NEVER
