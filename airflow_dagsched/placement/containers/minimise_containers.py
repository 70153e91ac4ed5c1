"""Streaming instances in fewer containers than a rule of thumb found: few instances are searched through.

first fit decreasing   [4 4  ][3 3 3 ][3     ]      in containers of 10
searched               [4 3 3][4 3 3 ]              one container less, while a bound says that there may be one
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

from airflow_dagsched.model.units import TOLERANCE
from airflow_dagsched.placement.exhaustive_search import Placement, search_placement
from airflow_dagsched.placement.request import Request
from airflow_dagsched.placement.values import Limit

MAX_INSTANCES = 30
"""Among more instances the search would end long before it finds or proves anything."""
BUDGET = 20_000
"""Offers looked at for each container less: a few hundredths of a second."""


def minimise_containers(request: Request, limits: Sequence[Limit], places: Placement) -> Placement:
    """``places``, or a placement in fewer offers, if one was found. Batch instances wait in turn: those stay."""
    if request.residency != "all" or not 0 < request.instance_count <= MAX_INSTANCES:
        return places
    least = _count_least(request, limits)
    while (used := len({at for offers in places for at in offers})) > least:
        # One less at a time, with a budget for each: what was found stays found when the next search gives up.
        fewer = search_placement(request, limits, BUDGET, most=used - 1)
        if fewer is None:
            break
        places = fewer
    return places


def _count_least(request: Request, limits: Sequence[Limit]) -> int:
    """So many of the largest rooms it takes to have enough of each dimension, and under the cap."""
    capped = math.ceil(request.instance_count / (request.settings.instances_per_container or request.instance_count))
    return max(capped, *(_count_enough(request, [limit[at] for limit in limits], at) for at in (0, 1, 2)))


def _count_enough(request: Request, limits: Sequence[float], at: int) -> int:
    need = request.sum_needs(at)
    # The largest offers first: no other choice of so many has more. Offers of one worker count their disk twice, which
    # makes the bound lower, never wrong.
    sums = accumulate(sorted(limits, reverse=True))
    return next((count for count, has in enumerate(sums, 1) if has * (1 + TOLERANCE) + TOLERANCE >= need), len(limits))
