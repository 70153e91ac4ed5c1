"""What may go of a flow's files: nothing of an epoch that runs, may be started again, or that another begins from.

::

    epochs/<folder>/private/     secrets: as soon as the epoch has ended, and its successor has begun; an application
                                 that goes on with later epochs, be they any number, keeps the folder of the one that it
                                 was started for
                   /             the rest, checkpoints too, once that is as long ago as the retention
                   /             of no epoch in the log, made for a request that never came, or long forgotten: the
                                 same, by when something in it was last changed
    inbox/ inbox-service/        once no epoch that is left reads inboxes, and that is as long ago as the retention
    standby/<number>/            as an epoch's, once nothing runs in the application that was started for it
    log/.draft-*                 of a file that was not finished
    beside tables: stream/<flow>/<draft>/       of a batch that has another draft, or of an epoch that has ended
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from airflow_dagsched.switch.drafts import judge_draft, parse_name
from airflow_dagsched.switch.places import STANDBY
from airflow_dagsched.switch.story import EpochStory, Story

REQUEST_S = 3600.0
"""Seconds within which an epoch is asked for whose folder was made, or touched by who still waits, at the most."""


@dataclass(frozen=True, slots=True)
class Going:
    """What may go of a flow. Names of folders of epochs."""

    folders: tuple[str, ...] = ()
    private: tuple[str, ...] = ()
    """Of these only what nobody but their user may read."""


def choose_epochs(
    story: Story, folders: Mapping[str, tuple[str, float]], held: frozenset[int], now: float, keep_s: float
) -> Going:
    """What may go of the epochs.

    :param folders: name of each folder that is there -> the application that its last sign of life is of, and when
        something in it was last changed, in seconds since 1970.
    :param held: epochs whose lease somebody holds.
    """
    known = {each.record.x_folder: each for each in story.epochs.values()}
    alive = _list_applications(story, held)
    # The log has forgotten the first epochs of an application that has seen many: their signs have not.
    forgotten = {
        name: at
        for name, (application, at) in folders.items()
        if name not in known and application not in alive and at < now - REQUEST_S
    }
    ended = {name: _find_end(known[name]) for name in folders if name in known and has_left(story, known[name], held)}
    going = {**forgotten, **ended}
    old = {name for name, at in going.items() if at < now - keep_s}
    return Going(tuple(sorted(old)), tuple(sorted({*going} - old)))


def choose_standbys(
    story: Story, folders: Mapping[str, tuple[str, float]], held: frozenset[int], now: float, keep_s: float
) -> Going:
    """What may go of applications that wait, or waited, to be needed.

    :param folders: name of each folder that is there -> its application, if it has said which that is, and when
        something in it was last changed. Seconds since 1970.
    :param held: epochs whose lease somebody holds, and the standby's.
    """
    alive = _list_applications(story, held)
    newest = max(folders, default="") if STANDBY in held else ""
    # One that nobody has heard of yet may be about to be started.
    gone = {
        name: at
        for name, (application, at) in folders.items()
        if application not in alive and name != newest and at < now - REQUEST_S
    }
    old = {name for name, at in gone.items() if at < now - keep_s}
    return Going(tuple(sorted(old)), tuple(sorted({*gone} - old)))


def has_left(story: Story, epoch: EpochStory, held: frozenset[int]) -> bool:
    """Whether no driver runs the epoch or ever will, nothing runs in an application that was started for it, and no
    other epoch has still to begin where it was.
    """
    number = epoch.record.epoch
    if number in held or not epoch.has_ended or _find_application(epoch) in _list_applications(story, held):
        return False
    if epoch.aborted is not None:
        return True
    # One that takes over from a graph that could run no more is the owner before it has begun.
    return story.old is not None and number < story.old.record.epoch and story.old.begun is not None


def can_inboxes_go(story: Story, is_held: bool, changed_at: float, now: float, keep_s: float) -> bool:
    """Whether nobody reads what inboxes have, nor ever will.

    :param is_held: whether a service fills them.
    :param changed_at: when something of the service was last changed, in seconds since 1970.
    """
    # One that is stopped may go on, or another take over from it, which begins with what it has left.
    are_read = any(each.record.channel == "inbox" and not each.has_ended for each in story.epochs.values())
    return not are_read and not is_held and changed_at < now - max(keep_s, REQUEST_S)


def _list_applications(story: Story, held: frozenset[int]) -> set[str]:
    """Those at work: their output, working directory and files for executors are in the folder of their first epoch."""
    found = {_find_application(story.epochs[number]) for number in held if number in story.epochs}
    return found - {""}


def _find_application(epoch: EpochStory) -> str:
    return epoch.started.application if epoch.started else ""


def choose_drafts(story: Story, names: Iterable[str]) -> Iterator[str]:
    """Names of drafts that will never be delivered."""
    for name in names:
        draft = parse_name(name)
        if draft is not None and judge_draft(story, draft) == "remove":
            yield name


def _find_end(epoch: EpochStory) -> float:
    """When it ended, in seconds since 1970."""
    return max(each.at for each in (epoch.aborted, epoch.stopped) if each is not None)
