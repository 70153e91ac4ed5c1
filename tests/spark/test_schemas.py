"""A record whose schema cannot be read stands for rows that are made again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql.types import LongType, StructField, StructType

from airflow_dagsched.spark.files.store import LocalStore
from airflow_dagsched.spark.outputs.commits import CommitLog, Committed, OutputGone
from airflow_dagsched.spark.outputs.datasets import Datasets
from airflow_dagsched.spark.outputs.leases import Keeper
from airflow_dagsched.spark.outputs.schemas import has_schema, read_schema
from tests.garbled import TEXTS

SCHEMA = StructType([StructField("x", LongType())])
COMMITTED = Committed("o", "i", 1, "fp", "r", "/tmp/x", None, 3, 4, SCHEMA.json(), (), "parquet")


def test_a_schema_is_read() -> None:
    assert read_schema(COMMITTED) == SCHEMA


@pytest.mark.parametrize(
    "schema",
    [
        *(text.decode(errors="replace") for text in TEXTS),
        '{"type":"struct"}',
        '{"type":"struct","fields":[5]}',
        '"long"',
    ],
)
def test_a_dataset_whose_schema_cannot_be_read_is_not_there(tmp_path: Path, schema: str) -> None:
    store = LocalStore()
    log = CommitLog(store, str(tmp_path))
    datasets = Datasets(store, str(tmp_path), log, Keeper(log, run_id="r"))
    (tmp_path / "part").write_text("rows")
    whole = replace(COMMITTED, path=str(tmp_path), files=(("part", 4),))
    assert datasets.holds(whole)
    broken = replace(whole, schema=schema)
    assert not has_schema(broken)
    assert not datasets.holds(broken)
    with pytest.raises(OutputGone, match="no schema that can be read"):
        read_schema(broken)
