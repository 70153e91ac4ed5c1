"""What a launch's spark-submit has to do with archives of classes: a played Spark, all else as it is."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pytest
from airflow.sdk.exceptions import AirflowException

from airflow_dagsched.cli import main
from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.launch.streams.private_folder import PROPERTIES, StartCommand, write_private_folder
from airflow_dagsched.launch.warm.terms import Terms
from airflow_dagsched.provider.info import get_provider_info
from airflow_dagsched.provider.spec.configuration import has_class_archives, read_cache_dir, read_executor_archive
from airflow_dagsched.provider.submission import class_archive
from airflow_dagsched.provider.submission.spark_submit import ArchiveBroken, FollowedSubmit
from airflow_dagsched.provider.submission.started_settings import make_missing_archive, settle_command
from airflow_dagsched.provider.warm.offer import Offer
from tests.class_archives.hosts import KILLED, SIGNED, TOLD, PlayedHost, make_jar

LOGGER = "airflow_dagsched.provider.submission.class_archive"
DRIVER = "spark.driver.defaultJavaOptions"
WITHIN_S = 60.0


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlayedHost:
    found = PlayedHost(tmp_path)
    configure(monkeypatch, class_archive="auto", cache_dir=str(tmp_path / "cache"))
    monkeypatch.setenv("JAVA_HOME", str(found.java_home))
    for name in ("SPARK_HOME", "SPARK_CONF_DIR", "SPARK_DIST_CLASSPATH", "SPARK_SUBMIT_OPTS"):
        monkeypatch.delenv(name, raising=False)
    connect(monkeypatch, "local[1]")
    return found


def connect(monkeypatch: pytest.MonkeyPatch, master: str) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": master}))


def configure(monkeypatch: pytest.MonkeyPatch, **settings: str) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(f"AIRFLOW__DAGSCHED__{name.upper()}", value)


def submit(host: PlayedHost, *arguments: str, **conf: str) -> str:
    """What the spark-submit was told."""
    hook = FollowedSubmit(spark_binary=str(host.submit), conf=conf, application_args=list(arguments))
    hook.submit("driver.py")
    (told,) = host.told
    return told


def wait_for(what: Callable[[], bool]) -> None:
    until = time.monotonic() + WITHIN_S
    while not what():
        assert time.monotonic() < until
        time.sleep(0.05)


def is_idle(host: PlayedHost) -> bool:
    """Whether nobody makes an archive any more."""
    with host.shelf.hold_lock() as is_mine:
        return is_mine


def test_the_first_run_has_none_and_the_next_one_what_it_left(
    host: PlayedHost, caplog: pytest.LogCaptureFixture
) -> None:
    """Made in the background, by a training and a proof, once."""
    with caplog.at_level(logging.INFO, LOGGER):
        assert "SharedArchiveFile" not in submit(host)
        wait_for(lambda: bool(list(host.shelf.list_notes())) and is_idle(host))
        assert sorted("training/main.py" in told or "-Xshare:on" in told for told in host.told) == [False, True]
        told = submit(host, **{DRIVER: "-Da=b"})
    (file,) = host.shelf.folder.glob("*.jsa")
    assert f"{DRIVER}=-Da=b -XX:SharedArchiveFile={file} -Xlog:cds=off" in told
    assert host.told == [], "nothing more was made"
    assert [each.getMessage() for each in caplog.records if each.name == LOGGER] == []


def test_a_run_that_fails_has_none_made(host: PlayedHost) -> None:
    with pytest.raises(AirflowException):
        submit(host, "fail")
    assert len(host.told) == 1
    assert not host.shelf.folder.exists()


@pytest.mark.usefixtures("host")
def test_what_can_t_be_made_is_not_tried_at_each_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    host = PlayedHost(tmp_path / "small", archive_bytes=100)
    configure(monkeypatch, cache_dir=str(host.folder / "cache"))
    monkeypatch.setenv("JAVA_HOME", str(host.java_home))
    submit(host)
    wait_for(lambda: bool(list(host.shelf.folder.glob("*.failed.json"))) and is_idle(host))
    assert len(host.told) == 1, "the training, and no proof"
    with caplog.at_level(logging.INFO, LOGGER):
        submit(host)
    (line,) = (each.getMessage() for each in caplog.records if each.name == LOGGER)
    assert "Java wrote no archive" in line
    assert sorted(path.name.partition(".")[2] for path in host.shelf.folder.iterdir()) == ["", "failed.json"]


def test_where_nothing_can_be_written_no_maker_is_started(
    host: PlayedHost, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As in a home that is read-only: the log says so."""
    configure(monkeypatch, cache_dir="/proc/self/cache")
    with caplog.at_level(logging.INFO, LOGGER), patch.object(class_archive, "start_making") as start:
        assert "SharedArchiveFile" not in submit(host)
    start.assert_not_called()
    (line,) = (each.getMessage() for each in caplog.records if each.name == LOGGER)
    assert line.startswith("class archive: none is made: /proc/self/cache")


