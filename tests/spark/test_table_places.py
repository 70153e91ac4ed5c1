"""Tables that are somewhere, written from several sides, damaged from outside: nothing is lost, nothing is there twice.

::

    dataflow a, work dir a --+
                             +--> /data/table, coordinated in /data/.dagsched-table
    dataflow b, work dir b --+
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_dagsched.spark.files.clock import MachineClock
from airflow_dagsched.spark.files.store import Entry, LocalStore, join_path
from airflow_dagsched.spark.outputs.commits import REFUSED, OutputGone
from airflow_dagsched.spark.outputs.homes import name_hidden_folder
from airflow_dagsched.spark.outputs.leases import LeaseLost
from airflow_dagsched.spark.outputs.locks import lease_lock
from airflow_dagsched.spark.outputs.swap import list_torn, lock_path
from airflow_dagsched.spark.outputs.table_checks import DraftChanged, NoWayIn
from tests.spark.test_table_commit import Crashed, Writer, content, left

NO_RECORDS = ["", "null", "[]", "3", '"x"', '{"output": "da', '{"output": 3}', "\0\0\0"]
"""What a disk that was full, or lost power, may leave of a file."""


@pytest.fixture
def elsewhere() -> Iterator[str]:
    """A folder on another file system."""
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == Path(tempfile.gettempdir()).stat().st_dev:
        pytest.skip("there is no second file system at /dev/shm")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield folder


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_two_work_dirs_one_table(tmp_path: Path, mode: str):
    """B commits while A, of another interval, has written but not committed: A's draft and rows stay."""
    a, b = Writer(str(tmp_path), LocalStore(), work_dir="a"), Writer(str(tmp_path), LocalStore(), work_dir="b")
    prepared = a.prepare("mon", ("p=1",), mode)
    b.write("tue", ("p=2",), mode)
    a.commits.commit_table(a.store, *prepared)
    a.keeper.release_lease(prepared[2])
    b.write("tue", ("p=2",), mode)
    assert content(a.table) == {"p=1": {"mon-1"}, "p=2": {"tue-2"}}
    for each in (a, b):
        each.keeper.close()


def test_two_work_dirs_one_interval(tmp_path: Path):
    """Of the same interval B waits until A is done: both rows are there, each once however often it is repeated."""
    a, b = Writer(str(tmp_path), LocalStore(), work_dir="a"), Writer(str(tmp_path), LocalStore(), work_dir="b")
    prepared = a.prepare("mon", ("",), "append")
    thread = threading.Thread(target=b.write, args=("mon", ("",), "append"))
    thread.start()
    a.commits.commit_table(a.store, *prepared)
    a.keeper.release_lease(prepared[2])
    thread.join(60)
    assert content(a.table) == {"": {"mon-1", "mon-2"}}
    a.write("mon", ("",), "append")
    assert content(a.table) == {"": {"mon-2", "mon-3"}}
    for each in (a, b):
        each.keeper.close()


def test_each_work_dir_knows_where_its_tables_are(tmp_path: Path):
    """So that they are found by who cleans up."""
    writer = Writer(str(tmp_path), LocalStore())
    (pointer,) = (tmp_path / "work" / "tables").iterdir()
    assert str(name_hidden_folder(writer.table)) in pointer.read_text()


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_partition_on_another_disk_is_refused_before_the_record(tmp_path: Path, elsewhere: str, mode: str):
    """Nothing of it is changed, and nobody is blocked."""
    writer = Writer(str(tmp_path), LocalStore())
    Path(writer.table).mkdir()
    Path(writer.table, "p=1").symlink_to(elsewhere)
    with pytest.raises(NoWayIn, match=r"cannot be moved.*not changed.*below the mount"):
        writer.write("mon", ("p=1",), mode)
    assert writer.log.find_latest("table", "mon") is None
    assert (left(writer.table), list(Path(elsewhere).iterdir())) == ([], [])
    writer.write("tue", ("p=2",), mode)
    assert content(writer.table)["p=2"] == {"tue-1"}
    writer.keeper.close()


