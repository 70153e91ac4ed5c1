"""How long a group computes where each instance takes its own time: as long as the slowest, wave by wave.

step of 5 instances     lane 1  ▐░░░░▌▐░░░░░░░░▌        A step ends with its last instance, a group with its last
on 2 lanes              lane 2  ▐░░░░░░▌▐░░▌▐░░▌        step: many instances do not even each other out.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

DRAWN = 10_000
"""Instances of a step that are drawn one by one, at most; of more, all waves but the last take what is expected."""
_NORMAL = NormalDist()
_LEAST, _MOST = 1e-300, math.nextafter(1.0, 0.0)
"""Of a probability that has a quantile."""


class ComputedStep(NamedTuple):
    """A step in its group."""

    instances: int
    lanes: int
    """Instances that the group's containers run at once."""
    seconds: float
    """Of one instance, as planned."""
    readers: tuple[int, ...]
    """Steps behind it in the group's list that wait for it, by their places."""


class Computing(NamedTuple):
    """What a group computes."""

    steps: tuple[ComputedStep, ...]
    """In the order in which they start."""
    slots: int
    """Steps side by side; 0: all are there from start to end."""

    def draw_factor(self, noise: float, rng: random.Random) -> float:
        """How much longer than planned it computes, ``noise`` being the deviation of the logarithm of each runtime."""
        planned_s = self._play([_count_waves(step) * step.seconds for step in self.steps])
        # Played both times: what this walk leaves out, such as cores that steps take from each other, cancels out.
        return self._play([_draw_step_s(step, noise, rng) for step in self.steps]) / planned_s if planned_s else 1.0

    def _play(self, seconds: Sequence[float]) -> float:
        """Seconds until the last step ends, the first in the list that is ready going first."""
        if len(seconds) <= 1 or not self.slots:
            return max(seconds, default=0.0)
        waits = [0] * len(seconds)
        for step in self.steps:
            for reader in step.readers:
                waits[reader] += 1
        ready, running, now = [at for at, count in enumerate(waits) if not count], list[tuple[float, int]](), 0.0
        while ready or running:
            while ready and len(running) < self.slots:
                at = heapq.heappop(ready)
                heapq.heappush(running, (now + seconds[at], at))
            now, ended = heapq.heappop(running)
            for reader in self.steps[ended].readers:
                waits[reader] -= 1
                if not waits[reader]:
                    heapq.heappush(ready, reader)
        return now


def _count_waves(step: ComputedStep) -> int:
    return -(-step.instances // max(1, step.lanes))


def _draw_step_s(step: ComputedStep, noise: float, rng: random.Random) -> float:
    """Seconds until the last instance ends: each is lognormal, with the planned seconds as its mean."""
    lanes, beyond = max(1, step.lanes), 0
    if step.instances > max(lanes, DRAWN):
        beyond = _count_waves(step) - 1
    if beyond or step.instances <= lanes:
        return step.seconds * (beyond + _draw_largest(min(step.instances, lanes), noise, rng))
    ends = [0.0] * lanes
    for _ in range(step.instances):
        heapq.heapreplace(ends, ends[0] + rng.lognormvariate(-noise * noise / 2, noise))
    return step.seconds * max(ends)


def _draw_largest(count: int, noise: float, rng: random.Random) -> float:
    """The largest of ``count`` factors of mean 1, by one draw: all are below x with the probability of one, to that."""
    if not count:
        return 0.0
    # exp(mu + sigma**2 / 2) is the mean of a lognormal: with this mu it is 1.
    quantile = min(max(rng.random(), _LEAST) ** (1 / count), _MOST)
    return math.exp(-noise * noise / 2 + noise * _NORMAL.inv_cdf(quantile))
