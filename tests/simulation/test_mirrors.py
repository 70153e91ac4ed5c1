"""A launch task that is cleared, retried, frozen, made again: its tries, its feed, and no mirror green by mistake."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_dagsched.launch.protocol import clocks, feed
from airflow_dagsched.launch.protocol.feed import Feed
from airflow_dagsched.launch.protocol.identity import NO_TRY, TryId
from airflow_dagsched.launch.protocol.push_limit import read_feed
from airflow_dagsched.provider.following import standing
from airflow_dagsched.provider.mirrors import mirror
from airflow_dagsched.provider.mirrors.mirror import View
from tests.simulation import mirrors
from tests.simulation.mirrors import Model

EACH = 100


@pytest.mark.parametrize("first", range(0, 1000, EACH))
def test_each_mirror_ends_as_its_step_did_in_its_own_round(first: int):
    """And none waits for ever; a try that counts does not give up."""
    found = {seed: violations for seed in range(first, first + EACH) if (violations := Model(seed).play())}
    assert found == {}


def test_a_seed_replays_to_the_same_trace():
    """Operation by operation."""
    models = [Model(17, trace=True) for _ in range(2)]
    assert models[0].play() == models[1].play()
    assert models[0].world.trace == models[1].world.trace
    assert models[0].world.trace


def of_any_round(before: View, state: str | None, raw: Any) -> View:
    """A look that knows no order of tries."""
    return mirror.update_view(replace(before, latest=NO_TRY), state, raw)


def stale_at_once(before: View, state: str | None, raw: Any) -> View:
    """A look that takes each feed for one that the look before saw."""
    return mirror.update_view(replace(before, seen=raw["nonce"] if raw else ""), state, raw)


def by_worker(made: float, run_started: float | None, server: float | None) -> float:
    """By a clock that is one minute ahead."""
    return (server or made) + 60.0


def of_a_later_try(raw: Any) -> Feed | None:
    """Whoever says it."""
    read = read_feed(raw)
    return None if read is None else replace(read, try_id=TryId("9"))


def is_outdone(self: Any, there: Any) -> bool:
    """Only by a later try's feed; one that is gone says nothing."""
    other = read_feed(there)
    return other is not None and other.nonce != self.nonce and other.try_id >= self.try_id


MENDS: dict[str, tuple[Any, str, Any, int]] = {
    "a feed is of the round of its mirror": (feed, "is_of_its_round", lambda *_: True, 460),
    "a launch task that is restarting is not live": (feed, "LIVE", feed.LIVE | {"restarting"}, 996),
    "a worker's clock does not count": (clocks, "compute_begin", by_worker, 13),
    "tries have an order": (mirrors, "update_view", of_any_round, 2144),
    "a feed that comes while a look is taken is no earlier one": (mirrors, "update_view", stale_at_once, 146),
    "an earlier try that wakes is no reason to give up": (standing, "read_feed", of_a_later_try, 80),
    "a try that does not count tells nothing": (standing.Standing, "holds", lambda *_, **__: True, 70),
    "a try whose feed is gone does not count": (standing.Standing, "_is_followed", is_outdone, 3004),
}
"""And a seed that shows it."""


@pytest.mark.parametrize("mend", MENDS)
def test_a_mend_taken_out_turns_a_history_red(mend: str, monkeypatch: pytest.MonkeyPatch):
    """That of a seed which is known to, as long as histories are drawn as they are; else one of many."""
    where, name, instead, seed = MENDS[mend]
    monkeypatch.setattr(where, name, instead)
    assert any(Model(each).play() for each in (seed, *range(3000)))
