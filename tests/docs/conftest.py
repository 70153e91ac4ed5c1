"""One local Spark for the page's examples."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """``local[2]``. Never stopped: a process has one, which ends with it."""
    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}
    return SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
