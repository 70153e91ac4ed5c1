"""Which settings make a changed graph need an application of its own."""

from __future__ import annotations

import pytest

from airflow_dagsched.launch.streams.session_settings import is_of_session


@pytest.mark.parametrize(
    ("name", "is_taken"),
    [
        ("spark.sql.shuffle.partitions", True),
        ("spark.sql.catalog.lake", True),
        ("spark.sql.hive.convertMetastoreOrc", True),
        ("spark.sql.extensions", False),
        ("spark.sql.warehouse.dir", False),
        ("spark.sql.hive.metastore.jars", False),
        ("spark.executor.memory", False),
    ],
)
def test_a_running_application_takes_what_spark_lets_a_session_have(name: str, is_taken: bool):
    assert is_of_session(name) is is_taken
