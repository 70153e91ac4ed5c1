"""The ways to pack, by name."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial

from airflow_dagsched.placement.packing.bin_centric import SCORES, bin_centric
from airflow_dagsched.placement.packing.completion import Effort, complete
from airflow_dagsched.placement.packing.first_fit import MEASURES, decreasing, first_fit
from airflow_dagsched.placement.packing.kinds import Bin, Kinds, Load

Way = Callable[[Kinds, Load, Iterator[int]], list[Bin]]
"""Packs what it can of a load into rooms opened one after another; what is left stays in the load."""


def ways(effort: Effort) -> dict[str, Way]:
    """By name, the best on average first, then the cheapest."""
    found: dict[str, Way] = {"bin completion": partial(_completed, effort=effort)}
    found |= {f"first fit, {name}": partial(first_fit, measure=measure) for name, measure in MEASURES.items()}
    found |= {name: partial(bin_centric, score=score) for name, score in SCORES.items()}
    return found


def _completed(kinds: Kinds, load: Load, rooms: Iterator[int], *, effort: Effort) -> list[Bin]:
    return complete(kinds, load, rooms, decreasing(kinds, load, sum), effort, random.Random(0))
