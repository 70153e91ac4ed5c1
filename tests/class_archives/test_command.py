"""``dagsched class-archive``: the whole way on a played host, without Airflow."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from airflow_dagsched.cli import main
from tests.class_archives.hosts import PlayedHost


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlayedHost:
    found = PlayedHost(tmp_path)
    monkeypatch.setenv("PATH", f"{found.submit.parent}:/usr/bin:/bin")
    monkeypatch.setenv("JAVA_HOME", str(found.java_home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    for name in ("SPARK_HOME", "SPARK_CONF_DIR", "SPARK_SUBMIT_OPTS"):
        monkeypatch.delenv(name, raising=False)
    return found


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Its output; it ended well."""
    assert main(["class-archive", *arguments]) == 0
    return capsys.readouterr().out


def test_one_is_made_shown_and_removed(host: PlayedHost, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(capsys, "show").startswith("none is there yet")
    assert ask(capsys, "make").startswith("the driver has it: ")
    told = host.told
    assert ask(capsys, "make").startswith("the driver has it: ")
    assert (len(told), host.told) == (2, []), "trained and proven, once"
    first, second = ask(capsys, "show").splitlines()
    assert first.endswith(": fits")
    assert second.startswith("the driver has it: ")
    assert ask(capsys, "remove").startswith("removed: ")
    assert ask(capsys, "show").startswith("none is there yet")


def test_one_that_no_longer_fits_is_shown_as_that(host: PlayedHost, capsys: pytest.CaptureFixture[str]) -> None:
    ask(capsys, "make", "--cache-dir", str(host.folder / "cache"))
    (host.submit.parents[1] / "jars" / "more.jar").touch()
    first, second = ask(capsys, "show", "--cache-dir", str(host.folder / "cache")).splitlines()
    assert first.endswith("its Java, Spark or class path has changed")
    assert second.startswith("none is there yet")


def test_a_file_for_executors(host: PlayedHost, capsys: pytest.CaptureFixture[str]) -> None:
    """Everybody may read it, and nothing is left beside it, or in the cache."""
    folder = host.folder / "opt"
    folder.mkdir()
    assert ask(capsys, "make", "--output", str(folder / "spark.jsa")) == f"made: {folder / 'spark.jsa'}\n"
    (left,) = folder.iterdir()
    assert oct(left.stat().st_mode & 0o777) == "0o444"
    assert not (host.folder / "xdg").exists()


def test_why_there_is_none_is_a_line(host: PlayedHost, capsys: pytest.CaptureFixture[str]) -> None:
    host.put_conf(spark_env="").joinpath("spark-env.sh").touch()
    assert main(["class-archive", "make"]) == 1
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert "conf folder" in line


def test_what_failed_is_tried_again_at_once(host: PlayedHost, capsys: pytest.CaptureFixture[str]) -> None:
    (host.submit.parents[1] / "bin" / "spark-submit").write_text("#!/bin/sh\nexit 3\n")
    for _ in range(2):
        assert main(["class-archive", "make"]) == 1
        assert "train: exit code 3" in capsys.readouterr().err
    assert ask(capsys, "show").startswith("none could be made: ")


def test_it_loads_neither_airflow_nor_pyspark(host: PlayedHost) -> None:
    code = (
        "import sys; from airflow_dagsched.cli import main; main(['class-archive', 'show']); "
        "sys.exit(bool({'airflow', 'pyspark'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, stdout=subprocess.DEVNULL).returncode == 0