MOUNTED = """
import os, subprocess, sys
sys.path[:0] = sys.argv[2].split(os.pathsep)
from tests.spark.test_table_commit import Writer, content, left
from airflow_dagsched.spark.files.store import LocalStore
from airflow_dagsched.spark.outputs.locks import lease_lock
from airflow_dagsched.spark.outputs.swap import list_torn, lock_path
from airflow_dagsched.spark.outputs.table_checks import NoWayIn
folder, what, before, written = sys.argv[1], *sys.argv[3:]
writer = Writer(folder, LocalStore())
at = writer.table + what
if before:
    writer.write("mon", (before,))
    writer.commits.close()
os.makedirs(at, exist_ok=True)
subprocess.run(["mount", "--bind", at, at], check=True)
made, there = writer.log.find_latest("table", "mon"), content(writer.table)
try:
    writer.write("mon", (written,))
except NoWayIn:
    assert writer.log.find_latest("table", "mon") == made
    assert (left(writer.table), content(writer.table)) == ([], there)
    print("refused")
writer.keeper.close()
"""


@pytest.mark.parametrize(
    ("what", "before", "written"), [("", "", ""), ("/p=1", "", "p=1"), ("/p=1", "p=1", "p=2")], ids=str
)
def test_a_mount_point_is_refused_before_the_record(tmp_path: Path, what: str, before: str, written: str):
    """The table, or a partition that rows go to or from, is a mount: a rename there fails, of the same disk too."""
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-m", "true"], check=False, capture_output=True).returncode:
        pytest.skip("this system lets us mount nothing: no name space of its own")
    command = [unshare, "-m", sys.executable, "-c", MOUNTED, str(tmp_path), os.pathsep.join(sys.path), what]
    command += [before, written]
    ran = subprocess.run(command, check=False, timeout=120, capture_output=True, text=True)
    assert ran.stdout.strip() == "refused", ran.stderr


@pytest.mark.parametrize("damage", ["a file is gone", "a file is cut", "a file came", "all is gone"])
def test_a_draft_that_is_not_what_was_written_is_not_committed(tmp_path: Path, damage: str):
    """The table keeps its rows, the record of the write before stands, and the next write is fine."""
    writer = Writer(str(tmp_path), LocalStore())
    writer.write("mon", ("p=1", "p=2"))
    prepared = writer.prepare("mon", ("p=1", "p=2"))
    new = Path(prepared[1].draft, "new", "p=1")
    (file,) = new.iterdir()
    if damage == "a file is gone":
        file.unlink()
    elif damage == "a file is cut":
        file.write_text("")
    elif damage == "a file came":
        (new / "part-other.csv").write_text("x")
    else:
        shutil.rmtree(prepared[1].draft)
    with pytest.raises(DraftChanged, match="The table was not changed"):
        writer.commits.commit_table(writer.store, *prepared)
    writer.keeper.release_lease(prepared[2])
    assert content(writer.table) == {"p=1": {"mon-1"}, "p=2": {"mon-1"}}
    assert left(writer.table) == []
    writer.write("mon", ("p=2",))
    assert content(writer.table) == {"p=2": {"mon-3"}}
    writer.keeper.close()


