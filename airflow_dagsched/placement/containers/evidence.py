"""What a refusal says: of all the places that lack something, the one that comes nearest, and what it lacks most."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.model.units import TOLERANCE
from airflow_dagsched.placement.values import DIMENSIONS, UNITS

Room = tuple[str, Sequence[float]]
"""A worker, and what it has for one container or instance, in the order of ``DIMENSIONS``."""


def explain_shortage(what: str, thing: str, needs: Sequence[float], rooms: Iterable[Room]) -> DoesNotFit | None:
    """That ``what`` has no room for ``thing`` on the worker that comes nearest; None where some worker has room."""
    nearest = min((_measure_lack(needs, room) for room in rooms), default=None)
    if nearest is None or not nearest[0]:
        return None
    _, _, _, worker, at, available = nearest
    return DoesNotFit(what, f"{DIMENSIONS[at]} of {thing}", needs[at], max(0.0, available), UNITS[at], worker)


def _measure_lack(needs: Sequence[float], room: Room) -> tuple[float, float, float, str, int, float]:
    """How many times too large the worst need is, then all together; the worker, the worst, and what there is of it."""
    worker, has = room
    # Where there is nothing at all, a part of a unit stands for it: less than nothing is no nearer.
    times = [(need / max(have, TOLERANCE), at) for at, (need, have) in enumerate(zip(needs, has, strict=True))]
    lacking = [(ratio, at) for ratio, at in times if needs[at] > has[at] + TOLERANCE]
    worst, at = max(lacking, default=(0.0, 0))
    return worst, sum(ratio for ratio, _ in lacking), -has[at], worker, at, has[at]
