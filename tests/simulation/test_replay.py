"""A seed is a history: the same operations at the same times, whenever and wherever it is played."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.simulation.history import play


@pytest.mark.parametrize("seed", [1, 65, 213])
def test_a_seed_replays_to_the_same_trace(seed: int):
    """Operation by operation."""
    first, second = (play(seed, trace=True) for _ in range(2))
    assert first.trace == second.trace
    assert len(first.trace) > 100
    assert (first.violations, first.outcomes) == (second.violations, second.outcomes)


def test_another_process_plays_the_same():
    """Whatever the order of its sets."""
    code = "from tests.simulation.history import play; print(*play(65, trace=True).trace, sep='\\n')"
    texts = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": number, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for number in ("1", "2")
    ]
    assert texts[0] == texts[1]
    assert texts[0].splitlines() == play(65, trace=True).trace


def test_different_seeds_differ():
    """Else the histories would all be one."""
    assert play(1, trace=True).trace != play(2, trace=True).trace