class Overtaken(LocalStore):
    """Stands still once before it looks into a draft."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        self.meanwhile: Callable[[], None] | None = meanwhile

    def list(self, path: str) -> tuple[Entry, ...]:
        if self.meanwhile is not None and path.endswith("/new"):
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
        return super().list(path)


def test_a_draft_that_went_with_its_lease_is_no_damage(tmp_path: Path):
    """A later try took both: this one is told that, and is not blamed for files that are missing."""
    old, new = (Writer(str(tmp_path), LocalStore(), number) for number in (1, 2))
    committed, swap, lease = old.prepare("mon", ("p=1",))

    def take_over() -> None:
        new.keeper.acquire_lease("table", "mon")
        shutil.rmtree(swap.draft)

    with pytest.raises(LeaseLost, match="try 2, has taken the lease"):
        old.commits.commit_table(Overtaken(take_over), committed, swap, lease)
    for each in (old, new):
        each.keeper.close()


class Removing(LocalStore):
    """Somebody removes a partition just before a file is moved into it for the first time."""

    def rename(self, source: str, target: str) -> None:
        if "/.dagsched-probe-" in target and "/p=" in target:
            shutil.rmtree(Path(target).parent)
        super().rename(source, target)


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_partition_that_goes_as_the_way_in_is_tried_is_made_again(tmp_path: Path, mode: str):
    """By the program that owned its rows: there is nothing to move into, and nothing wrong."""
    writer = Writer(str(tmp_path), LocalStore())
    writer.write("mon", ("p=1",), mode)
    writer.commits.commit_table(Removing(), *writer.prepare("mon", ("p=1", "p=2"), mode))
    assert content(writer.table) == {"p=1": {"mon-2"}, "p=2": {"mon-2"}}
    writer.keeper.close()


class Emptied(LocalStore):
    """Without locks, as on HDFS; the partition is emptied just before its writer looks at what it has moved in."""

    def __init__(self, table: str, by_next_holder: bool) -> None:
        self.table = table
        self.next_lock = f"{name_hidden_folder(table)}/lock/table/0000000002.json" if by_next_holder else ""

    def lock(self, path: str) -> None:
        return None

    def list(self, path: str) -> tuple[Entry, ...]:
        if path == f"{self.table}/p=1" and super().list(path) and not list_torn(LocalStore(), self.table):
            shutil.rmtree(path)
            if self.next_lock:
                self.create_exclusive(self.next_lock, "")
        return super().list(path)


def test_rows_that_went_on_the_way_in_are_not_said_to_be_written(tmp_path: Path):
    """Their step fails; those that the next holder of the lock replaced were there."""
    writer = Writer(str(tmp_path), LocalStore())
    prepared = writer.prepare("mon", ("p=1",))
    with pytest.raises(OutputGone, match="went on the way in"):
        writer.commits.commit_table(Emptied(writer.table, by_next_holder=False), *prepared)
    writer.keeper.release_lease(prepared[2])
    shutil.rmtree(f"{name_hidden_folder(writer.table)}/lock")
    made = writer.commits.commit_table(Emptied(writer.table, by_next_holder=True), *writer.prepare("mon", ("p=1",)))
    assert writer.log.find_latest("table", "mon") == made
    writer.keeper.close()


class TimesOut(LocalStore):
    """A record is made, or not, and nobody hears of it."""

    def __init__(self, is_made: bool) -> None:
        self.is_made = is_made

    def create_exclusive(self, path: str, text: str) -> bool:
        if "/commits/" in path and text != REFUSED:
            if self.is_made:
                super().create_exclusive(path, text)
            raise TimeoutError(path)
        return super().create_exclusive(path, text)


def test_a_record_in_doubt_is_asked_for(tmp_path: Path):
    """If it is there, so are its rows; else it never will be, and nothing changes."""
    deaf = Writer(str(tmp_path), TimesOut(is_made=False))
    with pytest.raises(TimeoutError):
        deaf.write("mon", ("p=1",))
    assert (content(deaf.table), left(deaf.table)) == ({}, [])
    writer = Writer(str(tmp_path), TimesOut(is_made=True), try_number=2)
    writer.write("mon", ("p=1",))
    assert content(writer.table) == {"p=1": {"mon-2"}}
    for each in (deaf, writer):
        each.keeper.close()


class Meanwhile(LocalStore):
    """Something happens just before the record of a number is made."""

    def __init__(self, number: int, happens: Callable[[], object]) -> None:
        self.record = f"{number:010d}.json"
        self.happens = happens

    def create_exclusive(self, path: str, text: str) -> bool:
        if "/commits/" in path and path.endswith(self.record) and text != REFUSED:
            self.happens()
        return super().create_exclusive(path, text)


def test_a_draft_under_the_next_number_is_met_by_no_late_removal(tmp_path: Path):
    """Who committed under the first number removes what was written under it, and may stand still as it does."""
    drafts: list[str] = []
    writer = Writer(str(tmp_path), Meanwhile(2, lambda: shutil.rmtree(drafts[0], ignore_errors=True)))
    prepared = writer.prepare("mon", ("p=1",))
    drafts.append(prepared[1].draft)
    LocalStore().create_exclusive(writer.log.get_record_path("table", "mon", 1), "")
    writer.commits.commit_table(writer.store, *prepared)
    assert content(writer.table) == {"p=1": {"mon-1"}}
    writer.keeper.close()


def test_drafts_of_those_who_lost_the_lease_go(tmp_path: Path):
    """Of one who died, with the next commit; but not what a later try is just writing."""
    dead, new = Writer(str(tmp_path), LocalStore()), Writer(str(tmp_path), LocalStore(), try_number=3)
    later: list[Any] = []
    old = Writer(str(tmp_path), Meanwhile(2, lambda: later.append(new.prepare("mon", ("p=3",)))), try_number=2)
    gone = dead.prepare("mon", ("p=1",))[1].draft
    old.write("mon", ("p=2",))
    assert not Path(gone).exists()
    new.commits.commit_table(new.store, *later[0])
    assert content(new.table) == {"p=3": {"mon-3"}}
    for each in (dead, old, new):
        each.keeper.close()


def test_who_lost_both_number_and_lease_leaves_no_draft(tmp_path: Path):
    """There is no next number for it."""
    new = Writer(str(tmp_path), LocalStore(), try_number=2)

    def take_both() -> None:
        LocalStore().create_exclusive(new.log.get_record_path("table", "mon", 1), REFUSED)
        new.keeper.acquire_lease("table", "mon")

    old = Writer(str(tmp_path), Meanwhile(1, take_both))
    with pytest.raises(LeaseLost):
        old.write("mon", ("p=1",))
    assert (content(old.table), left(old.table)) == ({}, [])
    for each in (old, new):
        each.keeper.close()


class Later(MachineClock):
    """By which all that is held now has expired."""

    def now(self) -> float:
        return super().now() + 100


class LosesLock(LocalStore):
    """Without locks, as on HDFS; its driver stands still once as it looks into a draft, and another has the lock."""

    def __init__(self, table: str) -> None:
        self.table = table
        self.stands = True

    def lock(self, path: str) -> None:
        return None

    def list(self, path: str) -> tuple[Entry, ...]:
        if self.stands and "/new" in path:
            self.stands = False
            with lease_lock(LocalStore(), lock_path(self.table), Later()):
                pass
        return super().list(path)


def test_who_lost_the_lock_before_the_record_commits_under_the_next_number(tmp_path: Path):
    """What it wrote aside is still good: an hour's work is not done again."""
    writer = Writer(str(tmp_path), LocalStore())
    made = writer.commits.commit_table(LosesLock(writer.table), *writer.prepare("mon", ("p=1",)))
    assert (made.generation, writer.log.find_latest("table", "mon")) == (2, made)
    assert content(writer.table) == {"p=1": {"mon-1"}}
    writer.keeper.close()


