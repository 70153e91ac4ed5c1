"""What leaves a work dir, and what stays; with folders of given ages, in days."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from airflow_dagsched.launch.protocol.keys import digest_parts
from airflow_dagsched.launch.retention.expiry import find_expired, remove_expired
from airflow_dagsched.launch.retention.inventory import LOCAL, Listed, LocalFiles

DAY = 86_400.0
NOW = 1_000 * DAY


class WorkDir:
    """Makes files of an age."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "work"
        self.root.mkdir()

    def file(self, path: str, days: float, content: object = "") -> Path:
        """A file, and the folder it is in, that are ``days`` old."""
        found = self.root / path
        found.parent.mkdir(parents=True, exist_ok=True)
        found.write_text(json.dumps(content))
        for each in (found, found.parent):
            os.utime(each, (NOW - days * DAY,) * 2)
        return found

    def dataset(self, generation: int, days: float) -> None:
        """A commit of an output's interval, with its data."""
        path = self.file(f"datasets/o/i/{generation:010d}-x/part-0", days).parent
        self.file(f"commits/o/i/{generation:010d}.json", days, {"table": None, "path": str(path)})

    def expired(self, keep_days: float = 30, temporary: str = "") -> tuple[str, ...]:
        """What may go; the rest stays without trouble."""
        found = find_expired(str(self.root), NOW, keep_days * DAY, LOCAL, temporary)
        assert found.troubles == ()
        return found.paths

    def left(self, keep_days: float = 30) -> list[str]:
        """The files that stay."""
        remove_expired(self.expired(keep_days), LOCAL)
        return sorted(str(path.relative_to(self.root)) for path in self.root.rglob("*") if path.is_file())


@pytest.fixture
def work(tmp_path: Path) -> WorkDir:
    """An empty work dir."""
    return WorkDir(tmp_path)


def test_old_datasets_go_with_their_records(work: WorkDir):
    """40 and 31 days old, and 5: the last stays."""
    for generation, days in ((1, 40), (2, 31), (3, 5)):
        work.dataset(generation, days)
    assert work.left() == ["commits/o/i/0000000003.json", "datasets/o/i/0000000003-x/part-0"]


def test_all_old_leaves_no_folder(work: WorkDir):
    """Not even empty ones; and a second time there is nothing to do."""
    work.dataset(1, 31)
    work.file("runs/dag/run/manifest.json", 31)
    work.file("leases/o/i/0000000001.json", 31, {"expires": 0.0})
    work.file("ends/step/run/00000-00001-x.json", 31)
    assert work.left() == []
    assert not (work.root / "datasets" / "o").exists()
    assert work.expired(1) == ()


def test_the_newest_record_of_a_table_stays(work: WorkDir):
    """The next write of the interval needs it."""
    for generation in (1, 2):
        work.file(f"commits/t/i/{generation:010d}.json", 100, {"table": "file:///t", "path": "/none/t"})
    assert work.left() == ["commits/t/i/0000000002.json"]


def test_what_is_leased_stays(work: WorkDir):
    """All of its interval: someone is at work on it."""
    work.dataset(1, 100)
    lease = work.file("leases/o/i/0000000001.json", 0, {"expires": NOW + 10})
    before = [path for path in work.left() if "leases" not in path]
    assert len(before) == 2
    lease.write_text('{"expires": 0.0}')
    os.utime(lease, (NOW - 40 * DAY,) * 2)
    assert work.left() == []


def record(writer: str, **more: object) -> dict[str, object]:
    """Of a table of files."""
    return {"table": "file:///t", "path": "/none/t", "writer": writer, "format": "parquet", **more}


def test_the_newest_record_of_each_writer_stays(work: WorkDir):
    """Two steps append to one table: a, b, a, b, a. Without its newest record a step would append once more."""
    for generation, writer in enumerate("ababa", start=1):
        work.file(f"commits/t/i/{generation:010d}.json", 100, record(writer))
    assert work.left() == ["commits/t/i/0000000004.json", "commits/t/i/0000000005.json"]


