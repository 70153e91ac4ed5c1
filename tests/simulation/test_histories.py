"""Histories that must all be right: nothing lost, nothing twice, nobody stuck.

A red one is looked at with ``python -m tests.simulation --seed N --trace``.
"""

from __future__ import annotations

import pytest

from tests.simulation.history import play

EACH = 100


@pytest.mark.parametrize("first", range(0, 3000, EACH))
def test_no_history_goes_wrong(first: int):
    """A hundred of them."""
    results = (play(seed) for seed in range(first, first + EACH))
    assert {result.seed: result.violations for result in results if result.violations} == {}


def test_tries_end_in_every_way():
    """Else what the histories say of one of these, such as of what is reused, is said of nothing."""
    outcomes = {outcome.partition(":")[0] for seed in range(100) for outcome in play(seed).outcomes.values()}
    assert outcomes >= {"committed", "reused", "refused"}
