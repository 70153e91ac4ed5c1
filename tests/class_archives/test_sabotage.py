"""Archives of real classes: made by what a run leaves behind, used by the next one, harmful to none.

One archive, as two runs on a fresh machine come to it, is spoiled in each way; the runs that meet it end as ever.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pyspark
import pytest
from airflow.sdk.exceptions import AirflowException
from msgspec.structs import replace

from airflow_dagsched.class_archives.background import MAKER
from airflow_dagsched.class_archives.make import Request, make_file, request_archive
from airflow_dagsched.class_archives.shelf import Note, Shelf
from airflow_dagsched.provider.submission.spark_submit import ArchiveBroken, FollowedSubmit

pytestmark = [pytest.mark.slow, pytest.mark.spark]

APPLICATION = Path(__file__).with_name("mapped.py")
SPARK_SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"
CONF = {"spark.driver.memory": "1g", "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1"}
WITHIN_S = 1200.0
"""A maker has the lowest priority."""
LOGGER = "airflow_dagsched.provider.submission.class_archive"


class Submitted(FollowedSubmit):
    """A submit whose driver's output is kept."""

    def __init__(self, *arguments: str) -> None:
        super().__init__(spark_binary=str(SPARK_SUBMIT), conf=dict(CONF), application_args=list(arguments))
        self.lines: list[str] = []
        self.on_line = self._keep  # type: ignore[method-assign]

    def _keep(self, line: str) -> str | None:
        self.lines.append(line)
        return None if line.startswith("{") else line


def run(*arguments: str) -> tuple[dict[str, Any], list[str]]:
    """What the application says, and all else that came out of its spark-submit."""
    hook = Submitted(*arguments)
    try:
        hook.submit(str(APPLICATION))
    except ArchiveBroken:  # a launch task makes another submit then
        hook.submit(str(APPLICATION))
    (said,) = (line for line in hook.lines if line.startswith("{"))
    return json.loads(said), [line for line in hook.lines if line != said]


def wait_for(what: Callable[[], Any]) -> Any:
    """What it returns, once that is true."""
    until = time.monotonic() + WITHIN_S
    while not (found := what()):
        assert time.monotonic() < until
        time.sleep(0.2)
    return found


def list_processes(text: str) -> list[int]:
    """Of all users' processes those with ``text`` in their command lines, but for this one."""
    found = []
    for each in Path("/proc").iterdir():
        if each.name.isdecimal() and int(each.name) != os.getpid():
            try:
                found += [int(each.name)] if text in (each / "cmdline").read_text() else []
            except (OSError, UnicodeDecodeError):
                continue
    return found


@pytest.fixture(autouse=True, scope="module")
def _airflow() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRFLOW__DAGSCHED__CLASS_ARCHIVE", "auto")
        patch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "local[1]"}))
        patch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
        patch.delenv("SPARK_HOME", raising=False)
        patch.setenv("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1")
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder with an archive, as two launches that began at once on a fresh machine leave it."""
    cache = tmp_path_factory.mktemp("made") / "cache"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRFLOW__DAGSCHED__CACHE_DIR", str(cache))
        with ThreadPoolExecutor() as both:
            found = list(both.map(lambda _: run(), range(2)))
        assert [said["count"] for said, _ in found] == [3, 3]
        shelf = Shelf.of(cache)
        wait_for(lambda: list(shelf.list_notes()))
        wait_for(lambda: not list_processes(str(cache)))
    assert sorted(path.suffix for path in shelf.folder.iterdir()) == ["", ".jar", ".jsa", ".json"], "and the lock"
    assert oct(shelf.folder.stat().st_mode & 0o777) == "0o700"
    return cache


@pytest.fixture
def cache(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The same, which is spoiled, in use: an archive is for one class path, so it stays where it is."""
    shutil.copytree(made, tmp_path / "whole")
    monkeypatch.setenv("AIRFLOW__DAGSCHED__CACHE_DIR", str(made))
    yield made
    made.chmod(0o700)
    shutil.rmtree(made)
    shutil.copytree(tmp_path / "whole", made)