def test_a_record_that_says_what_was_written_over_stays(work: WorkDir):
    """Delta: a wrote both days, b wrote over each, and then over the second again, which says nothing more."""
    days = (("a", ["d=1", "d=2"]), ("b", ["d=1"]), ("b", ["d=2"]), ("b", ["d=2"]))
    for generation, (writer, partitions) in enumerate(days, start=1):
        name = f"commits/t/i/{generation:010d}.json"
        work.file(name, 100, record(writer, format="delta", partitions=partitions, mode="overwrite"))
    assert work.left() == [f"commits/t/i/{number:010d}.json" for number in (1, 2, 4)]


def test_an_intent_stays_until_its_record_is_there(work: WorkDir):
    """It is all that is known of an append in doubt."""
    work.file("commits/t/i/0000000001.json", 100, record("flow/a"))
    for writer in ("flow/a", "flow/b"):
        work.file(f"commits/t/i/{digest_parts(writer)}.intent", 100)
    assert work.left() == ["commits/t/i/0000000001.json", f"commits/t/i/{digest_parts('flow/b')}.intent"]


def test_what_a_killed_writer_of_a_file_left_goes(work: WorkDir):
    """A record and a lease were written aside, and never got their names."""
    work.file("commits/t/i/.draft-1", 100)
    work.file("leases/t/i/.draft-2", 100)
    young = work.file("leases/t/i/.draft-3", 1)
    assert work.left() == [str(young.relative_to(work.root))]


def test_beside_a_table(work: WorkDir, tmp_path: Path):
    """Records, leases and drafts of a table that several work dirs write; the lock stays."""
    home = tmp_path / ".dagsched-t"
    work.file("tables/t.json", 100, {"table": f"{tmp_path}/t", "folder": str(home)})
    for generation, writer in enumerate("aba", start=1):
        work.file(f"../.dagsched-t/commits/i/{generation:010d}.json", 100, record(writer))
    for name in ("leases/i/0000000001.json", "leases/i/.draft-1", "lock", "k-1-x/new/part-0"):
        work.file(f"../.dagsched-t/{name}", 100, {"expires": 0.0})
    for folder in home.rglob("*"):
        os.utime(folder, (NOW - 100 * DAY,) * 2)
    work.left()
    assert sorted(str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()) == [
        "commits/i/0000000002.json",
        "commits/i/0000000003.json",
        "lock",
    ]


def test_records_beside_a_table_stay_while_its_interval_is_leased(work: WorkDir, tmp_path: Path):
    """Who holds the lease may have read any of them."""
    work.file("tables/t.json", 100, {"table": f"{tmp_path}/t"})
    for generation in (1, 2):
        work.file(f"../.dagsched-t/commits/i/{generation:010d}.json", 100, record("a"))
    work.file("../.dagsched-t/leases/i/0000000001.json", 0, {"expires": NOW + 10})
    assert work.expired() == ()


def test_a_torn_record_beside_a_table_stays(work: WorkDir, tmp_path: Path):
    """It says that there are rows of which nobody knows: the next write looks for them. A refused one says nothing."""
    work.file("tables/t.json", 100, {"table": f"{tmp_path}/t"})
    work.file("../.dagsched-t/commits/i/0000000001.json", 100, None)
    work.file("../.dagsched-t/commits/i/0000000002.json", 100, {"refused": True})
    assert work.expired() == (f"{tmp_path}/.dagsched-t/commits/i/0000000002.json",)


def test_what_a_killed_writer_left_in_a_table_goes(work: WorkDir, tmp_path: Path):
    """It tried whether files can be moved there; rows, and what is hidden by others, are nobody's business here."""
    work.file("tables/t.json", 100, {"table": f"file://{tmp_path}/t"})
    for name in (".dagsched-probe-1", "p=1/q=1/.dagsched-probe-2", "p=1/q=1/part-0", "_other/.dagsched-probe-3"):
        work.file(f"../t/{name}", 100)
    assert work.expired() == (f"{tmp_path}/t/.dagsched-probe-1", f"{tmp_path}/t/p=1/q=1/.dagsched-probe-2")


def test_private_files_of_dead_launches_go(work: WorkDir, tmp_path: Path):
    """They hold arguments, and passwords in them; those of a launch that lives are young."""
    for name, days in (("dagsched-launch-dead", 100), ("dagsched-launch-alive", 1), ("dagsched-other", 100)):
        work.file(f"../temporary/{name}/payload", days)
    assert work.expired(temporary=f"{tmp_path}/temporary") == (f"{tmp_path}/temporary/dagsched-launch-dead",)


