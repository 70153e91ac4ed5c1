"""A try of a launch task and the steps that move (``replan="regroup"``).

As it begins it claims its own steps, and may take others. Its own that another has taken it runs only if that one ends
without them.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from airflow.sdk.exceptions import AirflowException

from airflow_dagsched.launch.moves.elsewhere import find_done_elsewhere
from airflow_dagsched.launch.protocol.feed import has_ended_well
from airflow_dagsched.provider.following.patience import ask_patiently

if TYPE_CHECKING:
    from airflow_dagsched.provider.runtime.attempt import Attempt

log = logging.getLogger(__name__)

LOOK_EVERY_S = 2.0


def open_moves(attempt: Attempt) -> None:
    """Before the first submit: what of its own is done, or is run by others, this try does not run."""
    done = find_done_elsewhere(attempt.own, attempt.facts.feeds, attempt.facts.try_id.round)
    attempt.follower.adopt(done.values())
    if attempt.moves is not None:
        attempt.moves.claim_own(step for step in attempt.own if step not in done)


def has_taken(attempt: Attempt) -> bool:
    """Whether the try runs steps of other launch tasks."""
    return attempt.moves is not None and bool(attempt.moves.taken)


def give_back_taken(attempt: Attempt) -> None:
    """What was taken is too much for this launch task: whose it is runs it."""
    if attempt.moves is not None:
        ends = attempt.follower.feed.steps.values()
        attempt.moves.give_back([done.step for done in ends if has_ended_well(done)])


def has_own_ended(attempt: Attempt) -> bool:
    """Whether nobody need run any of its own steps any more."""
    ends = attempt.follower.feed.steps
    return all(name in ends and has_ended_well(ends[name]) for name in attempt.own)


def wait_for_awaited(attempt: Attempt) -> None:
    """Until each of the try's own steps is done by others, or its own to run."""
    moves = attempt.moves
    while moves is not None and moves.awaited:
        attempt.standing.demand()
        attempt.follower.adopt(ask_patiently(moves.settle_awaited).values())
        if moves.awaited:
            names = ", ".join(sorted(moves.awaited))
            log.info("waiting for %s, which other launch tasks run", names)
            moves.pause(LOOK_EVERY_S)
            if attempt.launch.stopped:
                raise AirflowException("stopped while other launch tasks ran its steps")