def find_archive(cache: Path) -> Path:
    (file,) = Shelf.of(cache).folder.glob("*.jsa")
    return file


def note_as_it_is(cache: Path) -> None:
    """As if its maker had left the archive so: Java alone is to see what is wrong."""
    file = find_archive(cache)
    note = msgspec.json.decode(file.with_suffix(".json").read_bytes(), type=Note)
    found = file.stat()
    changed = replace(note, bytes=found.st_size, changed_s=int(found.st_mtime))
    file.with_suffix(".json").write_bytes(msgspec.json.encode(changed))


def test_the_next_run_has_it(cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, LOGGER):
        said, _ = run()
    assert find_archive(cache).name in said["mapped"]
    assert [each.getMessage() for each in caplog.records if each.name == LOGGER] == []


def cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def cut_head(file: Path) -> None:
    os.truncate(file, 100)


def empty(file: Path) -> None:
    os.truncate(file, 0)


def garble(file: Path) -> None:
    with file.open("r+b") as opened:
        opened.write(os.urandom(1 << 16))


def make_another_java_s(file: Path) -> None:
    """Its head says which Java has written it."""
    with file.open("r+b") as opened:
        head = opened.read(1 << 14)
        at = head.index(b"Server VM")
        opened.seek(at)
        opened.write(b"Sorver VM")


def spoil_file(cache: Path, spoil: Callable[[Path], None]) -> Path:
    """Spoil the archive, of which nothing is to be seen by its time."""
    file = find_archive(cache)
    before = file.stat()
    file.chmod(0o600)
    spoil(file)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    file.chmod(0o400)
    return file


