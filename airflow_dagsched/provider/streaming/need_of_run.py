"""Whether a stream needs a run of its DAG: by its log, its leases, and the launch tasks of all its runs.

It is looked again and again, and a run is asked for until the log says what it should: a run may fail before its launch
task begins, be merged with another, or lose its worker. What the log says stands for itself, so it doesn't matter who
asked, or whether anybody remembers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Literal

from airflow_dagsched.switch.records import Cause
from airflow_dagsched.switch.signs import Seen
from airflow_dagsched.switch.story import EpochStory, Story

Need = Literal["changed", "lost", "not followed", "moved"]
"""There is no epoch of this code; one whose driver is gone, or that nobody began; one that runs, and no run follows;
one that is better off on other workers.
"""

NOT_BEGUN = frozenset({None, "scheduled", "queued", "up_for_retry", "up_for_reschedule", "restarting"})
"""States of a launch task that will look at the log, with the newest code, as soon as it begins."""
FOLLOWING = NOT_BEGUN | {"running", "deferred"}
AT_WORK = FOLLOWING - {None}
"""States in which a task follows its epoch, or is about to: what ended was its worker, or the triggerer that had it,
and no person's wish. One that was cleared may be about to begin as well; its next try sees that by itself.
"""
GIVEN_UP: frozenset[Cause] = frozenset({"author", "person"})
"""Causes that another run would not change: the same code fails again, or someone wants it so."""
MOST_TIMED_OUT = 2
"""So often one code may be given up after each other since it took too long: a third run would be a waste of cores."""

FIRST_WAIT_S, LONGEST_WAIT_S = 120.0, 900.0
"""Seconds to the second run for the same need; the wait doubles each time, to the longest."""
SETTLES_S: Mapping[Need, float] = {"changed": 0.0, "lost": 60.0, "not followed": 60.0, "moved": 0.0}
"""Seconds for which a need must be seen. Who marks a launch task failed orders the stop a moment later. A move is told
only after two equal looks at the cluster.
"""


@dataclass(frozen=True, slots=True)
class Look:
    """All that is known at one moment."""

    story: Story
    seen: Seen
    fingerprint: str
    """Of the flow as the DAG file has it."""
    states: Mapping[str, str | None] = field(default_factory=dict)
    """Run -> state of its launch task."""
    refused: str = ""
    """Fingerprint of the code that could not be asked for."""
    moves: int = 0
    """The epoch that is better off on other workers; 0: none is."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What was seen and asked for before. Times are in seconds since 1970."""

    need: Need | None = None
    """At the last look."""
    since: float = 0.0
    """When that was seen first."""
    runs: int = 0
    """Asked for after each other."""
    asked: float = float("-inf")
    """When the last of them was."""


def judge_look(look: Look, before: Memory) -> tuple[Need | None, Memory]:
    """The need for which a run is asked for now, if one is, and what is to be remembered."""
    now, need = look.seen.now, find_need(look)
    memory = replace(before, need=need, since=before.since if need == before.need else now)
    if need is None or now < memory.since + SETTLES_S[need] or now < before.asked + _find_wait(look, before):
        return None, memory
    # Long after the last one it is another story.
    runs = 1 if now - before.asked >= 2 * LONGEST_WAIT_S else before.runs + 1
    return need, replace(memory, runs=runs, asked=now)


def _find_wait(look: Look, before: Memory) -> float:
    """Seconds from the last run that was asked for to the next."""
    if _is_coming(look, before.need):
        return LONGEST_WAIT_S
    # The exponent is held down: 2.0 ** 5000 is no float.
    return float(min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(before.runs - 1, 60)))


def _is_coming(look: Look, need: Need | None) -> bool:
    """Whether a run is there already that may see to it."""
    if NOT_BEGUN.intersection(look.states.values()):
        return True
    # Until it has asked for its epoch it is in no record: it waits for room, or for an answer.
    known = {run for each in look.story.epochs.values() for run in _list_runs(each)}
    return need in ("changed", "moved") and any(
        state == "running" for run, state in look.states.items() if run not in known
    )


def find_need(look: Look) -> Need | None:
    """What the stream lacks, that a run would give it."""
    meant = find_meant(look.story, look.fingerprint)
    if meant is None:
        return None if _is_given_up(look) else "changed"
    is_stopping = "stop" in look.seen.orders.get(meant.record.epoch, {})
    return _find_lack(look, meant) or (None if is_stopping else _find_better(look))


def find_meant(story: Story, fingerprint: str) -> EpochStory | None:
    """The epoch of this code that is, or is to be, the owner; None: there is none."""
    meant = story.new or story.old
    return meant if meant is not None and meant.record.fingerprint == fingerprint else None


def _is_given_up(look: Look) -> bool:
    """Whether this very code was tried last, and is not to be tried again."""
    if look.refused == look.fingerprint:
        return True
    newest = look.story.newest
    if newest is None or newest.aborted is None or newest.record.fingerprint != look.fingerprint:
        return False
    return newest.aborted.x_cause in GIVEN_UP or _count_timed_out(look) >= MOST_TIMED_OUT


def _count_timed_out(look: Look) -> int:
    """How often this code was given up for want of time, after each other, until now."""
    latest = (each for _, each in sorted(look.story.epochs.items(), reverse=True))
    tried = takewhile(lambda each: each.record.fingerprint == look.fingerprint and each.aborted is not None, latest)
    return sum(1 for each in tried if each.aborted is not None and each.aborted.x_cause == "time")


def _find_lack(look: Look, meant: EpochStory) -> Need | None:
    number = meant.record.epoch
    is_stopped = meant.stopped is not None and meant.stopped.x_cause in GIVEN_UP
    if is_stopped or "stop" in look.seen.orders.get(number, {}) or is_followed(look, number):
        return None
    return "not followed" if number in look.seen.held else "lost"


def _find_better(look: Look) -> Need | None:
    """Whether the owner is to move. A graph that came to nothing there is not tried for ever."""
    story = look.story
    is_alone = story.successor is None and look.moves == story.owner != 0
    return "moved" if is_alone and not _is_given_up(look) else None


def is_followed(look: Look, epoch: int) -> bool:
    """Whether a launch task works for the epoch, or will see to it: one of any run but those of other epochs."""
    # The run that follows may be in no record: whoever finds a driver that lives leaves it as it is.
    mine = _list_runs(look.story.epochs[epoch])
    others = {run for number, each in look.story.epochs.items() if number != epoch for run in _list_runs(each)} - mine
    return any(state in FOLLOWING for run, state in look.states.items() if run not in others)


def _list_runs(epoch: EpochStory) -> set[str]:
    return {epoch.record.run_id, *([epoch.started.x_run_id] if epoch.started else [])}
