"""A real query with a prepared checkpoint reads no file that another one has read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf

from airflow_dagsched.spark.streams.prepared_checkpoint import (
    ReadFiles,
    UnknownLayout,
    choose_chain,
    make_empty_folder,
    prepare_checkpoint,
)

SCHEMA = "ts timestamp, amount bigint"
SETTINGS = {
    "queryEvolution.enableSourceEvolution": "true",
    "offsetLog.formatVersion": "2",
    "stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    "stateStore.checkpointFormatVersion": "2",
    # So that four files are enough for a log that is compacted.
    "fileSource.log.compactInterval": "2",
}
Make = Callable[[DataFrame], DataFrame]


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    session = spark.newSession()
    for name, value in SETTINGS.items():
        session.conf.set(f"spark.sql.streaming.{name}", value)
    return session


def write_file(folder: Path, minute: int) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / f"{minute}.json"
    lines = [{"ts": f"2024-01-01T00:{minute:02d}:{second:02d}Z", "amount": minute} for second in (0, 20, 40)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    os.utime(path, (1_000 + minute, 1_000 + minute))


def run(session: SparkSession, folder: Path, checkpoint: Path, make: Make) -> list[Row]:
    reader = session.readStream.name("clicks").schema(SCHEMA).option("maxFilesPerTrigger", 1)
    rows = make(reader.json(str(folder)).withWatermark("ts", "0 seconds"))
    found: list[Row] = []
    query = (
        rows.writeStream.foreachBatch(lambda batch, _: found.extend(batch.collect()))
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return found


def count(rows: DataFrame) -> DataFrame:
    return rows.groupBy(sf.window("ts", "1 minute")).count()


def sum_up(rows: DataFrame) -> DataFrame:
    grouped = rows.groupBy(sf.window("ts", "1 minute"), "amount")
    return grouped.agg(sf.sum("amount").alias("sum"), sf.count("*").alias("rows"))


@pytest.mark.slow
def test_another_query_begins_where_the_old_one_was(session: SparkSession, tmp_path: Path) -> None:
    """Another aggregate, another number of partitions; files behind the offset are read, whoever else has read them."""
    files, old, new = tmp_path / "files", tmp_path / "old", tmp_path / "new"
    for minute in range(4):
        write_file(files, minute)
    run(session, files, old, count)
    read = {"clicks": ReadFiles(old / "sources" / "clicks", 2)}
    assert [path.name for path in choose_chain(read["clicks"])] == ["1.compact", "2"]
    empty = make_empty_folder(session, "json", SCHEMA, tmp_path / "empty")
    session.conf.set("spark.sql.shuffle.partitions", "3")
    drafts: list[Path] = []

    def run_once(draft: Path) -> None:
        drafts.append(draft)
        assert run(session, empty, draft, sum_up) == []

    for _ in range(2):
        prepare_checkpoint(new, read, run_once)
    assert len(drafts) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "files", "new", "old"]
    write_file(files, 4)
    write_file(files, 5)
    found = run(session, files, new, sum_up)
    # Minute 5 is open still.
    assert sorted((row["amount"], row["sum"], row["rows"]) for row in found) == [(3, 9, 3), (4, 12, 3)]


def test_formats_that_have_a_schema_have_a_file_without_rows(session: SparkSession, tmp_path: Path) -> None:
    folder = make_empty_folder(session, "parquet", SCHEMA, tmp_path / "empty")
    assert session.read.schema(SCHEMA).parquet(str(folder)).count() == 0
    assert [path for path in folder.iterdir() if path.suffix == ".parquet"]


def make_log(folder: Path, *names: str) -> Path:
    folder.mkdir()
    for name in names:
        (folder / name).write_text("v1\n")
    return folder


@pytest.mark.parametrize(
    ("names", "offset", "chain"),
    [
        (("0", "1", "2"), 1, ["0", "1"]),
        (("9.compact", "10", "11"), 11, ["9.compact", "10", "11"]),
        (("9.compact", "10", "19.compact", "20"), 19, ["19.compact"]),
        (("8", "9.compact"), 8, None),
        (("9.compact", "11"), 11, None),
        ((), 0, None),
    ],
)
def test_a_log_is_taken_if_nothing_of_it_is_missing(
    tmp_path: Path, names: tuple[str, ...], offset: int, chain: list[str] | None
) -> None:
    read = ReadFiles(make_log(tmp_path / "log", *names), offset)
    if chain is None:
        with pytest.raises(UnknownLayout, match="has no"):
            choose_chain(read)
    else:
        assert [path.name for path in choose_chain(read)] == chain


def write_checkpoint(
    draft: Path, offsets: str = 'v2\n{}\nclicks:{"logOffset":0}', batches: tuple[str, ...] = ("0",)
) -> None:
    for folder in ("offsets", "commits", "sources/clicks"):
        (draft / folder).mkdir(parents=True)
    for batch in batches:
        (draft / "offsets" / batch).write_text(offsets)
        (draft / "commits" / batch).write_text("v2\n{}")


@pytest.mark.parametrize(
    "write",
    [
        lambda draft: write_checkpoint(draft, batches=("0", "1")),
        lambda draft: write_checkpoint(draft, 'v1\n{}\n{"logOffset":0}'),
        lambda draft: write_checkpoint(draft, 'v3\n{}\nclicks:{"logOffset":0}'),
        lambda draft: write_checkpoint(draft, 'v2\n{}\nclicks:{"version":0}'),
        lambda draft: draft.mkdir(),
    ],
)
def test_a_checkpoint_of_another_layout_is_left_alone(tmp_path: Path, write: Callable[[Path], None]) -> None:
    read = {"clicks": ReadFiles(make_log(tmp_path / "log", "0"), 0)}
    with pytest.raises(UnknownLayout):
        prepare_checkpoint(tmp_path / "new", read, write)
    assert not (tmp_path / "new").exists()
    # What is left of that is in nobody's way.
    prepare_checkpoint(tmp_path / "new", read, write_checkpoint)
    assert (tmp_path / "new" / "sources" / "clicks" / "0").exists()
