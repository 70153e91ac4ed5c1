"""Whether a driver may have an archive: each reason why not, and what makes a key another."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from airflow_dagsched.launch.class_archive.host import Host, Jar, compute_key, read_java_version
from airflow_dagsched.launch.class_archive.verdict import (
    SENTENCES,
    Possible,
    Reason,
    Verdict,
    find_author_word,
    judge_host,
)

RELEASE = 'IMPLEMENTOR="Debian"\nJAVA_RUNTIME_VERSION="17.0.15+6"\nJAVA_VERSION="17.0.15"\n'
HOST = Host("/jvm/17/bin/java", RELEASE, "/spark", (Jar("/spark/jars/core.jar", 9, 100),), "/spark/conf")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"release": ""}, "no_java"),
        ({"release": 'JAVA_VERSION="11.0.2"'}, "old_java"),
        ({"release": 'JAVA_VERSION="1.8.0_292"'}, "old_java"),
        ({"jars": ()}, "no_spark"),
        ({"conf_files": ("spark-defaults.conf",)}, "conf_folder"),
        ({"unfit": ("/classes",)}, "class_path"),
    ],
)
def test_why_a_host_has_none(change: dict[str, Any], reason: str) -> None:
    found = judge_host(replace(HOST, **change))
    assert isinstance(found, Verdict)
    assert found.reason == reason
    assert found.kind == ("dynamic" if reason in ("conf_folder", "class_path") else None), "executors may have one"
    assert "{}" not in str(found)


def test_a_host_that_may_have_one() -> None:
    assert judge_host(HOST) == Possible(HOST, "dynamic")


@pytest.mark.parametrize(
    "change",
    [
        {"release": RELEASE.replace("+6", "+7")},
        {"java": "/other/bin/java"},
        {"jars": (Jar("/spark/jars/core.jar", 9, 101),)},
        {"jars": (Jar("/spark/jars/core.jar", 8, 100),)},
        {"jars": (*HOST.jars, Jar("/spark/jars/more.jar", 1, 1))},
        {"conf_folder": "/etc/spark"},
        {"extra": (Jar("/driver.jar", 1, 1),)},
    ],
)
def test_what_java_would_refuse_an_archive_for_gives_another_key(change: dict[str, Any]) -> None:
    assert compute_key(replace(HOST, **change)) != compute_key(HOST)


def test_equal_hosts_have_one_key() -> None:
    assert compute_key(replace(HOST)) == compute_key(HOST)


@pytest.mark.parametrize(("release", "version"), [(RELEASE, 17), ('JAVA_VERSION="25"\n', 25), ("x", None)])
def test_the_version_of_a_java(release: str, version: int | None) -> None:
    assert read_java_version(release) == version


@pytest.mark.parametrize("name", ["JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "SPARK_SUBMIT_OPTS"])
def test_what_the_environment_says_of_archives_counts(name: str) -> None:
    said = find_author_word({}, {name: "-Xshare:off"})
    assert said is not None
    assert said.reason == "author"


def test_every_reason_has_a_sentence() -> None:
    assert all(str(Verdict(reason, "x")) for reason in SENTENCES)


@pytest.mark.parametrize(
    ("reason", "helps"),
    [
        ("unsafe", "; chmod go-w it, or name another folder, [dagsched] cache_dir"),
        ("failed", "; it is tried again in a day, or at once by dagsched class-archive make"),
        ("conf_folder", "nothing in it, or, with a local or standalone master, neither spark-env.sh nor java-opts"),
        ("class_path", "; name the files of its jars instead"),
    ],
)
def test_why_there_is_none_ends_with_what_helps(reason: Reason, helps: str) -> None:
    """In one line, of all that somebody can do something about."""
    told = str(Verdict(reason, "/x"))
    assert told.endswith(helps)
    assert "/x" in told
    assert "\n" not in told
