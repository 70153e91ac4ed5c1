"""Records of steps that leave no rows. No Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_dagsched.launch.protocol.identity import TryId
from airflow_dagsched.launch.protocol.manifest import Manifest, StepSpec
from airflow_dagsched.launch.secrecy.masking import Masking
from airflow_dagsched.spark.files.store import LocalStore
from airflow_dagsched.spark.reuse.ends import Ends

MAIL = StepSpec("mail", "")
NEW, CLEARED = TryId("2026", 0, 1), TryId("2026", 1, 2)


def ends(folder: Path, each: TryId = NEW, run: str = "run", mask: Any = lambda value: value, group: str = "g") -> Ends:
    manifest = Manifest(
        "1", "3.11", "d", "f", group, run, each.try_number, each.clear_number, str(folder), "", "key", (), (),
        incarnation=each.incarnation,
    )  # fmt: skip
    return Ends(LocalStore(), manifest, mask)


def end(made: Ends, value: Any = None, fingerprint: str = "f") -> None:
    made.record_end("mail", fingerprint, value, None, {})


def test_an_end_is_of_its_run(tmp_path: Path) -> None:
    """Later tries find it; another run, and one of the same id that was made after this was deleted, do not."""
    end(ends(tmp_path), 7)
    found = ends(tmp_path, replace(NEW, try_number=2)).find_latest(MAIL)
    assert found is not None
    assert (found.value, found.fingerprint, found.try_id) == (7, "f", NEW)
    assert ends(tmp_path, run="other").find_latest(MAIL) is None
    assert ends(tmp_path, replace(NEW, incarnation="2027")).find_latest(MAIL) is None


def test_a_cleared_step_has_not_ended(tmp_path: Path) -> None:
    """Cleared, it runs again, once: a retry of the cleared run finds the end it had since."""
    cleared, forced = ends(tmp_path, CLEARED), replace(MAIL, force=True)
    end(ends(tmp_path), 1)
    assert cleared.find_latest(forced) is None
    assert cleared.find_latest(MAIL) is not None, "another step was cleared"
    end(cleared, 2)
    found = ends(tmp_path, replace(CLEARED, try_number=3)).find_latest(forced)
    assert found is not None
    assert found.value == 2


def test_the_newest_try_counts_whenever_it_writes(tmp_path: Path) -> None:
    """A driver that was frozen before its record writes it late."""
    end(ends(tmp_path, CLEARED), 2)
    end(ends(tmp_path), 1)
    found = ends(tmp_path, CLEARED).find_latest(MAIL)
    assert found is not None
    assert found.value == 2


@pytest.mark.parametrize("text", ["", "null", "[]", "{"])
def test_a_torn_record_is_none(tmp_path: Path, text: str) -> None:
    end(ends(tmp_path))
    (file,) = tmp_path.rglob("*.json")
    file.write_text(text)
    assert ends(tmp_path).find_latest(MAIL) is None


def test_a_secret_is_not_recorded(tmp_path: Path) -> None:
    """Who reads the value then has the step run again."""
    masking = Masking()
    masking.learn({"password": "tops3cret"})
    end(ends(tmp_path, mask=masking.value), {"url": "db?tops3cret"})
    assert "tops3cret" not in next(tmp_path.rglob("*.json")).read_text()
    found = ends(tmp_path).find_latest(MAIL)
    assert found is not None
    assert [found.can_serve(()), found.can_serve(("",))] == [True, False]


def test_a_disk_that_is_full_ends_no_step(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "ends").write_text("no folder")
    end(ends(tmp_path))
    assert "a retry would run it again" in caplog.text


def test_two_launch_tasks_leave_two_records(tmp_path: Path) -> None:
    """Equal numbers of tries, two code versions: each finds its own; a clear since then counts over both."""
    mine, other = ends(tmp_path), ends(tmp_path, group="h")
    end(mine, 1, "old")
    end(other, 2, "new")
    found = [made.find_latest(MAIL, fingerprint) for made in (mine, other) for fingerprint in ("old", "new")]
    assert [(each.value, each.group) for each in found if each] == [(1, "g"), (2, "h")] * 2
    end(ends(tmp_path, CLEARED), 3, "newer")
    found = [other.find_latest(MAIL, fingerprint) for fingerprint in ("old", "new")]
    assert [each.value for each in found if each] == [3, 3]
