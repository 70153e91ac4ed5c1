"""What must be equal for a run to go on in an application, and what need not be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_dagsched.launch.warm.identity import Start, Wanted, describe_wanted, read_mib

START = Start(
    command=("spark-submit", "--master", "local[2]"),
    settings={"spark.driver.memory": "1g", "spark.app.name": "a.b", "spark.driver.defaultJavaOptions": "-Xss4m"},
    environment={"PATH": "/bin", "AIRFLOW_CTX_DAG_RUN_ID": "one", "DAGSCHED_NONCE": "n"},
    connection="spark_default",
    pool="default_pool",
    queue="default",
    folder="/home/airflow",
    user=1000,
    python="/bin/python 3.11",
)
CODE = (("/dags/a.py", 10, 1),)
ARCHIVE = "-XX:SharedArchiveFile=/c.jsa -Xlog:cds=off"
OF_EXECUTORS = "-XX:+IgnoreUnrecognizedVMOptions -XX:SharedArchiveFile=/c.jsa -Xlog:cds=off -Xlog:cds+dynamic=off"


def wanted(**fields: object) -> Wanted:
    return describe_wanted(replace(START, **fields), CODE)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("field", "other"),
    [
        ("command", ("spark-submit", "--master", "yarn")),
        ("settings", {**START.settings, "spark.shop.key": "1"}),
        ("environment", {**START.environment, "PATH": "/usr/bin"}),
        ("environment", {**START.environment, "HADOOP_CONF_DIR": "/etc"}),
        ("connection", "other"),
        ("pool", "other"),
        ("queue", "other"),
        ("folder", "/"),
        ("user", 0),
        ("python", "/bin/python 3.12"),
    ],
)
def test_what_differs_is_another_application(field: str, other: object) -> None:
    assert not wanted().fits(wanted(**{field: other}))


@pytest.mark.parametrize(
    ("field", "other"),
    [
        ("settings", {**START.settings, "spark.app.name": "c.d"}),
        ("settings", {**START.settings, "spark.driver.defaultJavaOptions": f"-Xss4m {ARCHIVE}"}),
        ("settings", {**START.settings, "spark.executor.defaultJavaOptions": OF_EXECUTORS}),
        ("environment", {**START.environment, "AIRFLOW_CTX_DAG_RUN_ID": "two", "DAGSCHED_NONCE": "m"}),
    ],
)  # fmt: skip
def test_what_is_a_run_s_own_does_not_count(field: str, other: object) -> None:
    assert wanted().fits(wanted(**{field: other}))


def test_a_larger_one_serves_and_a_smaller_one_does_not() -> None:
    larger = wanted(settings={**START.settings, "spark.driver.memory": "1025m"})
    assert wanted().fits(larger)
    assert not larger.fits(wanted())


def test_code_is_told_apart_from_the_rest() -> None:
    """Order says nothing."""
    files = (("/dags/a.py", 10, 1), ("/dags/b.py", 10, 1))
    one, other = describe_wanted(START, files), describe_wanted(START, reversed(files))
    assert one == other
    changed = describe_wanted(START, (("/dags/a.py", 10, 2), files[1]))
    assert changed.key == one.key
    assert changed.code != one.code


@pytest.mark.parametrize(
    ("told", "mib"),
    [
        ("1g", 1024.0), ("700m", 700.0), ("700M", 700.0), ("512", 512.0), ("2048k", 2.0), ("1gb", 1024.0),
        ("", None), ("x", None),
    ],
)  # fmt: skip
def test_sizes_are_read_as_spark_reads_them(told: str, mib: float | None) -> None:
    assert read_mib(told) == mib
