"""In which state a flow is: it follows from its log and from whose leases are held, so all processes see the same."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, get_args

from airflow_dagsched.switch.story import EpochStory, Story

State = Literal["steady", "requested", "deploying", "catching_up", "fenced", "retiring", "aborted"]
STATES: tuple[State, ...] = get_args(State)
MEANING: dict[State, str] = {
    "steady": "one graph runs, or none",
    "requested": "a new graph is asked for, nobody has begun",
    "deploying": "its driver starts",
    "catching_up": "both graphs run, the new one's windows are dropped",
    "fenced": "windows behind the fence are the new graph's, the old one ends what is before it",
    "retiring": "the old graph has nothing left to do",
    "aborted": "the new graph is given up, its driver ends",
}


def find_state(story: Story, held: Collection[int] = ()) -> State:
    """The flow's state.

    :param held: epochs whose lease somebody holds; without it those states that differ by a lease alone are
        "requested" and "steady".
    """
    new = story.new
    if new is None:
        newest = story.newest
        is_ending = newest is not None and newest.aborted is not None and newest.record.epoch in held
        return "aborted" if is_ending else "steady"
    if new.into is not None:
        return "retiring" if story.old is None or story.old.drained else "fenced"
    if new.started is None:
        return "deploying" if new.record.epoch in held else "requested"
    return "retiring" if is_first(new) and new.queries else "catching_up"


def is_first(epoch: EpochStory) -> bool:
    """Whether it follows nobody: then all windows are its own, and it is there as soon as it has a batch."""
    return epoch.record.x_after == 0
