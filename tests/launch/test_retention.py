"""What leaves a work dir, and what stays; with folders of given ages, in days."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from airflow_dagsched.launch.retention import expired, remove

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

    def left(self, keep_days: float = 30) -> list[str]:
        """The files that stay."""
        remove(expired(str(self.root), NOW, keep_days * DAY))
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
    assert work.left() == []
    assert not (work.root / "datasets" / "o").exists()
    assert expired(str(work.root), NOW, DAY) == ()


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


def test_an_intent_stays_until_its_record_is_there(work: WorkDir):
    """It is all that is known of an append in doubt."""
    work.file("commits/t/i/0000000001.json", 100, {"table": "t", "path": "t"})
    work.file("commits/t/i/0000000001.json.intent", 100)
    work.file("commits/t/i/0000000002.json.intent", 100)
    assert work.left() == ["commits/t/i/0000000001.json", "commits/t/i/0000000002.json.intent"]


def test_drafts_of_dead_writers_go(work: WorkDir, tmp_path: Path):
    """Not the one with a journal: it was committed, and someone will finish it."""
    work.file("commits/t/i/0000000001.json", 1, {"table": "t", "path": f"file://{tmp_path}/t"})
    for name in ("../.dagsched-t/a-1-x/new/part-0", "../.dagsched-t/a-2-y/swap.json"):
        work.file(name, 100)
    for folder in (tmp_path / ".dagsched-t").rglob("*"):
        os.utime(folder, (NOW - 100 * DAY,) * 2)
    assert expired(str(work.root), NOW, 30 * DAY) == (tmp_path / ".dagsched-t" / "a-1-x",)


def test_torn_records_do_not_stop_it(work: WorkDir):
    """A newest record without text points nowhere, and goes when it is old."""
    work.file("commits/o/i/0000000001.json", 100).write_text('{"ta')
    os.utime(work.root / "commits/o/i/0000000001.json", (NOW - 100 * DAY,) * 2)
    assert work.left() == []