@pytest.mark.parametrize("spoil", [cut, cut_head, empty, garble, make_another_java_s])
@pytest.mark.parametrize("is_noted", [True, False])
def test_a_run_ends_well_whatever_the_file_is(
    cache: Path,
    spoil: Callable[[Path], None],
    is_noted: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Java goes on without it, and says nothing where events are read; nor do we, in more than a line."""
    _, plain = run()
    file = spoil_file(cache, spoil)
    if is_noted:
        note_as_it_is(cache)
    with caplog.at_level(logging.INFO, LOGGER):
        said, others = run()
    assert said["count"] == 3
    assert file.name not in said["mapped"]
    assert len([line for line in others if not is_of_crash(line)]) == len(plain)
    assert len([each for each in caplog.records if each.name == LOGGER]) <= 1
    stop_makers(cache)


@pytest.mark.parametrize("spoil", [cut, empty, Path.unlink])
def test_a_run_ends_well_whatever_its_jar_is(cache: Path, spoil: Callable[[Path], None]) -> None:
    (jar,) = Shelf.of(cache).folder.glob("*.jar")
    jar.chmod(0o600)
    spoil(jar)
    said, _ = run()
    assert said["count"] == 3
    assert find_archive(cache).name not in said["mapped"]
    stop_makers(cache)


def is_of_crash(line: str) -> bool:
    """What Java says that ends over the file, before it is started again without."""
    return line.startswith("#") or not line.strip()


def test_a_file_that_java_ends_over_is_taken_away(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Java says of it is beside it, not in the working folder."""
    monkeypatch.chdir(tmp_path)
    file = spoil_file(cache, cut)
    note_as_it_is(cache)
    said, others = run()
    assert said["count"] == 3
    if not any(map(is_of_crash, others)):
        pytest.skip("this Java looks at the file's length: it goes on without")
    failure = Shelf.of(cache).read_failure(file.stem)
    assert failure is not None
    assert failure.reason.startswith("Java crashed with it")
    assert not file.exists()
    assert Shelf.of(cache).report.stat().st_size > 0
    assert list(tmp_path.glob("hs_err*")) == []


def test_a_crash_of_its_python_is_not_held_against_the_archive(cache: Path) -> None:
    """Nor is there another submit, which would crash again."""
    hook = Submitted("crash")
    with pytest.raises(AirflowException, match=r"Error code is: 139") as caught:
        hook.submit(str(APPLICATION))
    assert not isinstance(caught.value, ArchiveBroken)
    assert Shelf.of(cache).read_failure(find_archive(cache).stem) is None


def stop_makers(cache: Path) -> None:
    for number in list_processes(str(cache)):
        os.kill(number, signal.SIGKILL)
    wait_for(lambda: not list_processes(str(cache)))


def open_to_all(cache: Path) -> None:
    Shelf.of(cache).folder.chmod(0o777)


def link_file(cache: Path) -> None:
    file = find_archive(cache)
    file.rename(cache / "elsewhere.jsa")
    file.symlink_to(cache / "elsewhere.jsa")


@pytest.mark.parametrize("open_up", [open_to_all, link_file])
def test_what_others_may_have_written_is_not_used(
    cache: Path, open_up: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    open_up(cache)
    with caplog.at_level(logging.INFO, LOGGER):
        said, _ = run()
    assert said["count"] == 3
    assert "elsewhere.jsa" not in said["mapped"]
    (line,) = (each.getMessage() for each in caplog.records if each.name == LOGGER)
    assert "none is used" in line


def test_where_no_folder_can_be_made_a_run_ends_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a home that is read-only."""
    monkeypatch.setenv("AIRFLOW__DAGSCHED__CACHE_DIR", "/proc/self/cache")
    assert run()[0]["count"] == 3


def test_a_run_that_fails_has_none_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__DAGSCHED__CACHE_DIR", str(tmp_path / "cache"))
    with pytest.raises(AirflowException):
        run("fail")
    assert list_processes(str(tmp_path / "cache")) == []
    assert not (tmp_path / "cache").exists()


def request(cache: Path) -> Request:
    return request_archive(cache, SPARK_SUBMIT, "local", {}, os.environ)


def start_maker(cache: Path, **options: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", MAKER, msgspec.json.encode(request(cache)).decode()], **options)


def test_on_a_full_disk_nothing_is_left_but_the_reason(tmp_path: Path) -> None:
    """Java can write 20 MB and no more."""
    cache, limit = tmp_path / "cache", 20 << 20
    child = start_maker(cache, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    child.wait(WITHIN_S)
    (left,) = (path.name for path in Shelf.of(cache).folder.iterdir() if path.name != "lock")
    assert left.endswith(".failed.json")


def test_a_maker_that_is_killed_leaves_no_process_and_the_next_one_none_of_its_files(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    child, shelf = start_maker(cache), Shelf.of(cache)
    training = wait_for(lambda: list_processes(f"{shelf.folder}/making-"))
    assert os.sched_getscheduler(child.pid) == os.SCHED_IDLE
    assert all(os.sched_getscheduler(number) == os.SCHED_IDLE for number in training)
    # Launches want their memory, too.
    assert {Path(f"/proc/{number}/oom_score_adj").read_text().strip() for number in training} == {"1000"}
    wait_for(lambda: list_processes("training/main.py"))
    child.kill()
    child.wait()
    wait_for(lambda: not list_processes(f"{shelf.folder}/making-"))
    with shelf.hold_lock() as is_mine:
        assert is_mine
        shelf.sweep()
    assert [path.name for path in shelf.folder.iterdir()] == ["lock"]


def test_one_for_executors_is_a_file_that_everybody_may_read(tmp_path: Path) -> None:
    output = tmp_path / "executor.jsa"
    assert make_file(request(tmp_path / "cache"), output) == ""
    assert oct(output.stat().st_mode & 0o777) == "0o444"
    assert not (tmp_path / "cache").exists()
