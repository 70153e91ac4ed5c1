"""A real query with a prepared checkpoint reads no file that another one has read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf

from airflow_dagsched.launch.streams.manifest import SourceSpec
from airflow_dagsched.spark.files.store import make_local_path
from airflow_dagsched.spark.streams.empty_sources import empty_source, find_partition
from airflow_dagsched.spark.streams.file_lists import ReadFiles, UnknownLayout, copy_list
from airflow_dagsched.spark.streams.prepared_checkpoint import prepare_checkpoint, read_prepared

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


def keep(rows: DataFrame) -> DataFrame:
    return rows.select("ts", "amount")


@pytest.fixture(scope="module")
def read(session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A folder with six files, and the list of a query that has read four of them, a file a batch."""
    folder = tmp_path_factory.mktemp("stream")
    for minute in range(4):
        write_file(folder / "files", minute)
    run(session, folder / "files", folder / "old", count)
    write_file(folder / "files", 4)
    write_file(folder / "files", 5)
    log = folder / "old" / "sources" / "clicks"
    # It was compacted at places 1 and 3.
    (log / "0").unlink()
    return folder / "files", log


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "offset", "found"),
    # Minute 5 is open still.
    [(sum_up, 2, [3, 4]), (keep, 0, [each for each in range(1, 6) for _ in range(3)])],
)
def test_another_query_begins_where_the_old_one_was(
    session: SparkSession, read: tuple[Path, Path], tmp_path: Path, make: Make, offset: int, found: list[int]
) -> None:
    """Another aggregate, or none, another number of partitions; files behind the offset are read, whoever else has read
    them, also where the old list was compacted behind it, and what was before is gone.
    """
    files, log = read
    new = tmp_path / "new"
    session.conf.set("spark.sql.shuffle.partitions", "3")
    empty = empty_source(session, SourceSpec("clicks", "json", "ts", str(files), SCHEMA), tmp_path / "empty", "")
    drafts: list[Path] = []

    def run_once(draft: Path) -> None:
        drafts.append(draft)
        assert run(session, make_local_path(empty.path or ""), draft, make) == []

    for _ in range(2):
        prepare_checkpoint(new, {"clicks": ReadFiles(log, offset)}, 2, run_once)
    assert len(drafts) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "new"]
    assert read_prepared(new) == {"clicks": {"logOffset": offset}}
    assert sorted(row["amount"] for row in run(session, files, new, make)) == found
    assert {"0", "1", "2"} <= {path.name for path in (new / "commits").iterdir()}


@pytest.mark.parametrize("form", ["parquet", "json"])
def test_a_source_over_no_rows_has_a_file_for_each_batch(session: SparkSession, tmp_path: Path, form: str) -> None:
    options = {"pathGlobFilter": "clicks-*", "maxBytesPerTrigger": "1g", "mode": "FAILFAST"}
    source = SourceSpec("clicks", form, "ts", "/data/clicks", SCHEMA, options)
    for _ in range(2):
        empty = empty_source(session, source, tmp_path / "empty", "day=2024-01-01/hour=1")
    assert empty.options == {"mode": "FAILFAST", "maxFilesPerTrigger": "1"}
    assert len(list((tmp_path / "empty" / "day=2024-01-01" / "hour=1").glob(f"*.{form}"))) == 2
    rows = session.read.schema(f"{SCHEMA}, hour int").format(form).load(empty.path)
    assert (rows.count(), rows.columns) == (0, ["ts", "amount", "day", "hour"])


@pytest.mark.parametrize(
    ("path", "file", "folder"),
    [
        ("/data/clicks", "file:///data/clicks/1.json", ""),
        ("/data/clicks/", "file:///data/clicks/day=2024-01-01%2000/part/hour=1/1.json", "day=2024-01-01 00/hour=1"),
        ("s3a://data/clicks", "s3a://data/clicks/day=1/1.json", "day=1"),
        ("/data/day=*", "file:///data/day=1/1.json", ""),
        ("/data/clicks", "file:///data/day=1/1.json", ""),
        ("/data/clicks", None, ""),
    ],
)
def test_columns_that_are_folders_are_there_without_rows_too(path: str, file: str | None, folder: str) -> None:
    assert find_partition(SourceSpec("clicks", "json", "ts", path, SCHEMA), file) == folder