FOREIGN = [
    "null",
    "[]",
    "3",
    '""',
    "",
    '{"ta',
    '{"expires": null}',
    '{"path": 3, "writer": [], "table": 0}',
    '{"path": "/x", "writer": "\\ud800", "table": "file:///t"}',
    "\udcff",
]


@pytest.mark.parametrize("text", FOREIGN)
def test_whatever_a_file_holds_it_goes_on(work: WorkDir, text: str):
    """Records, leases, pointers; all else goes as it would."""
    names = ["commits/o/i/0000000007.json", "leases/o/i/0000000007.json", "tables/t.json"]
    for name in names:
        path = work.file(name, 100)
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        os.utime(path, (NOW - 100 * DAY,) * 2)
    work.file("runs/dag/run/manifest.json", 31)
    assert not [path for path in work.left() if path.startswith(("runs", "leases"))]


def test_a_lease_that_cannot_be_read_keeps_its_interval(work: WorkDir):
    """It is young: someone may be half way in writing it."""
    work.dataset(1, 100)
    work.file("leases/o/i/0000000001.json", 0).write_text("")
    assert len(work.left()) == 3


class Stumbling(LocalFiles):
    """Files that nobody may look at, or that go while they are looked at."""

    def __init__(self, name: str, error: type[OSError]) -> None:
        self.name = name
        self.error = error

    def _stumble(self, path: str) -> None:
        if path.endswith(self.name):
            raise self.error(errno.EACCES, "no way", path)

    def list(self, path: str) -> tuple[Listed, ...]:
        self._stumble(path)
        return super().list(path)

    def read_text(self, path: str) -> str:
        self._stumble(path)
        return super().read_text(path)

    def delete(self, path: str) -> None:
        self._stumble(path)
        super().delete(path)


@pytest.mark.parametrize("error", [PermissionError, FileNotFoundError, OSError])
@pytest.mark.parametrize(
    "name",
    ["datasets", "datasets/o", "0000000001-x", "commits/o/i", "leases", "leases/o/i", "001.json", "runs", "dag/run"],
)
def test_what_it_may_not_touch_stays_and_is_said(work: WorkDir, name: str, error: type[OSError]):
    """Whatever that is, what else is old goes."""
    work.dataset(1, 100)
    work.file("leases/o/i/0000000001.json", 100, {"expires": 0.0})
    work.file("runs/dag/run/manifest.json", 100)
    work.file("runs/other/run/manifest.json", 100)
    files = Stumbling(name, error)
    found = find_expired(str(work.root), NOW, 30 * DAY, files)
    troubles = [*found.troubles, *remove_expired(found.paths, files)]
    assert all(name in trouble.path for trouble in troubles)
    assert bool(troubles) == (error is not FileNotFoundError)
    assert (work.root / "runs/other").exists() == (name == "runs")


def test_an_interval_whose_leases_cannot_be_listed_stays(work: WorkDir):
    """Somebody may be at work on it."""
    work.dataset(1, 100)
    found = find_expired(str(work.root), NOW, 30 * DAY, Stumbling("leases/o/i", PermissionError))
    assert found.paths == ()
    assert [str(trouble) for trouble in found.troubles] == [f"{work.root}/leases/o/i: no way"]


def test_drafts_of_dead_writers_go(work: WorkDir, tmp_path: Path):
    """Not the one with a journal: it was committed, and someone will finish it."""
    work.file("commits/t/i/0000000001.json", 1, {"table": "t", "path": f"file://{tmp_path}/t"})
    for name in ("../.dagsched-t/a-1-x/new/part-0", "../.dagsched-t/a-2-y/swap.json"):
        work.file(name, 100)
    for folder in (tmp_path / ".dagsched-t").rglob("*"):
        os.utime(folder, (NOW - 100 * DAY,) * 2)
    assert work.expired() == (f"{tmp_path}/.dagsched-t/a-1-x",)


def test_torn_records_do_not_stop_it(work: WorkDir):
    """A newest record without text points nowhere, and goes when it is old."""
    work.file("commits/o/i/0000000001.json", 100).write_text('{"ta')
    os.utime(work.root / "commits/o/i/0000000001.json", (NOW - 100 * DAY,) * 2)
    assert work.left() == []
