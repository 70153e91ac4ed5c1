"""Removes from an inbox what no graph needs any more, as its service goes on: nothing in it grows for ever.

Files go first, then an entry says so: who died in between is followed by another that removes nothing twice. Whoever
stood still meanwhile may do so late: what was not needed at a time is not needed ever after.
"""

from __future__ import annotations

import logging
from functools import partial

from airflow_dagsched.spark.files.store import Store, join_path
from airflow_dagsched.spark.streams.inbox.inbox_writer import DEAD_FOLDER, ROWS_FOLDER
from airflow_dagsched.switch.inbox.clearing import (
    CLEARED_AT_ONCE,
    DEAD_BYTES,
    DEAD_S,
    DeadLetters,
    choose_dead,
    list_passed,
    make_cleared,
)
from airflow_dagsched.switch.inbox.entries import Cleared
from airflow_dagsched.switch.inbox.inbox_story import InboxStory
from airflow_dagsched.switch.log.inbox_log import InboxLog
from airflow_dagsched.switch.places import InboxPlaces
from airflow_dagsched.switch.story import Story

log = logging.getLogger(__name__)

NANOS = 1e9


def clear_inbox(store: Store, places: InboxPlaces, entries: InboxLog, story: Story, now: float) -> None:
    """Remove rows, once there are enough of them to go; with them dead letters, which are looked at as seldom.

    :param entries: the inbox's log, read by the caller.
    :param now: seconds since 1970.
    """
    passed = list_passed(story, entries.story)
    if len(passed) < CLEARED_AT_ONCE:
        return
    for path in (path for entry in passed for path in entry.files if path.startswith(f"{ROWS_FOLDER}/")):
        store.delete(join_path(str(places.folder), path))
    _clear_dead(store, join_path(str(places.folder), DEAD_FOLDER), now)
    entries.append(partial(_make_cleared, passed[-1].n))


def _make_cleared(upto: int, inbox: InboxStory, n: int, at: float) -> Cleared | None:
    return make_cleared(inbox, upto, n, at)


def _clear_dead(store: Store, folder: str, now: float) -> None:
    files = [DeadLetters(each.name, each.size, each.modified_ns / NANOS) for each in store.list(folder)]
    going = choose_dead(files, now)
    for name in going:
        store.delete(join_path(folder, name))
    if going:
        days, mib = DEAD_S / 86_400, DEAD_BYTES >> 20
        log.warning("%s: %d files removed, of dead letters %d days or %d MiB stay", folder, len(going), days, mib)
