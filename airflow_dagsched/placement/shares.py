"""Dominant shares: how large an instance is, in the dimension where it takes the most of what there is.

Dominant resource: Ghodsi et al., NSDI 2011.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from airflow_dagsched.placement.request import Request, StepRequest
from airflow_dagsched.placement.values import Limit


def order_by_share(request: Request, limits: Sequence[Limit]) -> list[StepRequest]:
    """Steps whose instances have the least choice first: pinned ones, then by dominant share, the largest first."""
    # fsum rounds once: the order of the offers is of no effect. Of what is infinite each share is 0.
    whole = [math.fsum(limit[at] for limit in limits) for at in range(3)]
    return sorted(request.steps, key=lambda step: (not step.pinned, -compute_dominant_share(step, whole), step.number))


def compute_dominant_share(step: StepRequest, whole: Sequence[float]) -> float:
    """The largest share of ``whole`` (MiB, MiB, cores) that an instance takes; a dimension without limit has none."""
    return max(need / has if has else math.inf for need, has in zip(step.needs.list_values(), whole, strict=True))
