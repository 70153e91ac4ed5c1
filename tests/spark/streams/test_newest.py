"""How far a query of two sources has read each of them, whichever batches are repeated."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, window

from airflow_dagsched.launch.streams.manifest import SourceSpec
from airflow_dagsched.launch.streams.settings import StreamSettings
from airflow_dagsched.spark.session.sessions import open_session
from airflow_dagsched.spark.streams.checkpoint import list_idle, read_begin
from airflow_dagsched.spark.streams.newest import Newest, read_observed
from airflow_dagsched.spark.streams.sources import SETTINGS, SourceStart, open_source

BEGIN = 1_700_000_000.0
NAMES = ("clicks", "orders")
QUERY = "joined"
ROWS = {
    # Each line is a file; orders are a thousand seconds behind, and end earlier.
    "clicks": ((1, 2), (14.25, 3), (9,), (41.5, 40), (60,)),
    "orders": ((-999, -990.5), (-980,), (-985,)),
}
"""Seconds from ``BEGIN``."""


def test_what_was_read_outlives_the_driver_also_if_a_batch_is_repeated(tmp_path: Path):
    newest = Newest(tmp_path / "queries" / "newest.json")
    assert newest.find_before(0) is None
    newest.add(0, {"a": None, "b": None}, {"a": 3.0, "b": None})
    newest.add(1, {"a": 3.0, "b": None}, {"a": 2.0, "b": 1.0})
    for known in (newest, Newest(tmp_path / "queries" / "newest.json")):
        assert known.find_before(1) == {"a": 3.0, "b": None}
        assert known.find_before(2) == {"a": 3.0, "b": 1.0}
        assert known.find_before(0) is None
        assert known.find_before(3) is None


def test_what_spark_did_not_tell_is_unknown_for_good(tmp_path: Path):
    newest = Newest(tmp_path / "newest.json")
    newest.add(0, {"a": None, "b": None}, {"a": 3.0})
    assert newest.find_before(1) == {"a": 3.0}
    newest.add(1, {"a": 3.0}, {"a": 4.0, "b": 5.0})
    assert newest.find_before(2) == {"a": 4.0}


def write_files(folder: Path) -> None:
    for name, files in ROWS.items():
        (folder / name).mkdir()
        for number, seconds in enumerate(files):
            path = folder / name / f"{number}.json"
            path.write_text("\n".join(json.dumps({"at": BEGIN + each}) for each in seconds))
            # Spark reads files in the order of these.
            os.utime(path, (BEGIN + number, BEGIN + number))


def join(session: SparkSession, folder: Path) -> DataFrame:
    def parse(rows: DataFrame) -> DataFrame:
        return rows.select(col("at").cast("timestamp").alias("ts"))

    def open_one(name: str) -> DataFrame:
        spec = SourceSpec(name, "json", "ts", f"{folder}/{name}", "at double", {"maxFilesPerTrigger": "1"})
        return open_source(session, spec, StreamSettings(10, 5, 1), parse, SourceStart())

    clicks, orders = (open_one(name).select(window("ts", "10 seconds").alias("window")) for name in NAMES)
    return clicks.join(orders, "window")


def find_newest(name: str, offset: Any) -> float | None:
    """The true maximum of the files up to an offset."""
    files = ROWS[name][: 0 if offset is None else offset["logOffset"] + 1]
    return max((BEGIN + each for file in files for each in file), default=None)


@pytest.mark.slow
def test_it_is_the_newest_event_time_of_each_source_whoever_is_killed(spark: SparkSession, tmp_path: Path):
    """Every batch fails once, between what is noted and what Spark commits: the next driver has it."""
    write_files(tmp_path)
    checkpoint, found = tmp_path / "checkpoint", dict[int, Any]()
    session = open_session(spark, {**SETTINGS, "spark.sql.shuffle.partitions": "1"})

    def is_killed() -> bool:
        newest, tried = Newest(tmp_path / "newest.json"), set(found)

        def take(rows: DataFrame, batch: int) -> None:
            rows.write.format("noop").mode("append").save()
            begin = read_begin(checkpoint, batch, NAMES, 5.0, dict.fromkeys(NAMES), newest.find_before)
            idle = dict.fromkeys(list_idle(checkpoint, batch, begin))
            newest.add(batch, begin.newest, {**idle, **read_observed(session, QUERY, NAMES)})
            assert found.setdefault(batch, begin) == begin
            if batch not in tried:
                raise RuntimeError("the driver is gone")

        writer = join(session, tmp_path).writeStream.queryName(QUERY).option("checkpointLocation", str(checkpoint))
        try:
            writer.foreachBatch(take).trigger(availableNow=True).start().awaitTermination()
        except StreamingQueryException as error:
            if "the driver is gone" not in str(error):
                raise
            return True
        return False

    while is_killed():
        pass
    assert len(found) >= max(len(files) for files in ROWS.values())
    for begin in found.values():
        assert begin.newest == {name: find_newest(name, begin.offsets[name]) for name in NAMES}
    newest = Newest(tmp_path / "newest.json").find_before(max(found) + 1)
    assert newest == {"clicks": BEGIN + 60, "orders": BEGIN - 980}
