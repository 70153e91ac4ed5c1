"""A try of a launch task and the steps that move (``replan="regroup"``).

As it begins it claims its own steps, and may take others. What it has no room for it offers until it has. Its own that
another has taken it runs only if that one ends without them.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow.sdk.exceptions import AirflowException

from airflow_dagsched.errors import DagschedError
from airflow_dagsched.launch.escalation.split_group import Unit
from airflow_dagsched.launch.moves.elsewhere import find_done_elsewhere, list_behind
from airflow_dagsched.launch.protocol.feed import has_ended_well
from airflow_dagsched.provider.following.patience import ask_patiently

if TYPE_CHECKING:
    from airflow_dagsched.provider.runtime.attempt import Attempt


@dataclass(eq=False)
class LeftToOthers(DagschedError):
    """While there was no room others have claimed what was to be submitted: what is left is planned anew."""

    steps: Unit

    def __str__(self) -> str:
        return f"other launch tasks run {', '.join(self.steps)} sooner"


log = logging.getLogger(__name__)

LOOK_EVERY_S = 2.0


def open_moves(attempt: Attempt) -> None:
    """Before the first submit: what of its own is done, or is run by others, this try does not run."""
    done = find_done_elsewhere(attempt.own, attempt.facts.feeds, attempt.facts.try_id.round)
    attempt.follower.adopt(done.values())
    if attempt.moves is not None:
        attempt.moves.claim_own(step for step in attempt.own if step not in done)


def begin_steps(attempt: Attempt, targets: Unit) -> Unit:
    """What of ``targets`` the try submits now: not what others have claimed since, and what is behind that."""
    if attempt.moves is None:
        return targets
    moves, graph = attempt.moves, attempt.flow.graph
    moves.begin(targets)
    if not (moves.awaited or moves.lost):
        return targets
    behind = list_behind(graph.sort_steps(), {*moves.awaited, *moves.lost}, graph.upstream)
    # For what is its own it waits; what it has taken another may run.
    moves.drop_taken(behind)
    return tuple(step for unit in attempt.flow.list_units(targets) if behind.isdisjoint(unit) for step in unit)


def offer_steps(attempt: Attempt, parts: Iterable[Unit]) -> None:
    """``parts`` have to wait for what is submitted before them: whoever can run them sooner may."""
    if attempt.moves is not None and attempt.memory.level == 0:
        attempt.moves.offer([step for part in parts for step in part])


def offer_while_waiting(attempt: Attempt, targets: Unit) -> None:
    """As long as there is no room for ``targets``. Raises ``LeftToOthers`` once others have claimed any of them."""
    offer_steps(attempt, [targets])
    if attempt.moves is not None:
        refuse_left(attempt.moves.find_left(targets))


def demand_steps(attempt: Attempt, targets: Unit) -> None:
    """There is room for ``targets`` now. Raises ``LeftToOthers`` where others have claimed any of them meanwhile."""
    if attempt.moves is not None:
        refuse_left(attempt.moves.begin(targets))


def refuse_left(left: Collection[str]) -> None:
    """Raise ``LeftToOthers``, if any are."""
    if left:
        raise LeftToOthers(tuple(sorted(left)))


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
