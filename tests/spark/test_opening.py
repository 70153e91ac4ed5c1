"""What a session of ours does not do that others do."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.java_gateway import JavaPackage, java_import  # type: ignore[import-untyped]
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from airflow_dagsched.spark.session.opening import leave_out_checksums, look_up_names_once
from tests.spark.messages import count_messages

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


def test_names_are_looked_up_once(spark: SparkSession):
    """Which class a name is, and whether it has a method: PySpark asks with each call."""
    look_up_names_once()
    look_up_names_once()
    first = sf.col("id")
    with count_messages(spark) as sent:
        second = sf.col("id") + 1
    assert [command for command in sent if command.startswith("r")] == []
    assert spark.range(3).select(first + second).collect() == [(1,), (3,), (5,)]


def test_a_name_that_is_imported_later_is_found(spark: SparkSession):
    """What was no class yet is asked for again."""
    look_up_names_once()
    jvm: Any = spark._jvm
    assert isinstance(jvm.ArrayDeque, JavaPackage)
    java_import(jvm, "java.util.ArrayDeque")
    assert jvm.ArrayDeque().size() == 0


CODE = """
import sys
from pyspark.sql import SparkSession
from airflow_dagsched.spark.session.observed import count_all
from airflow_dagsched.spark.session.opening import start_spark
spark = start_spark(["hush"], {"spark.ui.enabled": "false", "spark.master": "local[1]"})
assert spark.range(3).selectExpr("id + 1 as id").agg({"id": "sum"}).first()[0] == 6
counted = count_all(spark.range(3))
counted.df.write.format("noop").mode("overwrite").save()
assert counted.read() == 3
print(*sorted({"numpy", "pandas", "pyspark.testing"} & {*sys.modules}))
import numpy
print(spark._jvm.java.lang.String.valueOf(numpy.int64(7)), spark._jvm.java.util.Arrays.toString(numpy.array([1, 2])))
spark.stop()
"""


def test_numpy_is_looked_for_where_it_is(tmp_path: Path):
    """An application loads neither it nor pandas of itself; what an author makes with it goes to Java as ever."""
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.splitlines() == ["", "7 [1, 2]"]


WITH_ML = """
from airflow_dagsched.spark.session.opening import start_spark
{before}
spark = start_spark(settings={{"spark.ui.enabled": "false", "spark.master": "local[1]", **{settings}}})
registry = getattr(getattr(spark._jvm, "org.apache.spark.sql.catalyst.analysis.FunctionRegistry$"), "MODULE$")
print("vector_to_array" in str(registry.internal().listFunction().mkString(" ")))
from pyspark.ml.functions import array_to_vector, vector_to_array
there = spark.createDataFrame([([1.0, 2.0],)], "a array<double>").select(vector_to_array(array_to_vector("a")))
print(there.first()[0])
spark.stop()
"""


@pytest.mark.parametrize(
    ("before", "settings", "is_there"),
    [
        ("", {}, "False"),
        ("import pyspark.ml", {}, "True"),
        ("", {"spark.driver.extraClassPath": "/nowhere.jar"}, "True"),
        ("", {"spark.driver.extraClassPath": f"/cache/class-archives/{'0a' * 12}.jar"}, "False"),
        ("", {"spark.sql.extensions": "org.apache.spark.sql.ml.InternalFunctionRegistration"}, "True"),
    ],
)
def test_functions_of_ml_are_registered_as_it_is_imported(tmp_path: Path, before: str, settings: dict, is_there: str):
    """They cost each application half a second; an author who may ask for them without that has them at once."""
    code = WITH_ML.format(before=before, settings=settings)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.splitlines() == [is_there, "[1.0, 2.0]"]
