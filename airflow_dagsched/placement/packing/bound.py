"""A lower bound of the number of equal bins, from one dimension or several at once.

Sizes weighed by factors that sum to 1 go into bins of 1 in one dimension, so every bound of that problem holds.
*Dual feasible functions* (Lueker 1983; Fekete and Schepers 2001) map sizes to sizes so that what shares a bin
still does; the mapped sum is a bound. ``rounded`` counts how many of an item share a bin, ``split`` knows that
two items above a half do not. With equal factors, items of (0.2, 0.5) and (0.5, 0.2) go in twos: 0.35 > 1/3.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import accumulate, product
from operator import mul

from airflow_dagsched.placement.packing.kinds import Kinds, Size

PARTS = 12
"""``rounded`` is tried for bins of 1 to so many parts."""
FACTORS = (0, 1, 2)
MIXED = 3
"""With more dimensions each is weighed alone, and all of them equally."""


def bins_bound(kinds: Kinds) -> int:
    """No packing of all items into bins of ``kinds.most`` has fewer bins. Exact arithmetic; n log n."""
    bounds = (bound for factors in _mixes(len(kinds.most)) for bound in _bounds(kinds, factors))
    return max(map(math.ceil, bounds), default=0) or min(1, len(kinds.sizes))


def _mixes(dimensions: int) -> Iterator[tuple[int, ...]]:
    if dimensions <= MIXED:
        yield from (mix for mix in product(FACTORS, repeat=dimensions) if math.gcd(*mix) == 1)
    else:
        yield from (tuple(int(at == one) for at in range(dimensions)) for one in range(dimensions))
        yield (1,) * dimensions


def _bounds(kinds: Kinds, factors: Sequence[int]) -> Iterator[Fraction]:
    """Of the problem in one dimension: bins of ``whole``, items of integer size."""
    factors = [factor if room else 0 for factor, room in zip(factors, kinds.most, strict=True)]
    scale = math.prod(room or 1 for room in kinds.most)
    whole = scale * sum(factors)
    if not whole:
        return
    steps: Size = tuple(factor * scale // (room or 1) for factor, room in zip(factors, kinds.most, strict=True))
    scaled = (sum(map(mul, steps, size)) for size in kinds.sizes)
    items = sorted((size, len(of)) for size, of in zip(scaled, kinds.items, strict=True))
    yield from (_rounded(items, whole, parts) for parts in range(1, PARTS + 1))
    yield from _split(items, whole)


def _rounded(items: Sequence[tuple[int, int]], whole: int, parts: int) -> Fraction:
    """An item of between ``i`` and ``i + 1`` of ``parts + 1`` equal pieces counts as ``i`` of ``parts``."""
    exact, pieces = 0, 0
    for size, count in items:
        full, rest = divmod(size * (parts + 1), whole)
        if rest:
            pieces += full * count
        else:
            exact += size * count
    return Fraction(exact, whole) + Fraction(pieces, parts)


def _split(items: Sequence[tuple[int, int]], whole: int) -> Iterator[Fraction]:
    """For each small size: all smaller items count nothing, all too large to share with it a whole bin."""
    sizes = [size for size, _ in items]
    above = [0, *accumulate(count for _, count in items)]
    total = [0, *accumulate(size * count for size, count in items)]
    for small in sizes[: bisect_right(sizes, whole // 2)]:
        low, high = bisect_left(sizes, small), bisect_right(sizes, whole - small)
        yield above[-1] - above[high] + Fraction(total[high] - total[low], whole)
