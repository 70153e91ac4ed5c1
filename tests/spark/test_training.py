"""The application that an archive of classes is made by: all it asks Spark for is asked for real."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_dagsched.spark.training.program import PARTS, QUERIES, create_views, list_queries

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_each_part_runs(spark: SparkSession, tmp_path: Path, part: Callable[[SparkSession, Path], None]) -> None:
    part(spark.newSession(), tmp_path / "rows")
    assert any(file.is_file() for file in (tmp_path / "rows").rglob("*"))


def test_each_query_has_an_answer(spark: SparkSession) -> None:
    """None of them is passed over for a mistake in it."""
    session = spark.newSession()
    create_views(session)
    assert len(list_queries()) > len(QUERIES)
    assert all(session.sql(query).columns for query in list_queries())