def test_who_lost_the_lock_while_it_finished_a_swap_finishes_it_after_all(tmp_path: Path):
    """A reader, that is: it has nothing to be refused."""
    writer, reader = (Writer(str(tmp_path), LocalStore(), number) for number in (1, 2))
    writer.write("mon", ("p=1", "p=2"), "append")
    prepared = writer.prepare("mon", ("p=2",), "append")
    with pytest.raises(Crashed):
        writer.commits.commit_table(DiesTakingOut(), *prepared)
    Path(lock_path(writer.table)).unlink()  # a file here, of this machine's lock; else a folder
    reader.commits.finish_torn(LosesLock(writer.table), writer.table)
    assert content(writer.table) == {"p=2": {"mon-2"}}
    for each in (writer, reader):
        each.keeper.close()


@pytest.mark.parametrize("text", NO_RECORDS)
def test_a_newest_record_that_is_none_costs_a_repeat(tmp_path: Path, text: str):
    """Its rows are in the table: a repeat replaces them by the key in their names, whatever partition they are in."""
    writer = Writer(str(tmp_path), LocalStore())
    writer.write("mon", ("p=1",), "append")
    writer.write("mon", ("p=2",), "append")
    Path(writer.log.get_record_path("table", "mon", 2)).write_text(text)
    writer.write("mon", ("p=3",), "append")
    assert content(writer.table) == {"p=3": {"mon-3"}}
    writer.keeper.close()


