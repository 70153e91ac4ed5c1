"""Streaming instances in fewer containers than a rule of thumb found: few instances are searched through.

first fit decreasing   [4 4  ][3 3 3 ][3     ]      in containers of 10
searched               [4 3 3][4 3 3 ]              one container less, while a bound says that there may be one
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

from airflow_dagsched.placement.exact import Places, search
from airflow_dagsched.placement.request import Request
from airflow_dagsched.placement.room import SLACK, Rooms

SEARCHED = 30
"""Among more instances the search would end long before it finds or proves anything."""
BUDGET = 20_000
"""Offers looked at for each container less: a few hundredths of a second."""


def fewest(request: Request, limits: Sequence[Rooms], places: Places) -> Places:
    """``places``, or a placement in fewer offers, if one was found. Batch instances wait in turn: those stay."""
    if request.residency != "all" or not 0 < request.instances <= SEARCHED:
        return places
    least = _bound(request, limits)
    while (used := len({at for found in places for at in found})) > least:
        fewer = search(request, limits, BUDGET, most=used - 1)
        if fewer is None:
            break
        places = fewer
    return places


def _bound(request: Request, limits: Sequence[Rooms]) -> int:
    """So many of the largest rooms it takes to have enough of each dimension, and under the cap."""
    capped = math.ceil(request.instances / request.cap) if request.cap else 1
    return max(capped, *(_enough(request, [limit[at] for limit in limits], at) for at in (0, 1, 2)))


def _enough(request: Request, rooms: Sequence[float], at: int) -> int:
    need = sum(work.needs.values()[at] * work.parallelism for work in request.works)
    sums = accumulate(sorted(rooms, reverse=True))
    return next((count for count, has in enumerate(sums, 1) if has * (1 + SLACK) + SLACK >= need), len(rooms))
