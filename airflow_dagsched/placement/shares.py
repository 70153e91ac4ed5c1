"""Dominant shares: how large an instance is, in the dimension where it takes the most of what there is.

Dominant resource: Ghodsi et al., NSDI 2011.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from airflow_dagsched.placement.request import Request, Work
from airflow_dagsched.placement.room import Rooms


def by_share(request: Request, limits: Sequence[Rooms]) -> list[Work]:
    """Steps whose instances have the least choice first: pinned ones, then by dominant share, the largest first."""
    whole = [math.fsum(limit[at] for limit in limits) for at in range(3)]
    return sorted(request.works, key=lambda work: (not work.pinned, -dominant_share(work, whole), work.number))


def dominant_share(work: Work, whole: Sequence[float]) -> float:
    """Of one instance in ``whole`` (memory, disk, cores); a dimension without known limit counts for nothing."""
    return max(need / has if has else math.inf for need, has in zip(work.needs.values(), whole, strict=True))
