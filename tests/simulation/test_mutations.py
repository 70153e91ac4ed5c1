"""Each mend taken out turns a history red: what the simulator sees, and that each of them is needed."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from airflow_dagsched.launch.retention import expiry
from airflow_dagsched.spark.files.hadoop_store import HadoopStore
from airflow_dagsched.spark.files.store import Fence, join_path
from airflow_dagsched.spark.outputs import locks, swap, table_commit
from airflow_dagsched.spark.outputs.commits import CommitLog
from airflow_dagsched.spark.outputs.homes import Homes
from airflow_dagsched.spark.outputs.leases import Keeper
from tests.simulation.history import play
from tests.simulation.scenario import EVERYTHING, Bounds

LOCAL = Bounds(stores=("local",))
HADOOP = Bounds(stores=("hadoop",), outputs=("table",))
DATASETS = Bounds(stores=("local",), outputs=("dataset",))
APPENDS = Bounds(stores=("local",), outputs=("table",), modes=("append",), readers=(4,), later=False)
OVERWRITES = Bounds(
    stores=("hadoop",),
    outputs=("table",),
    modes=("overwrite",),
    kinds=("freeze",),
    readers=(0,),
    damages=False,
    later=False,
)
LEASES = Bounds(outputs=("dataset",), kinds=("freeze",), damages=False)
LONGEST = 3000
"""Histories until a mutation must have been seen."""


def nothing(*_: Any, **__: Any) -> None:
    """A mend taken out."""


def without_order(move_all: Callable[..., None]) -> Callable[..., None]:
    """New rows come before the old ones go."""

    def moved(store: Any, journal: Any, token: str) -> None:
        if journal.mode == "append":
            for folder in journal.folders:
                swap._add_files(store, journal, folder)
        move_all(store, journal, token)

    return moved


@contextmanager
def lock_file(self: Any, path: str) -> Iterator[Fence]:
    """A file that exists while the lock is held, and is broken once it is old; its owner never looks at it again."""
    owner, path = uuid.uuid4().hex, f"{path}.file"
    while not self.create_exclusive(path, owner):
        folder, _, name = path.rpartition("/")
        if any(self._clock.now() - each.modified_ns / 1e9 > 30 for each in self.list(folder) if each.name == name):
            self.delete(path)
        self._clock.sleep(0.5)
    try:
        yield Fence()
    finally:
        self.delete(path)


def only_new(store: Any, journal: Any, folder: str) -> Iterator[str]:
    """Nothing is looked for among what was taken out."""
    yield join_path(journal.draft, "new", folder)


def remove_if_it_was_empty(self: HadoopStore, path: str) -> bool:
    """Looks, and then removes all that is there."""
    is_empty = not self.list(path)
    if is_empty:
        self.delete(path)
    return is_empty


MENDS = {
    "the coordinator lives with the table": (LOCAL, Homes, "settle", nothing),
    "a later try that committed is seen once the lease is taken": (DATASETS, Keeper, "_is_stale", lambda *_: False),
    "who has taken a number looks at it again": (LEASES, Keeper, "_is_late", lambda *_: False, 1983),
    "who takes the lock refuses records that are not there": (HADOOP, CommitLog, "refuse", lambda *_: True),
    "each change under the lock looks at the fence": (HADOOP, locks, "_check", nothing),
    "a late move out of the table fails": (OVERWRITES, table_commit, "disarm", nothing, 778),
    "what a late move brought in and another took out comes in again": (
        EVERYTHING,
        swap,
        "_where_new",
        only_new,
        12080,
    ),
    "a folder is removed only if it is empty, in one step": (
        HADOOP,
        HadoopStore,
        "delete_empty",
        remove_if_it_was_empty,
        498,
    ),
    "the lock of a Hadoop store has an owner and is renewed": (HADOOP, HadoopStore, "lock", lock_file),
    "old rows go before new ones come": (APPENDS, table_commit, "move_all", without_order(swap.move_all)),
    "rows are found by the key in their names": (LOCAL, table_commit, "folders_with", lambda *_: ()),
    "unfinished files go": (LOCAL, expiry._Survey, "_list_draft_files", lambda *_, **__: ()),
}
"""For the seldom ones with a seed that shows it."""


@pytest.mark.parametrize("mend", MENDS)
def test_a_mend_taken_out_turns_a_history_red(mend: str, monkeypatch: pytest.MonkeyPatch):
    """Within some seconds: that of a seed which is known to, as long as histories are drawn as they are; else another.
    As it is, that history goes well.
    """
    bounds, where, name, instead, *known = MENDS[mend]
    assert not any(play(seed, bounds).violations for seed in known)
    monkeypatch.setattr(where, name, instead)
    assert any(play(seed, bounds).violations for seed in (*known, *range(LONGEST)))