def test_off_is_off(host: PlayedHost, monkeypatch: pytest.MonkeyPatch) -> None:
    host.put_archive()
    configure(monkeypatch, class_archive="off")
    assert "SharedArchiveFile" not in submit(host)


def test_the_author_s_word_is_left_alone(host: PlayedHost) -> None:
    host.put_archive()
    mine = "-XX:SharedArchiveFile=/mine.jsa"
    assert f"spark.driver.extraJavaOptions={mine}\n" in submit(host, **{"spark.driver.extraJavaOptions": mine})
    assert "cache/class-archives" not in submit(host, **{"spark.driver.extraJavaOptions": mine})


def test_files_of_the_conf_folder_come_behind_the_jars(host: PlayedHost) -> None:
    """With the site's settings in the submit's own file: the plan's and the author's count before them."""
    host.put_conf(spark_defaults=f"{DRIVER} -Dsite=1\nspark.shop.site here\nspark.shop.number 1\nhive.x 1\n")
    submit(host)
    wait_for(lambda: bool(list(host.shelf.list_notes())) and is_idle(host))
    assert all(f"SPARK_CONF_DIR={host.shelf.no_folder}" in told for told in host.told)
    told = submit(host, **{"spark.shop.number": "2"})
    assert f"{DRIVER}=-Dsite=1 -XX:SharedArchiveFile=" in told
    assert f"SPARK_CONF_DIR={host.shelf.no_folder}\n" in told
    assert "spark.shop.site=here\n" in told
    assert "spark.shop.number=2\n" in told
    assert "hive.x" not in told


