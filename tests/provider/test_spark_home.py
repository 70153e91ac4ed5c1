"""The version of the Spark that would be submitted to is known before a JVM starts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from airflow_dagsched.class_archives.spark_home import find_spark_home
from airflow_dagsched.errors import LaunchRefused
from airflow_dagsched.provider.submission.spark_home import check_spark, read_version_at
from airflow_dagsched.provider.submission.spark_submit import find_spark_submit


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SPARK_HOME", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.delenv(name, raising=False)


def distribution(folder: Path, version: str) -> Path:
    """folder/bin/spark-submit and folder/jars, as Spark is unpacked; its spark-submit."""
    for name in ("bin/spark-submit", f"jars/spark-core_2.13-{version}.jar"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder / "bin" / "spark-submit"


def test_a_broken_release_is_refused_before_it_starts(tmp_path: Path) -> None:
    submit = distribution(tmp_path, "4.2.0")
    with pytest.raises(
        LaunchRefused, match=r"g: Spark 4.2.0 is refused: .*never ends.*\(pip install pyspark=="
    ) as error:
        check_spark("g", str(submit))
    assert not error.value.passing


def test_a_fit_one_passes(tmp_path: Path) -> None:
    check_spark("g", str(distribution(tmp_path, "4.1.4")))


def test_spark_home_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in Spark's own script, whose spark-submit then is only the door."""
    submit = distribution(tmp_path / "beside", "4.1.4")
    distribution(tmp_path / "named", "4.2.0")
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "named"))
    with pytest.raises(LaunchRefused, match=r"4\.2\.0"):
        check_spark("g", str(submit))


def test_the_installed_pyspark_is_told_by_its_jars() -> None:
    """The spark-submit beside this Python runs this Python's PySpark."""
    submit = Path(sys.executable).with_name("spark-submit")
    assert read_version_at(find_spark_home(submit)) is not None
    check_spark("g", find_spark_submit("g"))


def test_what_cannot_be_told_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another Python's PySpark, or a folder without jars: the driver program asks the running Spark."""
    check_spark("g", str(tmp_path / "bin" / "spark-submit"))
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", "/elsewhere/python")
    assert find_spark_home(Path(sys.executable).with_name("spark-submit")) is None
