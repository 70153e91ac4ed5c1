"""The commit of a table of files, killed at every point: readers get the old content or the new."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from airflow_dagsched.spark.commits import CommitLog, CommitRefused, Committed
from airflow_dagsched.spark.leases import Keeper, LeaseLost
from airflow_dagsched.spark.store import LocalStore, join, walk
from airflow_dagsched.spark.swap import EMPTY, Swap, drafts, torn
from airflow_dagsched.spark.table_commit import TableCommits, draft_path

Content = Mapping[str, frozenset[str]]
"""Folder -> tags of the files in it."""


class Crashed(BaseException):
    """The driver is gone."""


class CrashingStore(LocalStore):
    """The files of a driver that dies before its n-th change, and does nothing after it."""

    def __init__(self, left: int, exchanges: bool) -> None:
        self.left = left
        self.exchanges = exchanges

    def _step(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Crashed

    def create_exclusive(self, path: str, text: str) -> bool:
        self._step()
        return super().create_exclusive(path, text)

    def write_text(self, path: str, text: str) -> None:
        self._step()
        super().write_text(path, text)

    def rename(self, source: str, target: str) -> None:
        self._step()
        super().rename(source, target)

    def exchange(self, one: str, other: str) -> bool:
        if not self.exchanges:
            return False
        self._step()
        return super().exchange(one, other)

    def delete(self, path: str) -> None:
        self._step()
        super().delete(path)


class Writer:
    """One driver that writes tables in ``folder``; commits are filed in the same folder."""

    def __init__(self, folder: str, store: LocalStore, try_number: int = 1) -> None:
        self.store = store
        self.table = f"{folder}/table"
        self.log = CommitLog(LocalStore(), folder)
        self.keeper = Keeper(LocalStore(), folder, run_id="run", try_number=try_number)
        self.commits = TableCommits(CommitLog(store, folder), self.keeper)

    def prepare(self, interval: str, folders: tuple[str, ...], mode: Literal["overwrite", "append"] = "overwrite"):
        """Write a draft as Spark would, and return what its commit takes."""
        lease = self.keeper.acquire("table", interval)
        generation = self.log.last_generation("table", interval) + 1
        earlier = self.log.latest("table", interval)
        draft, tag = draft_path(self.table, interval, lease), f"{interval}-{generation}"
        for folder in folders:
            LocalStore().write_text(join(draft, "new", folder, f"part-{tag}.csv"), tag)
        LocalStore().write_text(join(draft, EMPTY), "")
        swap = Swap(
            record=self.log.record("table", interval, generation),
            tag=tag,
            table=self.table,
            draft=draft,
            mode=mode,
            folders=folders,
            old_tag=earlier.tag if earlier else "",
            old_folders=earlier.partitions if earlier else (),
            empty="" if folders else EMPTY,
        )
        committed = Committed(
            "table", interval, generation, "f", "run", 0, self.table, None, None, 0, "{}", folders, "csv", tag
        )
        return committed, swap, lease

    def write(self, interval: str, folders: tuple[str, ...], mode: Literal["overwrite", "append"] = "overwrite"):
        """Draft, commit, release."""
        committed, swap, lease = self.prepare(interval, folders, mode)
        self.commits.commit(self.store, committed, swap, lease)
        self.keeper.release(lease)


def content(table: str) -> Content:
    """What a reader of the table sees."""
    found: dict[str, frozenset[str]] = {}
    for folder, entry in walk(LocalStore(), table):
        if not entry.name.startswith(EMPTY):
            tag = entry.name.removeprefix("part-").removesuffix(".csv")
            found[folder] = found.get(folder, frozenset()) | {tag}
    return found


def expected(before: Content, swap: Swap) -> Content:
    """The oracle: what the table should hold after the swap."""
    after = dict(before)
    for folder in swap.folders:
        after[folder] = frozenset({swap.tag}) | (
            after.get(folder, frozenset()) if swap.mode == "append" else frozenset()
        )
    for folder in swap.old_folders:
        after[folder] = after.get(folder, frozenset()) - {swap.old_tag}
    return {folder: tags for folder, tags in after.items() if tags}


@contextmanager
def folder() -> Iterator[str]:
    """A new folder for each example."""
    with tempfile.TemporaryDirectory() as path:
        yield path


WRITES = st.tuples(
    st.sampled_from(["mon", "tue"]),
    st.lists(st.sampled_from(["a=1/b=1", "a=1/b=2", "a=2/b=1"]), unique=True).map(tuple),
)


@pytest.mark.parametrize("mode", ["overwrite", "append"])
@settings(max_examples=60, deadline=None)
@given(st.lists(WRITES, max_size=3), WRITES, st.integers(0, 25), st.booleans())
def test_old_content_or_new_wherever_the_writer_dies(mode, earlier, last, left, exchanges):
    """write, write, writ|  ->  next reader  ->  the oracle's table: without the last write if no record was made."""
    with folder() as path:
        writer = Writer(path, LocalStore())
        for interval, folders in earlier:
            writer.write(interval, folders, mode)
        before = content(writer.table)
        dying = Writer(path, CrashingStore(left, exchanges), try_number=2)
        committed, swap, lease = dying.prepare(*last, mode)
        crashed = False
        try:
            dying.commits.commit(dying.store, committed, swap, lease)
        except Crashed:
            crashed = True
        made = writer.log.latest("table", last[0]) == committed
        assert made or crashed
        Writer(path, LocalStore()).commits.finish_torn(LocalStore(), writer.table)
        assert content(writer.table) == (expected(before, swap) if made else before)
        assert not torn(LocalStore(), writer.table)
        for one in (writer, dying):
            one.keeper.close()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 12), st.integers(0, 12), st.booleans())
