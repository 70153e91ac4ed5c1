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
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from airflow_dagsched.launch.protocol.identity import TryId
from airflow_dagsched.launch.protocol.keys import digest_parts
from airflow_dagsched.spark.files.store import LocalStore, join_path, walk_files
from airflow_dagsched.spark.outputs.commits import CommitLog, Committed
from airflow_dagsched.spark.outputs.homes import name_hidden_folder
from airflow_dagsched.spark.outputs.leases import Keeper, LeaseLost
from airflow_dagsched.spark.outputs.swap import COORDINATION, EMPTY, Swap, list_draft_files, list_torn
from airflow_dagsched.spark.outputs.table_commit import TableCommits, make_draft_path

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
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
    """One driver that writes tables in ``folder``, with a work dir of its own: they meet at the table."""

    def __init__(self, folder: str, store: LocalStore, try_number: int = 1, work_dir: str = "work") -> None:
        self.store = store
        self.table = f"{folder}/table"
        self.log = _log(LocalStore(), folder, work_dir)
        self.writer = f"{work_dir}/step"
        self.keeper = Keeper(self.log, run_id="run", try_id=TryId("", 0, try_number), task=work_dir)
        self.commits = TableCommits(_log(store, folder, work_dir), self.keeper)

    def prepare(self, interval: str, folders: tuple[str, ...], mode: Literal["overwrite", "append"] = "overwrite"):
        """Write a draft as Spark would, and return what its commit takes."""
        lease = self.keeper.acquire_lease("table", interval)
        generation = lease.generation
        draft, tag = make_draft_path(self.table, interval, lease), f"{interval}-{generation}"
        key = f"d{digest_parts(interval, self.writer)}" if mode == "append" else ""
        for folder in folders:
            LocalStore().write_text(join_path(draft, "new", folder, f"part-{tag}.{key}.csv"), tag)
        LocalStore().write_text(join_path(draft, EMPTY), "")
        files = list_draft_files(LocalStore(), draft)
        empty = "" if folders else EMPTY
        swap = Swap("", tag, self.table, draft, mode, folders, empty=empty, key=key)
        committed = Committed(
            output="table",
            interval=interval,
            generation=generation,
            fingerprint="f",
            run_id="run",
            path=self.table,
            table=None,
            rows=None,
            bytes=0,
            schema="{}",
            partitions=folders,
            format="csv",
            tag=tag,
            mode=mode,
            writer=self.writer,
            files=files,
        )
        return committed, swap, lease

    def write(self, interval: str, folders: tuple[str, ...], mode: Literal["overwrite", "append"] = "overwrite"):
        """Draft, commit, release."""
        committed, swap, lease = self.prepare(interval, folders, mode)
        self.commits.commit_table(self.store, committed, swap, lease)
        self.keeper.release_lease(lease)


def _log(store: LocalStore, folder: str, work_dir: str) -> CommitLog:
    log = CommitLog(LocalStore(), f"{folder}/{work_dir}")
    log.homes.settle("table", store, f"{folder}/table")
    return log


def content(table: str) -> Content:
    """What a reader of the table sees."""
    found: dict[str, frozenset[str]] = {}
    for folder, entry in walk_files(LocalStore(), table):
        if not entry.name.startswith(EMPTY):
            tag = entry.name.removeprefix("part-").partition(".")[0]
            found[folder] = found.get(folder, frozenset()) | {tag}
    return found


def expected(before: Content, swap: Swap, earlier: Committed | None) -> Content:
    """The oracle: what the table should hold after the swap."""
    after = dict(before)
    for folder in swap.folders:
        after[folder] = frozenset({swap.tag}) | (
            after.get(folder, frozenset()) if swap.mode == "append" else frozenset()
        )
    for folder in earlier.partitions if earlier else ():
        after[folder] = after.get(folder, frozenset()) - {earlier.tag if earlier else ""}
    return {folder: tags for folder, tags in after.items() if tags}


def left(table: str) -> list[str]:
    """Drafts beside the table."""
    return [entry.name for entry in LocalStore().list(name_hidden_folder(table)) if entry.name not in COORDINATION]


@contextmanager
def folder() -> Iterator[str]:
    """A new folder for each example."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as path:
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
        before, replaced = content(writer.table), writer.log.find_latest("table", last[0])
        dying = Writer(path, CrashingStore(left, exchanges), try_number=2)
        committed, swap, lease = dying.prepare(*last, mode)
        crashed = False
        try:
            dying.commits.commit_table(dying.store, committed, swap, lease)
        except Crashed:
            crashed = True
        made = writer.log.find_latest("table", last[0]) == committed
        assert made or crashed
        Writer(path, LocalStore()).commits.finish_torn(LocalStore(), writer.table)
        assert content(writer.table) == (expected(before, swap, replaced) if made else before)
        assert not list_torn(LocalStore(), writer.table)
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
            dying.commits.commit_table(dying.store, committed, swap, lease)
        with suppress(Crashed):
            writer.commits.finish_torn(CrashingStore(again, exchanges), writer.table)
        writer.commits.finish_torn(LocalStore(), writer.table)
        latest = writer.log.find_latest("table", "mon")
        made = latest is not None and latest.generation == 2
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
        old.commits.commit_table(old.store, *late)
    assert content(new.table) == {"a=2": {"mon-2"}}
    assert left(new.table) == []
    for one in (old, new):
        one.keeper.close()


def test_a_number_that_is_taken_is_not_the_end(tmp_path: Path):
    """The same draft is committed under the next."""
    writer = Writer(str(tmp_path), LocalStore())
    committed, swap, lease = writer.prepare("mon", ("a=1",))
    LocalStore().create_exclusive(writer.log.get_record_path("table", "mon", lease.generation), "")
    made = writer.commits.commit_table(writer.store, committed, swap, lease)
    assert (made.generation, writer.log.find_latest("table", "mon")) == (2, made)
    assert content(writer.table) == {"a=1": {swap.tag}}
    assert left(writer.table) == []
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
            seen.append({path.name.partition("part-")[2] for path in Path(writer.table).glob("[!.]*")})

    def write() -> None:
        committed, swap, lease = writer.prepare("mon", ("",))
        for number in (1, 2):
            LocalStore().write_text(join_path(swap.draft, "new", f"{number}-part-{swap.tag}..csv"), "")
        committed = replace(committed, files=list_draft_files(LocalStore(), swap.draft))
        writer.commits.commit_table(writer.store, committed, swap, lease)
        writer.keeper.release_lease(lease)

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
    assert left(writer.table) == []


KILLED = f"""
import os, signal, sys
sys.path[:0] = sys.argv[2].split(os.pathsep)
from tests.spark.test_table_commit import Writer
from airflow_dagsched.spark.files.store import LocalStore

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
    assert writer.log.get_last_generation("table", "mon") == 2
    third = Writer(str(tmp_path), LocalStore(), try_number=3)
    third.write("tue", ("a=2",))
    assert content(writer.table) == {"a=1": {"mon-2"}, "a=2": {"tue-1"}}
    for one in (writer, third):
        one.keeper.close()
