"""Which archive a driver gets: by real files, in folders of real modes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from airflow_dagsched.class_archives.choose import choose_archive, see_from
from airflow_dagsched.class_archives.make import prune
from airflow_dagsched.launch.class_archive.verdict import Verdict
from tests.class_archives.hosts import PlayedHost

SAID = {"spark.driver.extraJavaOptions": "-XX:SharedArchiveFile=/mine.jsa"}


@pytest.fixture
def host(tmp_path: Path) -> PlayedHost:
    return PlayedHost(tmp_path)


def choose(host: PlayedHost, master: str = "yarn", **settings: str) -> Verdict:
    return choose_archive(host.shelf, host.submit, master, settings, host.environment)


def test_none_is_there_at_first(host: PlayedHost) -> None:
    found = choose(host)
    assert found.reason == "missing"


def test_one_that_was_made_is_used_and_its_use_is_noted(host: PlayedHost) -> None:
    key = host.put_archive()
    os.utime(host.shelf.folder / f"{key}.json", (0, 0))
    assert choose(host) == Verdict("used", str(host.shelf.locate(key)), "dynamic")
    ((_, _, used_at),) = host.shelf.list_notes()
    assert used_at > 0


def test_the_author_s_own_wins(host: PlayedHost) -> None:
    host.put_archive()
    assert choose_archive(host.shelf, host.submit, "yarn", SAID, host.environment).reason == "author"


def test_another_java_build_has_another(host: PlayedHost) -> None:
    host.put_archive()
    release = host.java_home / "release"
    release.write_text(release.read_text().replace("+6", "+7"))
    assert choose(host).reason == "missing"


@pytest.mark.parametrize("change", ["more", "other", "later", "fewer"])
def test_changed_jars_have_another_and_the_old_one_goes(host: PlayedHost, change: str) -> None:
    key, jar = host.put_archive(), host.submit.parents[1] / "jars" / "core.jar"
    if change == "more":
        jar.with_name("more.jar").touch()
    elif change == "other":
        jar.write_text("another")
    elif change == "later":
        os.utime(jar, (1, 1))
    else:
        jar.unlink()
    assert choose(host).reason == "missing"
    assert prune(host.shelf) == (key,)
    assert not host.shelf.locate(key).exists()


def test_one_that_fits_is_not_pruned(host: PlayedHost) -> None:
    host.put_archive()
    assert prune(host.shelf) == ()


def test_a_conf_folder_with_files_has_none(host: PlayedHost) -> None:
    """Where a client looks for them there, or runs them."""
    host.put_archive()
    conf = host.submit.parents[1] / "conf"
    conf.mkdir()
    assert choose(host).reason == "used", "an empty one is as good as none"
    (conf / "spark-defaults.conf").touch()
    assert choose(host).reason == "conf_folder"
    assert choose(host, "k8s://https://api").reason == "conf_folder"
    assert choose(host, "local[2]").reason == "missing"
    for name in ("spark-env.sh", "java-opts"):
        (conf / name).touch()
        assert choose(host, "local[2]").reason == "conf_folder"
        (conf / name).unlink()


def test_a_conf_folder_with_files_may_come_last(host: PlayedHost) -> None:
    conf = host.submit.parents[1] / "conf"
    conf.mkdir()
    (conf / "log4j2.properties").touch()
    host.put_archive(see_from(host.shelf, host.look(), "spark://master"))
    found = choose(host, "spark://master")
    assert found.reason == "used"
    assert found.environment == {"SPARK_CONF_DIR": str(host.shelf.no_folder), "SPARK_DIST_CLASSPATH": str(conf)}
    assert not host.shelf.no_folder.exists()
    host.environment["SPARK_DIST_CLASSPATH"] = "/more/*"
    assert choose(host, "spark://master").environment["SPARK_DIST_CLASSPATH"] == f"/more/*:{conf}"
    assert prune(host.shelf) == ()


def test_jars_before_spark_s_have_one_of_their_own_and_folders_none(host: PlayedHost) -> None:
    host.put_archive()
    jar = host.folder / "driver.jar"
    jar.touch()
    assert choose(host, **{"spark.driver.extraClassPath": str(jar)}).reason == "missing"
    assert choose(host, **{"spark.driver.extraClassPath": f"{jar}:{host.folder}"}).reason == "class_path"


def test_a_file_that_was_cut_or_written_again_is_not_used(host: PlayedHost) -> None:
    file = host.shelf.locate(host.put_archive())
    file.chmod(0o600)
    file.write_bytes(b"class")
    file.chmod(0o400)
    assert choose(host).reason == "spoiled"


def test_a_failure_is_told_for_a_day(host: PlayedHost) -> None:
    key = choose(host).detail
    host.shelf.open()
    host.shelf.note_failure(key, "the disk is full")
    assert choose(host) == Verdict("failed", "the disk is full", "dynamic")
    failure = host.shelf.folder / f"{key}.failed.json"
    failure.write_text(failure.read_text().replace('"at":', '"at":-'))  # long ago
    assert choose(host).reason == "missing"


@pytest.mark.parametrize("garbage", ["", "{", '{"host": 3}', "[]"])
def test_a_note_that_nobody_wrote_so_is_none(host: PlayedHost, garbage: str) -> None:
    key = host.put_archive()
    (host.shelf.folder / f"{key}.json").write_text(garbage)
    assert choose(host).reason == "missing"


def test_no_java_and_no_spark_are_told(host: PlayedHost) -> None:
    (host.java_home / "release").unlink()
    assert choose(host).reason == "no_java"
    PlayedHost(host.folder / "more").java_home.rename(host.folder / "gone")
    gone = PlayedHost(host.folder / "other")
    (gone.java_home / "bin" / "java").unlink()
    assert choose(gone).reason == "no_java"
    for jar in (gone.submit.parents[1] / "jars").iterdir():
        jar.unlink()
