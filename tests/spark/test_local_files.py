"""What Spark writes into folders of its own machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_dagsched.spark.session.local_files import leave_out_checksums

pytestmark = pytest.mark.spark


@pytest.fixture
def light(spark: SparkSession) -> Iterator[SparkSession]:
    """The tests' session, which goes on with checksums."""
    leave_out_checksums(spark)
    yield spark
    local = spark._jvm.org.apache.hadoop.fs.FileSystem.getLocal(spark._jsc.hadoopConfiguration())
    local.setWriteChecksum(True)


def list_names(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


def test_no_checksum_is_written(light: SparkSession, tmp_path: Path):
    rows = light.range(4).selectExpr("id", "id % 2 as half")
    rows.write.partitionBy("half").parquet(str(tmp_path / "rows"))
    assert [name for name in list_names(tmp_path) if name.endswith(".crc")] == []
    assert light.read.parquet(str(tmp_path / "rows")).count() == 4


def test_a_checksum_of_what_was_there_goes_with_it(light: SparkSession, tmp_path: Path):
    """Else Hadoop would find the new file damaged."""
    (tmp_path / "file").write_text("before")
    (tmp_path / ".file.crc").write_bytes(b"crc\0\0\0\2\0\0\0\0\0")
    hadoop = light._jvm.org.apache.hadoop.fs
    local = hadoop.FileSystem.getLocal(light._jsc.hadoopConfiguration())
    local.create(hadoop.Path(str(tmp_path / "file")), True).close()
    assert list_names(tmp_path) == {"file"}