@example(3, 2, False)
def test_a_finisher_that_dies_too_is_finished(left, again, exchanges):
    """The whole table is one folder here: old out, new in."""
    with folder() as path:
        writer = Writer(path, LocalStore())
        writer.write("mon", ("",))
        dying = Writer(path, CrashingStore(left, exchanges), try_number=2)
        committed, swap, lease = dying.prepare("mon", ("",))
        with suppress(Crashed):
            dying.commits.commit(dying.store, committed, swap, lease)
        with suppress(Crashed):
            writer.commits.finish_torn(CrashingStore(again, exchanges), writer.table)
        writer.commits.finish_torn(LocalStore(), writer.table)
        made = writer.log.last_generation("table", "mon") == 2
        assert content(writer.table) == {"": {"mon-2" if made else "mon-1"}}
        for one in (writer, dying):
            one.keeper.close()


def test_a_table_without_partitions_keeps_its_schema(tmp_path: Path):
    """A file without rows stands in while there is none, and goes when rows come."""
    writer = Writer(str(tmp_path), LocalStore())
    writer.write("mon", ("a=1",))
    writer.write("mon", ())
    assert [entry.name for entry in LocalStore().list(writer.table)] == [EMPTY]
    writer.write("tue", ("a=2",))
    assert [entry.name for entry in LocalStore().list(writer.table)] == ["a=2"]
    writer.keeper.close()


def test_a_fenced_writer_is_refused(tmp_path: Path):
    """The later try took the lease while the earlier wrote: nothing of the earlier stays."""
    old, new = (Writer(str(tmp_path), LocalStore(), try_number) for try_number in (1, 2))
    late = old.prepare("mon", ("a=1",))
    new.write("mon", ("a=2",))
    with pytest.raises(LeaseLost):
        old.commits.commit(old.store, *late)
    assert content(new.table) == {"a=2": {"mon-1"}}
    assert [entry.name for entry in LocalStore().list(drafts(new.table))] == ["lock"]
    for one in (old, new):
        one.keeper.close()


