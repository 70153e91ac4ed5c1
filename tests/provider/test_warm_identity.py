"""A warm application is found again by a launch that has an archive of classes, though it was started without."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest
from airflow.sdk.exceptions import AirflowException

from airflow_dagsched.launch.warm.about import About, read_about
from airflow_dagsched.launch.warm.terms import Terms
from airflow_dagsched.provider.submission.spark_submit import FollowedSubmit
from airflow_dagsched.provider.warm.offer import Offer
from tests.class_archives.hosts import SIGNED, PlayedHost, make_jar

WITHIN_S = 60.0


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlayedHost:
    """With settings of the site in Spark's conf folder, and a signed jar."""
    found = PlayedHost(tmp_path)
    make_jar(tmp_path / "spark" / "jars" / "janino-3.1.jar", **SIGNED)
    found.put_conf(spark_defaults="spark.driver.memory 2g\nspark.ui.retainedJobs 7\n")
    (found.folder / "cache" / "warm").mkdir(mode=0o700)
    for name in ("SPARK_HOME", "SPARK_CONF_DIR", "SPARK_DIST_CLASSPATH", "SPARK_SUBMIT_OPTS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("JAVA_HOME", str(found.java_home))
    monkeypatch.setenv("AIRFLOW__DAGSCHED__CLASS_ARCHIVE", "auto")
    monkeypatch.setenv("AIRFLOW__DAGSCHED__CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "local[1]"}))
    return found


def make_hook(host: PlayedHost) -> FollowedSubmit:
    conf = {"spark.driver.extraClassPath": str(host.folder / "spark" / "jars" / "core.jar")}
    return FollowedSubmit(spark_binary=str(host.submit), conf=conf, application_args=["manifest"])


def start_application(host: PlayedHost) -> tuple[About, str]:
    """What the application is that a launch starts, and what its spark-submit is told; it ends before it serves."""
    hook = make_hook(host)
    hook.offer = Offer(Terms(60.0, 5), host.folder / "cache", "dag.flow", "spark_default", "pool", "queue", ())
    with pytest.raises(AirflowException):
        hook.submit("driver.py")
    (folder,) = (host.folder / "cache" / "warm").iterdir()
    about = read_about(folder)
    assert about is not None
    shutil.rmtree(folder)
    (told,) = host.told
    return about, told


def make_archive(host: PlayedHost) -> None:
    """As another run leaves one."""
    make_hook(host).submit("driver.py")
    until = time.monotonic() + WITHIN_S
    while not list(host.shelf.list_notes()):
        assert time.monotonic() < until
        time.sleep(0.05)
    assert host.told


def test_an_archive_makes_no_other_application(host: PlayedHost) -> None:
    """Its options, its jar, and a conf folder that comes behind the jars."""
    without, told = start_application(host)
    assert "SharedArchiveFile" not in told
    make_archive(host)
    with_archive, told = start_application(host)
    assert "SharedArchiveFile" in told
    assert f"core.jar:{host.shelf.folder}" in told
    assert f"SPARK_CONF_DIR={host.shelf.no_folder}" in told
    assert with_archive.wanted == without.wanted


def test_settings_of_the_site_that_change_are_another_application(host: PlayedHost) -> None:
    before, _ = start_application(host)
    host.put_conf(spark_defaults="spark.driver.memory 3g\nspark.ui.retainedJobs 77\n")
    after, _ = start_application(host)
    assert after.wanted.key == before.wanted.key
    assert after.wanted.code != before.wanted.code
