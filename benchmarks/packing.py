"""``python -m benchmarks.packing``: bins against the largest dimension's sum, by class of items and way to pack.

The classes are those of the planner's research: uniform, virtual machines on hosts, and anti-correlated items.
The last come in several widths and noises, since there the sums say little: ``bound`` is what no packing is below,
where few share a bin by ``packing_proof``.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import repeat
from pathlib import Path
from statistics import fmean

from airflow_dagsched.placement.packing.bound import bins_bound
from airflow_dagsched.placement.packing.kinds import Size, kinds_of
from airflow_dagsched.placement.packing.pack import NORMAL, QUICK, pack
from airflow_dagsched.placement.packing.ways import ways
from benchmarks.packing_proof import least_bins

WHOLE = 1_000_000
"""The room of a bin in each dimension."""
Draw = Callable[[random.Random], tuple[float, float]]
Packs = Callable[[Sequence[Size]], int]
"""The number of bins of some items."""


def uniform(rng: random.Random) -> tuple[float, float]:
    """Nothing in common between the dimensions."""
    return rng.uniform(0.1, 0.5), rng.uniform(0.1, 0.5)


def cloud(rng: random.Random) -> tuple[float, float]:
    """1, 2, 4 or 8 of 16 cores; memory in proportion, half or twice of it."""
    cores = rng.choice([1, 2, 4, 8]) / 16
    return cores, cores * rng.choice([0.5, 1, 2])


def opposed(low: float, high: float, noise: float) -> Draw:
    """The more of one, the less of the other, give or take ``noise``."""

    def draw(rng: random.Random) -> tuple[float, float]:
        one = rng.uniform(low, high)
        return one, min(high, max(low, low + high - one + rng.uniform(-noise, noise)))

    return draw


CLASSES: dict[str, Draw] = {
    "uniform .1-.5": uniform,
    "cloud mix": cloud,
    "anti-correlated .1-.5": opposed(0.1, 0.5, 0.1),
    "anti-correlated .05-.7": opposed(0.05, 0.7, 0.1),
    "anti-correlated .05-.95": opposed(0.05, 0.95, 0.1),
    "opposed .1-.6 +-.05": opposed(0.1, 0.6, 0.05),
    "opposed .02-.7 +-.1": opposed(0.02, 0.7, 0.1),
    "opposed .05-.95 +-.02": opposed(0.05, 0.95, 0.02),
}


@dataclass(frozen=True, slots=True)
class Row:
    """Means over the seeds, of one class and one way."""

    items: str
    way: str
    bins_per_sum: float
    """Bins by the largest dimension's sum of shares."""
    bins_per_bound: float
    cpu_ms: float


def main(argv: Sequence[str]) -> int:
    """Measure, print the table, write the JSON file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.packing", description=__doc__)
    parser.add_argument("--items", type=int, default=1000, help="default: %(default)s")
    parser.add_argument("--seeds", type=int, default=5, help="default: %(default)s")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the rows to this file")
    asked = parser.parse_args(argv)
    rows = []
    print(f"{'items':26}{'way':22}{'bins/sum':>10}{'bins/bound':>12}{'CPU ms':>10}")
    for row in measured(asked.items, asked.seeds):
        rows.append(asdict(row))
        print(
            f"{row.items:26}{row.way:22}{row.bins_per_sum:10.3f}{row.bins_per_bound:12.3f}{row.cpu_ms:10.0f}",
            flush=True,
        )
    if asked.json:
        content = {"items": asked.items, "seeds": asked.seeds, "rows": rows}
        asked.json.write_text(json.dumps(content, indent=1) + "\n")
    return 0


def measured(count: int, seeds: int) -> Iterator[Row]:
    """A row for each class and way."""
    packers = {**{name: _alone(name) for name in ways(NORMAL)}, "quick": _quick, "normal": _normal}
    for name, draw in CLASSES.items():
        drawn = [_sizes(draw, count, seed) for seed in range(seeds)]
        bounds = [_bound(sizes) for sizes in drawn]
        for way, packs in packers.items():
            yield _row(name, way, packs, drawn, bounds)


def _bound(sizes: Sequence[Size]) -> int:
    room = (WHOLE, WHOLE)
    return max(bins_bound(kinds_of(sizes, [room])), least_bins(sizes, room) or 0)


def _row(name: str, way: str, packs: Packs, drawn: Sequence[Sequence[Size]], bounds: Sequence[int]) -> Row:
    start = time.process_time()
    bins = [packs(sizes) for sizes in drawn]
    spent = time.process_time() - start
    sums = [max(map(sum, zip(*sizes, strict=True))) / WHOLE for sizes in drawn]
    return Row(
        name,
        way,
        fmean(n / of for n, of in zip(bins, sums, strict=True)),
        fmean(n / of for n, of in zip(bins, bounds, strict=True)),
        spent / len(drawn) * 1000,
    )


def _sizes(draw: Draw, count: int, seed: int) -> list[Size]:
    rng = random.Random(seed)
    return [tuple(round(share * WHOLE) for share in draw(rng)) for _ in range(count)]


def _alone(way: str) -> Packs:
    def packs(sizes: Sequence[Size]) -> int:
        kinds = kinds_of(sizes, [(WHOLE, WHOLE)])
        return len(ways(NORMAL)[way](kinds, kinds.load(), repeat(kinds.fields.packed((WHOLE, WHOLE)))))

    return packs


def _quick(sizes: Sequence[Size]) -> int:
    return len(pack(sizes, (WHOLE, WHOLE), QUICK).bins)


def _normal(sizes: Sequence[Size]) -> int:
    return len(pack(sizes, (WHOLE, WHOLE), NORMAL).bins)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