def test_a_generation_that_is_taken_is_refused(tmp_path: Path):
    """Even by a writer that never had the lease: the record decides."""
    writer = Writer(str(tmp_path), LocalStore())
    committed, swap, lease = writer.prepare("mon", ("a=1",))
    LocalStore().write_text(swap.record, "{}")
    with pytest.raises(CommitRefused):
        writer.commits.commit(writer.store, committed, swap, lease)
    assert content(writer.table) == {}
    assert [entry.name for entry in LocalStore().list(drafts(writer.table))] == ["lock"]
    writer.keeper.close()


def test_a_partition_another_interval_took_over_stays(tmp_path: Path):
    """Monday wrote a=1, then Tuesday did: when Monday no longer writes it, it is Tuesday's."""
    writer = Writer(str(tmp_path), LocalStore())
    writer.write("mon", ("a=1", "a=2"))
    writer.write("tue", ("a=1",))
    writer.write("mon", ("a=3",))
    assert content(writer.table) == {"a=1": {"tue-1"}, "a=3": {"mon-2"}}
    writer.keeper.close()


def test_intervals_side_by_side(tmp_path: Path):
    """Eight threads, each its own interval and partition, into a table that none of them made before."""
    writer = Writer(str(tmp_path), LocalStore())
    days = [f"d{number}" for number in range(8)]
    threads = [threading.Thread(target=writer.write, args=(day, (f"day={day}",))) for day in days]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert content(writer.table) == {f"day={day}": {f"{day}-1"} for day in days}
    writer.keeper.close()


def test_a_reader_never_sees_a_mix(tmp_path: Path):
    """Fifty swaps of a folder of three files while another thread lists it: always three of one write."""
    writer = Writer(str(tmp_path), LocalStore())
    seen: list[set[str]] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.append({path.name.split("-")[-1] for path in Path(writer.table).iterdir()})

    def write() -> None:
        committed, swap, lease = writer.prepare("mon", ("",))
        for number in (1, 2):
            LocalStore().write_text(join(swap.draft, "new", f"{number}-part-{swap.tag}.csv"), "")
        writer.commits.commit(writer.store, committed, swap, lease)
        writer.keeper.release(lease)

    write()
    thread = threading.Thread(target=read)
    thread.start()
    for _ in range(50):
        write()
    done.set()
    thread.join(60)
    assert len(seen) > 50
    assert all(len(tags) == 1 for tags in seen)
    writer.keeper.close()
    writer.commits.close()
    assert [entry.name for entry in LocalStore().list(drafts(writer.table))] == ["lock"]


KILLED = f"""
import os, signal, sys
sys.path[:0] = sys.argv[2].split(os.pathsep)
from tests.spark.test_table_commit import Writer
from airflow_dagsched.spark.store import LocalStore

class Killed(LocalStore):
    exchange = lambda *_: os.kill(os.getpid(), {int(signal.SIGKILL)})

Writer(sys.argv[1], Killed(), try_number=2).write("mon", ("a=1",))
"""


def test_a_driver_killed_between_commit_and_swap(tmp_path: Path):
    """kill -9: its lock is free at once, the next try finishes its swap before it writes its own."""
    writer = Writer(str(tmp_path), LocalStore())
    writer.write("mon", ("a=1",))
    command = [sys.executable, "-c", KILLED, str(tmp_path), os.pathsep.join(sys.path)]
    assert subprocess.run(command, check=False, timeout=60).returncode == -signal.SIGKILL
    assert content(writer.table) == {"a=1": {"mon-1"}}
    assert writer.log.last_generation("table", "mon") == 2
    third = Writer(str(tmp_path), LocalStore(), try_number=3)
    third.write("tue", ("a=2",))
    assert content(writer.table) == {"a=1": {"mon-2"}, "a=2": {"tue-1"}}
    for one in (writer, third):
        one.keeper.close()
