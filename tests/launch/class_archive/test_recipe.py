"""What Java is told of archives."""

from __future__ import annotations

import pytest

from airflow_dagsched.launch.class_archive.recipe import choose_kind, join_options, list_using_options, names_archive
from airflow_dagsched.launch.class_archive.settings import give_driver, give_executors

DRIVER, EXECUTOR = "spark.driver.defaultJavaOptions", "spark.executor.defaultJavaOptions"


@pytest.mark.parametrize(
    ("version", "kind"), [(11, None), (13, "dynamic"), (17, "dynamic"), (24, "dynamic"), (25, "aot")]
)
def test_a_java_has_one_kind(version: int, kind: str | None) -> None:
    assert choose_kind(version) == kind


@pytest.mark.parametrize(
    "options",
    [
        "-Dkey=value -XX:SharedArchiveFile=/mine.jsa",
        "-XX:AOTCache=/mine.aot",
        "-XX:AOTMode=off",
        "-Xshare:off",
        "-XX:+AutoCreateSharedArchive",
        "-XX:ArchiveClassesAtExit=/mine.jsa",
    ],
)
def test_the_author_may_say_which_archive_there_is(options: str) -> None:
    assert names_archive(["", options])


def test_other_options_say_nothing_of_archives() -> None:
    assert not names_archive(["-XX:TieredStopAtLevel=1 -Dfile=/a/SharedArchiveFile -Xlog:gc", ""])


def test_a_driver_gets_it_after_its_other_options() -> None:
    """Quietly: on standard output are the driver's events."""
    given = give_driver({DRIVER: "-XX:TieredStopAtLevel=1", "spark.a": "b"}, "dynamic", "/c/k.jsa")
    quiet = "-Xlog:cds=off -Xlog:cds+dynamic=off"
    assert given == {DRIVER: f"-XX:TieredStopAtLevel=1 -XX:SharedArchiveFile=/c/k.jsa {quiet}", "spark.a": "b"}


def test_a_report_of_a_crash_has_the_very_name_that_is_given() -> None:
    """Java puts something else in the place of a percent sign with a letter."""
    given = give_driver({}, "dynamic", "/50%p/k.jsa", report="/50%p/hs_err.log")
    assert given[DRIVER].endswith(" -XX:ErrorFile=/50%%p/hs_err.log")


def test_the_jar_that_goes_with_it_is_behind_the_author_s() -> None:
    path = "spark.driver.extraClassPath"
    assert give_driver({path: "/mine.jar"}, "dynamic", "/c/k.jsa", "/c/k.jar")[path] == "/mine.jar:/c/k.jar"
    assert path not in give_driver({}, "dynamic", "/c/k.jsa")
    assert give_executors({}, "dynamic", "/c/k.jsa", "/c/k.jar")["spark.executor.extraClassPath"] == "/c/k.jar"


def test_executors_start_where_the_file_or_the_option_is_unknown() -> None:
    given = give_executors({}, "aot", "/c/k.aot")[EXECUTOR].split()
    assert given[:2] == ["-XX:+IgnoreUnrecognizedVMOptions", "-XX:AOTCache=/c/k.aot"]
    assert "-Xlog:aot=off" not in given, "older Javas refuse to start with a name that they don't know"


def test_an_archive_that_the_author_names_for_executors_stays_the_only_one() -> None:
    said = {"spark.executor.extraJavaOptions": "-XX:SharedArchiveFile=/mine.jsa"}
    assert give_executors(said, "dynamic", "/c/k.jsa") == said


def test_a_blank_in_a_path_is_quoted() -> None:
    """As Spark splits options."""
    assert join_options("-Da=b", list_using_options("dynamic", "/my cache/k.jsa")[:1]) == (
        "-Da=b '-XX:SharedArchiveFile=/my cache/k.jsa'"
    )