def make_log(folder: Path, *names: str) -> Path:
    """A list of files, one read at each place."""
    folder.mkdir()
    for name in names:
        place = int(name.removesuffix(".compact"))
        places = range(place + 1) if name.endswith(".compact") else [place]
        lines = [f'{{"path":"file:///{each}","timestamp":1,"batchId":{each}}}' for each in places]
        (folder / name).write_text("\n".join(["v1", *lines]))
    return folder


def read_list(folder: Path) -> dict[str, list[int]]:
    """File of a list -> places of its entries."""
    lines = {path.name: path.read_text().splitlines()[1:] for path in folder.iterdir()}
    return {name: [json.loads(line)["batchId"] for line in found] for name, found in lines.items()}


@pytest.mark.parametrize(
    ("names", "offset", "found"),
    [
        (("0", "1", "2"), 1, ["0", "1"]),
        (("4.compact", "5", "6"), 6, ["4.compact", "5", "6"]),
        (("4.compact", "5", "9.compact", "10"), 9, ["9.compact"]),
        # Removed, or about to be, as it was compacted.
        (("8", "9.compact"), 8, ["4.compact", "5", "6", "7", "8"]),
        (("19.compact", "20"), 3, ["0", "1", "2", "3"]),
        (("19.compact", "24.compact"), 4, ["4.compact"]),
        (("9.compact", "11"), 11, None),
        ((), 0, None),
    ],
)
def test_a_list_is_copied_as_far_as_the_offset(
    tmp_path: Path, names: tuple[str, ...], offset: int, found: list[str] | None
) -> None:
    """As Spark itself would have it there, which compacts at every fifth place."""
    read, to = ReadFiles(make_log(tmp_path / "log", *names), offset), tmp_path / "to"
    if found is None:
        with pytest.raises(UnknownLayout, match="is not whole"):
            copy_list(read, to, 5)
        return
    copy_list(read, to, 5)
    assert read_list(to) == read_list(make_log(tmp_path / "expected", *found))


def write_checkpoint(
    draft: Path, offsets: str = 'v2\n{}\nclicks:{"logOffset":0}', batches: tuple[str, ...] = ("0", "1")
) -> None:
    for folder in ("offsets", "commits", "sources/clicks"):
        (draft / folder).mkdir(parents=True)
    for batch in batches:
        (draft / "offsets" / batch).write_text(offsets)
        (draft / "commits" / batch).write_text("v2\n{}")


@pytest.mark.parametrize(
    "write",
    [
        lambda draft: write_checkpoint(draft, batches=("0",)),
        lambda draft: write_checkpoint(draft, batches=("0", "1", "2")),
        lambda draft: write_checkpoint(draft, 'v1\n{}\n{"logOffset":0}'),
        lambda draft: write_checkpoint(draft, 'v3\n{}\nclicks:{"logOffset":0}'),
        lambda draft: write_checkpoint(draft, 'v2\n{}\nclicks:{"version":0}'),
        lambda draft: draft.mkdir(),
    ],
)
def test_a_checkpoint_of_another_layout_is_left_alone(tmp_path: Path, write: Callable[[Path], None]) -> None:
    read = {"clicks": ReadFiles(make_log(tmp_path / "log", "0"), 0)}
    with pytest.raises(UnknownLayout):
        prepare_checkpoint(tmp_path / "new", read, 10, write)
    assert not (tmp_path / "new").exists()
    assert read_prepared(tmp_path / "new") == {}
    # What is left of that is in nobody's way.
    prepare_checkpoint(tmp_path / "new", read, 10, write_checkpoint)
    assert (tmp_path / "new" / "sources" / "clicks" / "0").exists()
