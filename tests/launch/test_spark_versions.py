"""Which Spark may run steps."""

from __future__ import annotations

import pytest

from airflow_dagsched.launch.managers.spark_versions import FIT, find_jar_version, judge_version


@pytest.mark.parametrize("version", ["4.0.0", "4.1.4", FIT, "4.3.0", "4.3.0-preview1", "4.10.2", "main", ""])
def test_versions_that_may_run(version: str) -> None:
    """What is no number is nobody's guess: it runs."""
    assert judge_version(version) is None


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("4.2.0", "Python function that reads kept rows never ends"),
        ("4.2.0-vendor-3", "Python function that reads kept rows never ends"),
        ("3.5.9", "not supported: steps run on 4.0 or newer, below 5"),
        ("5.0.0", "not supported: steps run on 4.0 or newer, below 5"),
    ],
)
def test_versions_that_may_not(version: str, words: str) -> None:
    """The reason says what was seen, the remedy what to install."""
    unfit = judge_version(version)
    assert unfit is not None
    assert f"Spark {version} " in unfit.reason
    assert words in unfit.reason
    assert f"pip install pyspark=={FIT}" in str(unfit)


def test_the_version_that_a_refusal_names_is_fit() -> None:
    assert judge_version(FIT) is None


@pytest.mark.parametrize(
    ("names", "version"),
    [
        (["py4j-0.10.jar", "spark-core_2.13-4.2.0.jar", "spark-sql_2.13-4.2.0.jar"], "4.2.0"),
        (["spark-core_2.13-4.3.0-SNAPSHOT.jar"], "4.3.0-SNAPSHOT"),
        (["spark-core_2.13-4.2.0.jar", "spark-core_2.13-4.2.1.jar"], None),
        (["spark-sql_2.13-4.2.0.jar"], None),
        ([], None),
    ],
)
def test_version_by_the_jars(names: list[str], version: str | None) -> None:
    """Two of them are an installation that nobody can tell the version of."""
    assert find_jar_version(names) == version