@pytest.mark.parametrize("folder", ["commits", ""])
def test_without_records_nothing_is_appended_twice(tmp_path: Path, folder: str):
    """Somebody removed them, or all beside the table: what is in it by its name counts. Others' rows stay."""
    a, b = Writer(str(tmp_path), LocalStore(), work_dir="a"), Writer(str(tmp_path), LocalStore(), work_dir="b")
    a.write("mon", ("p=1",), "append")
    b.write("mon", ("p=1",), "append")
    shutil.rmtree(join_path(name_hidden_folder(a.table), folder))
    a = Writer(str(tmp_path), LocalStore(), work_dir="a", try_number=2)
    committed, swap, lease = a.prepare("mon", ("p=3",), "append")
    a.commits.commit_table(a.store, replace(committed, tag="again"), replace(swap, tag="again"), lease)
    names = {path.name for path in Path(a.table).glob("p=*/*")}
    assert len(names) == 2
    assert content(a.table).keys() == {"p=1", "p=3"}
    assert content(a.table)["p=1"] == {"mon-2"}
    for each in (a, b):
        each.keeper.close()


class Watching(LocalStore):
    """Looks at the table after each change."""

    def __init__(self, table: str) -> None:
        self.table = table
        self.seen: list[frozenset[str]] = []

    def rename(self, source: str, target: str) -> None:
        super().rename(source, target)
        self.seen.append(frozenset().union(*content(self.table).values()))

    def delete(self, path: str) -> None:
        super().delete(path)
        self.seen.append(frozenset().union(*content(self.table).values()))


@pytest.mark.parametrize("folders", [("",), ("p=1",), ("p=1", "p=2")])
def test_a_repeated_append_never_shows_rows_twice(tmp_path: Path, folders: tuple[str, ...]):
    """At no moment are files of both writes there."""
    writer = Writer(str(tmp_path), LocalStore())
    writer.write("mon", folders, "append")
    writer.store = watching = Watching(writer.table)
    writer.write("mon", folders, "append")
    assert watching.seen
    assert all(not {"mon-1", "mon-2"} <= tags for tags in watching.seen)
    assert content(writer.table) == {folder: {"mon-2"} for folder in folders}
    writer.keeper.close()


def test_what_a_commit_replaces_is_found_when_it_is_made(tmp_path: Path):
    """Not when its draft was begun: another run's write came between, and its rows go, too."""
    writer = Writer(str(tmp_path), LocalStore())
    prepared = writer.prepare("mon", ("p=1",), "append")
    between = Writer(str(tmp_path), LocalStore(), try_number=0)
    tag, key = "between", prepared[1].key
    LocalStore().write_text(f"{writer.table}/p=2/part-{tag}.{key}.csv", "")
    writer.commits.commit_table(writer.store, *prepared)
    assert content(writer.table) == {"p=1": {"mon-1"}}
    with pytest.raises(LeaseLost):
        between.prepare("mon", ("p=1",))
    for each in (writer, between):
        each.keeper.close()


class DiesTakingOut(LocalStore):
    """The files of a driver that dies before it takes anything out of the table."""

    def rename(self, source: str, target: str) -> None:
        if "/old-" in target:
            raise Crashed
        super().rename(source, target)


def test_a_swap_that_lost_its_journal_leaves_no_rows_of_before(tmp_path: Path):
    """Committed, not moved in, and its journal removed: the next write takes out what that one had to, for good."""
    writer, dying, third = (Writer(str(tmp_path), LocalStore(), number) for number in (1, 2, 3))
    writer.write("mon", ("p=1", "p=2"), "append")
    committed, swap, lease = dying.prepare("mon", ("p=2",), "append")
    with pytest.raises(Crashed):
        dying.commits.commit_table(DiesTakingOut(), committed, swap, lease)
    Path(swap.draft, "swap.json").unlink()
    third.write("mon", ("p=2",), "append")
    assert content(writer.table) == {"p=2": {"mon-3"}}
    for each in (writer, dying, third):
        each.keeper.close()


def test_rows_of_before_go_from_wherever_new_ones_come(tmp_path: Path):
    """The same, and the record of the rows of before was removed, too: an append looks where it writes."""
    writer, dying, third = (Writer(str(tmp_path), LocalStore(), number) for number in (1, 2, 3))
    writer.write("mon", ("p=1",), "append")
    committed, swap, lease = dying.prepare("mon", ("p=2",), "append")
    with pytest.raises(Crashed):
        dying.commits.commit_table(DiesTakingOut(), committed, swap, lease)
    Path(swap.draft, "swap.json").unlink()
    Path(writer.log.get_record_path("table", "mon", 1)).unlink()
    third.write("mon", ("p=1",), "append")
    assert content(writer.table) == {"p=1": {"mon-3"}}
    for each in (writer, dying, third):
        each.keeper.close()
