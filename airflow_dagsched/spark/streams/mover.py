"""The mover: what the flow's log says counts comes into its table, whoever wrote it and whoever died meanwhile.

::

    draft -> record -> lock -- files into the table, made durable -- new -> done -- draft removed -- unlock
             ^ the point at which the batch counts

Until there is a record of its batch a draft is left alone: its writer may live. Then the draft whose tag the record has
is delivered, and all others of the batch go. Each move is skipped if it was done, so any number of drivers may do this
at any time, with a story of any age: records don't change, so what an old one says is true.

Needs no Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from airflow_dagsched.spark.files.clock import MACHINE, Clock
from airflow_dagsched.spark.files.store import Store, join_path
from airflow_dagsched.spark.outputs.locks import FencedStore, LockLost, hold_lock
from airflow_dagsched.spark.outputs.swap import Swap, list_draft_files, list_folders, move_all
from airflow_dagsched.spark.outputs.table_checks import find_missing_files, make_table_durable
from airflow_dagsched.spark.streams.drafts import DONE, NEW, DraftPlace, list_drafts
from airflow_dagsched.switch.drafts import DraftName, find_record, judge_draft
from airflow_dagsched.switch.records import Batch
from airflow_dagsched.switch.story import Story

T = TypeVar("T")
Deliver = Callable[[FencedStore, str, Batch, str], None]
"""Brings what a record says of the draft in a folder where it belongs, see ``Target.deliver``."""


def finish_moves(store: Store, place: DraftPlace, story: Story, deliver: Deliver, clock: Clock = MACHINE) -> None:
    """Deliver all recorded drafts of a target, and remove those that will never be."""

    def finish(fenced: FencedStore, draft: DraftName) -> None:
        _finish_draft(fenced, place.name_folder(draft), find_recorded(story, draft), deliver)

    finish_due(store, place.lock, lambda store: list_due(store, place, story), finish, clock)


def finish_due(
    store: Store,
    lock: str,
    list_due: Callable[[Store], Sequence[T]],
    finish: Callable[[FencedStore, T], None],
    clock: Clock = MACHINE,
) -> None:
    """Finish what is due under a lock, until nothing is.

    :param lock: path that all who might do so lock.
    """
    while list_due(store):
        try:
            with hold_lock(store, lock, clock) as fence:
                fenced = FencedStore(store, fence)
                for each in list_due(fenced):
                    finish(fenced, each)
        except LockLost:
            continue


def make_swap(table: str, draft: str, files: tuple[str, ...]) -> Swap:
    """The moves of a draft's files into the table, as batch tables know them."""
    folders = list_folders(tuple((path, 0) for path in files))
    return Swap(record="", tag="", table=table, draft=draft, mode="append", folders=folders)


def move_files(store: FencedStore, table: str, draft: str, files: tuple[str, ...]) -> None:
    """Move the files of a recorded draft into the folder of the table."""
    swap = make_swap(table, draft, files)
    move_all(store, swap, store.fence.token)
    left = find_missing_files(store, table, list_draft_files(store, draft))
    if left:
        raise OSError(f"{draft}: {left[0]}, and {len(left) - 1} other files, could not be moved to {table}")
    make_table_durable(store, swap)


def list_due(store: Store, place: DraftPlace, story: Story) -> list[DraftName]:
    """Drafts there that are to be delivered, or removed."""
    return [each for each in list_drafts(store, place) if judge_draft(story, each) != "leave"]


def find_recorded(story: Story, draft: DraftName) -> tuple[Batch, str] | None:
    """The record of the draft, and the name of its epoch's folder; None: nothing of it is to be delivered."""
    record = find_record(story, draft)
    return None if record is None else (record, story.epochs[draft.epoch].record.x_folder)


def _finish_draft(store: FencedStore, draft: str, found: tuple[Batch, str] | None, deliver: Deliver) -> None:
    """What is torn between any two lines is done again, or was done."""
    new = join_path(draft, NEW)
    if found is not None and store.exists(new):
        deliver(store, draft, *found)
        # Whoever lost the lock may have one change left, or meets what the next holder did.
        with suppress(FileNotFoundError):
            # In one step: a half-removed draft must not be taken for one that is still to be delivered.
            store.rename(new, join_path(draft, DONE))
            store.sync((draft,))
    store.delete(draft)
