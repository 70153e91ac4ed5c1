"""Steps of a launch task that another one ran, or runs: what its feed and its state say of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from airflow_dagsched.launch.moves.claims import Claim
from airflow_dagsched.launch.protocol.events import StepDone
from airflow_dagsched.launch.protocol.feed import Feed, has_ended_well

BUSY = frozenset({"running", "restarting"})
"""States of a launch task whose driver program may be at work."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One look at a launch task: its state first, so that the feed of one that has ended is its last word."""

    state: str | None = None
    feed: Feed | None = None


def find_done_elsewhere(steps: Iterable[str], feeds: Mapping[str, Feed], this_round: str) -> dict[str, StepDone]:
    """The ends of those of ``steps`` that another launch task ran well since the last clear, as their own may tell
    them: what has run there is not run again.

    :param feeds: by launch task.
    """
    current = {task_id: feed for task_id, feed in sorted(feeds.items()) if feed.try_id.round == this_round}
    found: dict[str, StepDone] = {}
    for step in steps:
        ends = [(task_id, feed.steps[step]) for task_id, feed in current.items() if step in feed.steps]
        good = [reuse_end(done, task_id) for task_id, done in ends if has_ended_well(done)]
        found.update({step: good[0]} if good else {})
    return found


def reuse_end(done: StepDone, launch_id: str) -> StepDone:
    """``done`` as the launch task of the step says it, which did not run it: its asset event is still to be sent."""
    if done.state != "success":
        return done
    return replace(done, state="reused", reason=f"ran in {launch_id!r}")


def judge_claim(claim: Claim, seen: Seen, step: str, this_round: str) -> StepDone | Literal["wait", "free"]:
    """What a launch task whose ``step`` another has claimed does: takes over its end, waits for it, or runs it.

    ====================== ============================ =========
    who claimed it is      its feed says of the step    so
    ====================== ============================ =========
    anything               green, skipped, this round   its end
    running, the same try  nothing                      wait
    running, the same try  failed, of another round     free: it does not run it again
    running, and offers it nothing                      free: it has not begun
    another try, over      nothing, failed              free
    ====================== ============================ =========
    """
    feed = seen.feed
    if feed is None:
        return "wait" if seen.state in BUSY and not claim.offered else "free"
    done = feed.steps.get(step)
    if done is not None and feed.try_id.round == this_round and has_ended_well(done):
        return reuse_end(done, claim.by)
    # An earlier try's feed may still be there: the one that has claimed it says more soon.
    is_over = claim.offered or claim.try_id < feed.try_id or (done is not None and feed.try_id == claim.try_id)
    return "free" if is_over or seen.state not in BUSY else "wait"


def list_behind(steps: Collection[str], waited: Collection[str], upstream: Mapping[str, Iterable[str]]) -> set[str]:
    """Those of ``steps``, in topological order, that are below any of ``waited``, and those themselves."""
    found = {*waited}
    for step in steps:
        if not found.isdisjoint(upstream[step]):
            found.add(step)
    return found
