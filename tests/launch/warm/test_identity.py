"""What must be equal for a run to go on in an application, and what need not be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_dagsched.launch.warm.identity import Start, Wanted, describe_wanted

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


def wanted(**fields: object) -> Wanted:
    return describe_wanted(replace(START, **fields), CODE)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("field", "other"),
    [
        ("command", ("spark-submit", "--master", "yarn")),
        ("settings", {**START.settings, "spark.shop.key": "1"}),
        ("settings", {**START.settings, "spark.driver.extraClassPath": "/mine.jar"}),
        ("settings", {**START.settings, "spark.driver.defaultJavaOptions": "-Xss8m"}),
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
        ("environment", {**START.environment, "AIRFLOW_CTX_DAG_RUN_ID": "two", "DAGSCHED_NONCE": "m"}),
    ],
)
def test_what_is_a_run_s_own_does_not_count(field: str, other: object) -> None:
    assert wanted().fits(wanted(**{field: other}))


@pytest.mark.parametrize(
    ("size", "less", "more"),
    [
        ("spark.driver.memory", "1g", "1025m"),
        ("spark.executor.memory", "512m", "2g"),
        ("spark.executor.memoryOverhead", "384m", "1g"),
        ("spark.executor.instances", "2", "10"),
        ("spark.cores.max", "4", "8"),
    ],
)
def test_a_larger_one_serves_and_a_smaller_one_does_not(size: str, less: str, more: str) -> None:
    smaller, larger = (wanted(settings={**START.settings, size: value}) for value in (less, more))
    assert smaller.fits(larger)
    assert not larger.fits(smaller)


def test_a_size_that_is_not_named_is_spark_s_own() -> None:
    named = wanted(settings={**START.settings, "spark.executor.memory": "512m"})
    assert not named.fits(wanted())
    assert not wanted().fits(named)


def test_executors_of_more_cores_are_others() -> None:
    """Their memory is shared by more tasks."""
    one, other = (wanted(settings={**START.settings, "spark.executor.cores": cores}) for cores in ("1", "2"))
    assert not one.fits(other)


def test_code_is_told_apart_from_the_rest() -> None:
    """Order says nothing."""
    files = (("/dags/a.py", 10, 1), ("/dags/b.py", 10, 1))
    one, other = describe_wanted(START, files), describe_wanted(START, reversed(files))
    assert one == other
    changed = describe_wanted(START, (("/dags/a.py", 10, 2), files[1]))
    assert changed.key == one.key
    assert changed.code != one.code