def test_a_launch_has_what_the_command_made(host: PlayedHost, capsys: pytest.CaptureFixture[str]) -> None:
    """With the site's class path, which is the archive's, too."""
    jars = [make_jar(host.folder / name, **{"shop/A.class": name}) for name in ("site.jar", "own.jar")]
    host.put_conf(spark_defaults=f"spark.driver.extraClassPath {jars[0].path}\n")
    command = ("--cache-dir", str(host.folder / "cache"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{host.submit.parent}:/usr/bin:/bin")
        assert main(["class-archive", "make", *command]) == 0
        assert main(["class-archive", "show", *command]) == 0
        (site,) = host.shelf.list_keys()
        assert main(["class-archive", "make", *command, "--extra-class-path", jars[1].path]) == 0
    assert capsys.readouterr().out.count(f"the driver has it: {host.shelf.locate(site)}\n") == 2
    assert len(host.told) == 4, "two were trained and proven"
    (own,) = {*host.shelf.list_keys()} - {site}
    assert f"-XX:SharedArchiveFile={host.shelf.locate(site)} " in submit(host)
    told = submit(host, **{"spark.driver.extraClassPath": jars[1].path})
    assert f"-XX:SharedArchiveFile={host.shelf.locate(own)} " in told


def test_executors_have_the_file_that_is_named(host: PlayedHost, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is theirs, not the driver's; and none where the driver is the executor."""
    host.put_archive()
    configure(monkeypatch, executor_class_archive="/opt/spark.jsa")
    assert "spark.executor" not in submit(host)
    connect(monkeypatch, "spark://master:7077")
    told = submit(host, **{"spark.executor.defaultJavaOptions": "-Da=b"})
    assert "spark.executor.defaultJavaOptions=-Da=b -XX:+IgnoreUnrecognizedVMOptions" in told
    assert "-XX:SharedArchiveFile=/opt/spark.jsa" in told


def test_executors_of_this_host_have_the_driver_s(host: PlayedHost, monkeypatch: pytest.MonkeyPatch) -> None:
    host.put_archive()
    connect(monkeypatch, "local-cluster[2,1,1024]")
    assert submit(host).count(".jsa ") == 2


def test_spark_s_signed_compiler_has_a_copy_before_it(host: PlayedHost) -> None:
    """Behind its author's own classes; the training, the proof and each later driver know of it."""
    jars = host.submit.parents[1] / "jars"
    make_jar(jars / "janino-3.1.jar", **SIGNED)
    conf = {"spark.driver.extraClassPath": str(jars / "core.jar")}
    submit(host, **conf)
    wait_for(lambda: bool(list(host.shelf.list_notes())) and is_idle(host))
    (jar,) = host.shelf.folder.glob("*.jar")
    mine = f"spark.driver.extraClassPath={jars / 'core.jar'}:{jar}\n"
    assert [mine in told for told in host.told] == [True, True]
    assert mine in submit(host, **conf)
    jar.unlink()
    assert "SharedArchiveFile" not in submit(host, **conf), "it is not as it was proven"
    wait_for(lambda: jar.exists() and is_idle(host))


def test_a_warm_application_that_crashes_over_it_is_started_again_without(host: PlayedHost) -> None:
    """Nobody serves the run here: that is said as of any submit that fails."""
    host.put_archive()
    (host.folder / "crash").write_text(f"{TOLD}; {KILLED}")
    (host.folder / "cache" / "warm").mkdir(mode=0o700)
    hook = FollowedSubmit(spark_binary=str(host.submit), application_args=["manifest"])
    hook.offer = Offer(Terms(60.0, 5), host.folder / "cache", "dag.flow", "spark_default", "pool", "queue", ())
    with pytest.raises(ArchiveBroken):
        hook.submit("driver.py")
    assert list(host.shelf.list_notes()) == []
    with pytest.raises(AirflowException):
        hook.submit("driver.py")
    assert sorted("SharedArchiveFile" in told for told in host.told) == [False, True]


def test_reports_of_crashes_go_to_one_file_beside_the_archive(host: PlayedHost) -> None:
    """Unless there is none, or somebody says where they go."""
    mine = "-XX:ErrorFile=/mine/hs_err_%p.log"
    assert "ErrorFile" not in submit(host)
    wait_for(lambda: bool(list(host.shelf.list_notes())) and is_idle(host))
    assert not any("ErrorFile" in told for told in host.told)
    assert f" -XX:ErrorFile={host.shelf.folder}/hs_err.log\n" in submit(host)
    for name in (DRIVER, "spark.driver.extraJavaOptions"):
        told = submit(host, **{name: mine})
        assert told.count("ErrorFile") == 1
        assert "SharedArchiveFile" in told
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", mine)
        assert "ErrorFile" not in submit(host)


@pytest.mark.parametrize(
    ("end", "is_java_s"),
    [
        (KILLED, True),  # spark-submit has become Java
        (f"{TOLD}; exit 134", True),  # a script of the site's is around it
        ("exit 139", False),  # Java tells so what its Python died of
        (f"{TOLD}; exit 1", False),  # somebody else's
        ("kill -KILL $$", False),
    ],
)
def test_only_java_s_own_crash_is_held_against_its_archive(host: PlayedHost, end: str, is_java_s: bool) -> None:
    key = host.put_archive()
    (host.folder / "crash").write_text(end)
    with pytest.raises(AirflowException) as caught:
        submit(host)
    assert isinstance(caught.value, ArchiveBroken) == is_java_s
    assert host.shelf.locate(key).exists() != is_java_s
    assert (host.shelf.read_failure(key) is not None) == is_java_s


def make_private(host: PlayedHost) -> tuple[Path, StartCommand]:
    """What the driver of a stream is started from."""
    private = host.folder / "epoch" / "private"
    argv = (str(host.submit), "--master", "local[1]", "--properties-file", str(private / PROPERTIES), "main.py")
    command = StartCommand(argv, str(host.folder))
    write_private_folder(private, b"", "spark.shop.key=value\n", command)
    return private, command


def test_a_stream_has_the_archive_made_that_its_driver_lacks(host: PlayedHost) -> None:
    private, command = make_private(host)
    for _ in range(2):
        make_missing_archive(private)
        wait_for(lambda: bool(list(host.shelf.list_notes())) and is_idle(host))
    (note,) = host.shelf.list_notes()
    assert "SharedArchiveFile" in Path(settle_command(private, command).argv[4]).read_text()
    assert note is not None


def test_a_stream_s_driver_has_what_is_there_when_it_starts(host: PlayedHost) -> None:
    """In a file of settings of its own: the epoch's stays as it was made."""
    private, command = make_private(host)
    for has_archive in (False, True):
        if has_archive:
            host.put_archive()
        started = Path(settle_command(private, command).argv[4])
        assert ("SharedArchiveFile" in started.read_text()) == has_archive
        assert "spark.shop.key=value" in started.read_text()
    assert (private / PROPERTIES).read_text() == "spark.shop.key=value\n"
    assert settle_command(private, command, has_archives=False) == command


def test_what_is_no_spark_submit_is_started_as_it_is(tmp_path: Path) -> None:
    command = StartCommand(("python", "played.py"), str(tmp_path))
    assert settle_command(tmp_path, command) == command


@pytest.mark.parametrize(
    ("name", "value", "read"),
    [
        ("class_archive", "maybe", has_class_archives),
        ("cache_dir", "relative/path", read_cache_dir),
        ("executor_class_archive", "x.jsa", read_executor_archive),
    ],
)
def test_what_is_no_such_setting_is_refused_in_a_line(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, read: Callable[[], object]
) -> None:
    monkeypatch.setenv(f"AIRFLOW__DAGSCHED__{name.upper()}", value)
    with pytest.raises(InvalidInput, match=rf"\[dagsched\] {name}: must be"):
        read()


def test_the_cache_folder_is_the_user_s(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("AIRFLOW__DAGSCHED__CACHE_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert read_cache_dir() == tmp_path / ".cache" / "dagsched"
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/cache/me")
    assert read_cache_dir() == Path("/var/cache/me/dagsched")


def test_archives_are_on_where_nobody_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRFLOW__DAGSCHED__CLASS_ARCHIVE")
    assert has_class_archives()
    assert get_provider_info()["config"]["dagsched"]["options"]["class_archive"]["default"] == "auto"
