"""What is written into a folder of archives, and taken out of it: nothing where it is not this user's alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from airflow_dagsched.class_archives.make import make_on_shelf, request_archive
from airflow_dagsched.class_archives.shelf import Shelf
from airflow_dagsched.cli import main
from airflow_dagsched.launch.class_archive.bounds import AGAIN_AFTER_S, Failure
from tests.class_archives.hosts import PlayedHost

KEY = "0123456789abcdef01234567"
FOREIGN = ("spark-core.jar", "package.json", "my.jsa", ".draft-of-a-letter", "making-a-cake/recipe", f"{KEY}.json.bak")
LEFT = (f"{KEY}.jsa", f"{KEY}.jar", f".draft-{KEY}01234567", "making-x_1y2z3a/train.log")
"""By a maker that died."""


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlayedHost:
    found = PlayedHost(tmp_path)
    monkeypatch.setenv("PATH", f"{found.submit.parent}:/usr/bin:/bin")
    monkeypatch.setenv("JAVA_HOME", str(found.java_home))
    return found


def make(host: PlayedHost) -> str:
    """Why none was made."""
    return make_on_shelf(request_archive(host.folder / "cache", host.submit, "local", {}, host.environment))


def put(folder: Path, *names: str) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    for name in names:
        (folder / name).parent.mkdir(mode=0o700, exist_ok=True)
        (folder / name).write_text("{}")


def list_all(folder: Path) -> set[str]:
    """Files below it."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def link_folder(shelf: Shelf) -> None:
    elsewhere = shelf.folder.parent.with_name("elsewhere")
    shelf.folder.rename(elsewhere)
    shelf.folder.symlink_to(elsewhere)


def open_folder(shelf: Shelf) -> None:
    shelf.folder.chmod(0o770)


def open_cache(shelf: Shelf) -> None:
    shelf.folder.parent.chmod(0o777)


STRANGE = pytest.mark.parametrize(
    ("open_up", "told"),
    [(link_folder, "is no folder, but a link"), (open_folder, "others may write"), (open_cache, "others may write")],
)


@STRANGE
def test_where_others_may_write_a_maker_touches_nothing(
    host: PlayedHost, open_up: Callable[[Shelf], None], told: str
) -> None:
    put(host.shelf.folder, *FOREIGN, *LEFT)
    open_up(host.shelf)
    assert told in make(host)
    assert list_all(host.shelf.folder) == {*FOREIGN, *LEFT}
    assert host.told == []


@STRANGE
def test_where_others_may_write_nothing_is_removed(
    host: PlayedHost, open_up: Callable[[Shelf], None], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    put(host.shelf.folder, *FOREIGN, *LEFT)
    open_up(host.shelf)
    assert main(["class-archive", "remove", "--cache-dir", str(host.folder / "cache")]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("not removed: ")
    assert told in printed.err
    assert printed.err.count("\n") == 1
    with pytest.raises(PermissionError):
        host.shelf.remove(KEY)
    assert list_all(host.shelf.folder) == {*FOREIGN, *LEFT}


def test_no_folder_is_made_where_others_could_replace_it(host: PlayedHost) -> None:
    (host.folder / "cache").chmod(0o777)
    assert "others may write" in make(host)
    assert list((host.folder / "cache").iterdir()) == []


def test_what_others_may_write_by_the_time_that_it_is_made_is_not_kept(host: PlayedHost) -> None:
    """Nor is anything noted of it; what is left goes with the next one that is made."""
    text = host.submit.read_text()
    host.submit.write_text(text.replace("archive=", f"chmod 777 {host.folder / 'cache'}\narchive=", 1))
    assert "others may write" in make(host)
    assert list_all(host.shelf.folder) == {"lock"}
    host.submit.write_text(text)
    (host.folder / "cache").chmod(0o700)
    assert make(host) == ""
    assert len(list(host.shelf.list_notes())) == 1


def test_what_is_no_archive_s_stays(host: PlayedHost) -> None:
    put(host.shelf.folder, *FOREIGN, *LEFT)
    assert make(host) == ""
    ((key, _, _),) = host.shelf.list_notes()
    made = {"lock", f"{key}.jsa", f"{key}.json"}
    assert list_all(host.shelf.folder) == {*FOREIGN, *made}
    assert host.shelf.list_keys() == (key,)
    assert list(host.shelf.remove_all()) == [key]
    assert list_all(host.shelf.folder) == {*FOREIGN, "lock"}


def test_why_there_was_none_is_forgotten_after_a_day(host: PlayedHost) -> None:
    """Also of a Java or a Spark that is gone; and what nobody can read, as after a power cut."""
    host.shelf.open()
    old, young, garbled = (f"{number}{KEY[1:]}" for number in range(3))
    for key in (old, young, garbled):
        host.shelf.note_failure(key, "the disk is full")
    written = host.shelf.folder / f"{old}.failed.json"
    at = time.time() - AGAIN_AFTER_S - 1
    written.write_bytes(msgspec.json.encode(Failure("the disk is full", at)))
    (host.shelf.folder / f"{garbled}.failed.json").write_text("")
    assert make(host) == ""
    assert [key for key in (old, young, garbled) if key in host.shelf.list_keys()] == [young]
    assert host.shelf.read_failure(young) is not None


def test_a_link_in_the_place_of_a_maker_s_folder_is_not_followed(host: PlayedHost) -> None:
    put(host.folder / "elsewhere", "recipe")
    put(host.shelf.folder)
    (host.shelf.folder / "making-x_1y2z3a").symlink_to(host.folder / "elsewhere")
    host.shelf.sweep()
    assert list_all(host.folder / "elsewhere") == {"recipe"}


def test_nothing_is_there_to_remove(host: PlayedHost) -> None:
    assert main(["class-archive", "remove", "--cache-dir", str(host.folder / "cache")]) == 0
    assert main(["class-archive", "remove", "--cache-dir", str(host.folder / "nowhere" / "cache")]) == 0
    assert list((host.folder / "cache").iterdir()) == []
