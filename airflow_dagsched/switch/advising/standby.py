"""An application that waits for the owner's driver to be lost: when it is started, takes over, and ends."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from airflow_dagsched.switch.advising.actions import Action
from airflow_dagsched.switch.advising.advice import Command, Deploy
from airflow_dagsched.switch.advising.situation import Situation, can_stop
from airflow_dagsched.switch.places import STANDBY
from airflow_dagsched.switch.signs import Seen, find_next_start
from airflow_dagsched.switch.story import EpochStory, Story


@dataclass(frozen=True, slots=True)
class StandBy:
    """Wait on."""


@dataclass(frozen=True, slots=True)
class TakeOver:
    """Be the driver of an epoch from now on."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Leave:
    """End: nobody will need this application."""

    reason: str


Verdict = StandBy | TakeOver | Leave


def judge_standby(story: Story, seen: Seen, fits: Collection[int], due: Collection[int]) -> Verdict:
    """What the standby does now.

    ==================  =====================  =============================  ==========
    a graph that fits   its own folder says    an application that fits       it
    ==================  =====================  =============================  ==========
    none is to run      (any)                  (any)                          leaves
    is to run           stop                   (any)                          leaves
    is to run                                  runs, or starts                stands by
    is to be started                           is there no more               takes over
    is to run                                  is there no more, start later  stands by
    ==================  =====================  =============================  ==========

    :param fits: epochs that can run in this application.
    :param due: epochs that somebody is to start, now or later.
    """
    if "stop" in seen.orders.get(STANDBY, {}):
        return Leave(seen.orders[STANDBY]["stop"] or "ordered to")
    guarded = [each for each in (story.old, story.new) if each is not None and _is_guarded(each, seen, fits)]
    if not guarded:
        return Leave("no graph that fits this application is to run")
    # What is lost of a living application's is its own to start.
    if seen.held.intersection(fits):
        return StandBy()
    lost = (each.record.epoch for each in guarded if each.begun is not None or each.record.epoch == story.owner)
    return next((TakeOver(epoch) for epoch in lost if epoch in due and _may_start(epoch, seen)), StandBy())


def _is_guarded(epoch: EpochStory, seen: Seen, fits: Collection[int]) -> bool:
    number, record = epoch.record.epoch, epoch.record
    is_ordered = "stop" in seen.orders.get(number, {}) and can_stop(epoch)
    is_over = epoch.has_ended or epoch.drained or epoch.stopped is not None
    return number in fits and record.x_standbys > 0 and not is_over and not is_ordered


def _may_start(epoch: int, seen: Seen) -> bool:
    # Not as others may, who leave it to a standby for a while.
    return seen.now >= find_next_start(seen.starts.get(epoch), seen.now)


def deploy_standby(look: Situation) -> tuple[Command, ...]:
    """Start an application that waits for the owner's driver to be lost."""
    return (Deploy(STANDBY, find_next_start(look.seen.starts.get(STANDBY), look.seen.now)),)


STANDBY_ACTIONS: Mapping[str, Action] = {deploy_standby.__name__: deploy_standby}
"""By the names that the table has them under."""
