"""HEFT as anrg-saga has it, where that is installed: it brings solvers and drawing libraries along."""

from __future__ import annotations

import random

import pytest

from benchmarks.policies import heft, without_transfers

saga = pytest.importorskip("saga")
schedulers = pytest.importorskip("saga.schedulers.heft")

WORKERS = [f"w{at}" for at in range(3)]


@pytest.mark.parametrize("seed", range(30))
def test_the_makespan_is_that_of_saga(seed: int) -> None:
    """Durations are such that no two ranks are equal: ties are broken differently."""
    rng = random.Random(seed)
    count = rng.randint(1, 25)
    seconds = [rng.random() + 0.1 for _ in range(count)]
    below = [[other for other in range(at + 1, count) if rng.random() < 0.2] for at in range(count)]
    network = saga.Network.create(
        [(name, 1.0) for name in WORKERS], [(one, other, 1.0) for one in WORKERS for other in WORKERS if one < other]
    )
    graph = saga.TaskGraph.create(
        [(f"t{at}", cost) for at, cost in enumerate(seconds)],
        [(f"t{at}", f"t{after}", 0.0) for at, nexts in enumerate(below) for after in nexts],
    )
    theirs = schedulers.HeftScheduler().schedule(network, graph).makespan
    assert heft(without_transfers(seconds, below), len(WORKERS)) == pytest.approx(theirs)
