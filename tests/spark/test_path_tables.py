"""Tables by path, on real Spark: what is read back is what was written, and only that."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from airflow_dagsched.launch.protocol.interval import Interval
from airflow_dagsched.launch.protocol.manifest import StepSpec
from airflow_dagsched.launch.protocol.tables import Table
from airflow_dagsched.spark.files.store import LocalStore
from airflow_dagsched.spark.inputs.listing import compute_others_generation
from airflow_dagsched.spark.outputs.commits import Committed, OutputGone, WriteRefused
from airflow_dagsched.spark.outputs.group_outputs import Outputs
from airflow_dagsched.spark.outputs.homes import name_hidden_folder

pytestmark = pytest.mark.spark
OutputsOf = Callable[..., Outputs]


def step(table: Table) -> StepSpec:
    """A step that writes ``table``."""
    return StepSpec("step", "code", writes=table)


def write(outputs: Outputs, df: DataFrame, table: Table) -> Committed:
    """Write with any fingerprint."""
    return outputs.write_table(df, step(table), "fingerprint", df.sparkSession)


def rows(df: DataFrame) -> list[str]:
    """The rows, in an order."""
    return sorted(map(str, df.collect()))


def same(found: DataFrame, wanted: DataFrame) -> bool:
    """Equal rows, columns, order of columns, types; every column read from a file may be null."""
    types = [[(field.name, field.dataType) for field in df.schema] for df in (found, wanted)]
    return types[0] == types[1] and rows(found) == rows(wanted)


@pytest.fixture(scope="module")
def odd(spark: SparkSession) -> DataFrame:
    """Values that are hard to name a folder after, and nulls; partition columns are in the middle."""
    return spark.sql(
        """
        select 1 a, date'2013-01-01' day, 'x:/{}[]*?\\\\y' s, timestamp'2013-01-01 10:00:00' ts, 1.50bd d, true b
        union all select 2, null, 'z}=% ä\\'"#', null, 2.50bd, null
        union all select 3, date'2013-01-02', '007', timestamp'2013-01-02 00:00:00.5', 2.50bd, false
        """
    )


@pytest.mark.parametrize(
    ("format_", "partition_by", "mode"),
    [
        ("parquet", (), "overwrite"),
        ("parquet", ("s",), "overwrite"),
        ("parquet", ("day", "s"), "append"),
        ("parquet", ("ts",), "overwrite"),
        ("parquet", ("d", "b"), "overwrite"),
        ("orc", (), "append"),
        ("csv", (), "append"),
        ("csv", ("day", "s"), "overwrite"),
        ("json", ("ts",), "overwrite"),
        ("json", ("s",), "append"),
    ],
)
def test_what_is_read_is_what_was_written(
    outputs_of: OutputsOf, odd: DataFrame, tmp_path: Path, format_: str, partition_by: tuple[str, ...], mode: str
):
    """Twice: an append is there once. With types, order of columns, nulls, and counts."""
    table = Table(f"{tmp_path}/t", format_, partition_by, mode)
    outputs = outputs_of(table)
    write(outputs, odd.where("a < 3"), table)
    committed = write(outputs, odd, table)
    assert same(outputs.read(committed, odd.sparkSession), odd)
    assert (committed.rows, committed.generation) == (3, 2)
    size = sum(path.stat().st_size for path in (tmp_path / "t").rglob("part-*"))
    assert committed.bytes == size


@pytest.mark.parametrize(
    ("format_", "partition_by"),
    [("parquet", ()), ("parquet", ("day",)), ("orc", ("day",)), ("csv", ()), ("json", ("day",))],
)
def test_no_rows_at_all(
    outputs_of: OutputsOf, odd: DataFrame, tmp_path: Path, format_: str, partition_by: tuple[str, ...]
):
    """Is a table all the same: anybody can read it, and it can be filled and emptied."""
    spark, table = odd.sparkSession, Table(f"{tmp_path}/t", format_, partition_by)
    outputs = outputs_of(table)
    for df, count in ((odd.where("false"), 0), (odd, 3), (odd.where("false"), 0)):
        committed = write(outputs, df, table)
        assert committed.rows == count
        assert same(outputs.read(committed, spark), df)
        assert spark.read.schema(odd.schema).format(format_).load(table.location).count() == count
    if format_ in ("parquet", "orc"):
        assert set(spark.read.format(format_).load(table.location).columns) == set(odd.columns)


def test_partitions_that_are_no_longer_written_go(outputs_of: OutputsOf, spark: SparkSession, tmp_path: Path):
    """Those of this interval; the other interval's stay."""
    table = Table(f"{tmp_path}/t", partition_by=["day"])
    write(outputs_of(table), spark.sql("select id, id as day from range(3)"), table)
    write(outputs_of(table, interval="other"), spark.sql("select id, 9 as day from range(1)"), table)
    committed = write(outputs_of(table), spark.sql("select 5L as id, 1L as day"), table)
    assert committed.partitions == ("day=1",)
    assert rows(spark.read.parquet(table.location)) == ["Row(id=0, day=9)", "Row(id=5, day=1)"]


def test_appends_of_two_intervals_add_up(outputs_of: OutputsOf, spark: SparkSession, tmp_path: Path):
    """Each once, however often it runs; each reads its own."""
    table = Table(f"{tmp_path}/t", mode="append")
    first, second = outputs_of(table), outputs_of(table, interval="other")
    write(first, spark.range(3), table)
    write(second, spark.range(10, 12), table)
    again = write(first, spark.range(5), table)
    assert rows(spark.read.parquet(table.location)) == sorted(f"Row(id={n})" for n in (0, 1, 2, 3, 4, 10, 11))
    assert same(first.read(again, spark), spark.range(5))


@pytest.mark.parametrize("mode", ["overwrite", "append"])
def test_two_steps_write_one_table(outputs_of: OutputsOf, spark: SparkSession, tmp_path: Path, mode: str):
    """For the same interval: each replaces what it wrote itself, and nothing of the other's."""
    table = Table(f"{tmp_path}/t", partition_by=["c"], mode=mode)  # type: ignore[arg-type]
    outputs = outputs_of(table)
    a, b = step(table), StepSpec("other", "code", writes=table)
    us = outputs.write_table(spark.sql("select 1 id, 'us' c"), a, "f", spark)
    outputs.write_table(spark.sql("select 2 id, 'de' c"), b, "g", spark)
    assert rows(spark.read.parquet(table.location)) == ["Row(id=1, c='us')", "Row(id=2, c='de')"]
    assert outputs.holds(us)
    assert outputs.write_table(spark.sql("select 3 id, 'fr' c"), a, "h", spark).generation == 3
    assert rows(spark.read.parquet(table.location)) == ["Row(id=2, c='de')", "Row(id=3, c='fr')"]


def test_three_intervals_at_once(outputs_of: OutputsOf, spark: SparkSession, tmp_path: Path):
    """As in a backfill: one table, a partition each, three drivers' worth of threads."""
    table = Table(f"{tmp_path}/deep/er/t", partition_by=["day"])
    days = ["2013-01-01", "2013-01-02", "2013-01-03"]
    results: dict[str, Committed] = {}

    def run(day: str) -> None:
        outputs = outputs_of(table, interval=day, run=day)
        results[day] = write(outputs, spark.range(100).selectExpr("id", f"date'{day}' as day"), table)

    threads = [threading.Thread(target=run, args=(day,)) for day in days]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert {day: results[day].partitions for day in days} == {day: (f"day={day}",) for day in days}
    found = spark.read.parquet(table.location).groupBy("day").count().collect()
    assert {row.day: row["count"] for row in found} == {date.fromisoformat(day): 100 for day in days}


def test_a_later_try_takes_over(outputs_of: OutputsOf, spark: SparkSession, tmp_path: Path):
    """The earlier one, still at work, is refused, and told so."""
    table = Table(f"{tmp_path}/t")
    first, second = outputs_of(table), outputs_of(table, try_number=2)
    first.keeper.acquire_lease(first.get_output_key(step(table)), "2013-01-01")
    write(second, spark.range(2), table)
    first.keeper.renew_leases()
    assert "try 2, has taken the lease" in str(first.keeper.lost)
    fenced = outputs_of(table, try_number=1)
    second.keeper.acquire_lease(second.get_output_key(step(table)), "2013-01-01")
    with pytest.raises(WriteRefused, match="later try"):
        write(fenced, spark.range(3), table)
    assert spark.read.parquet(table.location).count() == 2


def test_a_write_that_fails_leaves_the_table(outputs_of: OutputsOf, spark: SparkSession, tmp_path: Path):
    """And nothing beside it; the next write of the same driver is fine."""
    table = Table(f"{tmp_path}/t")
    outputs = outputs_of(table)
    write(outputs, spark.range(2), table)
    with pytest.raises(PySparkException):
        write(outputs, spark.sql("select raise_error('no') as id from range(2)"), table)
    assert [entry.name for entry in LocalStore().list(name_hidden_folder(table.location))] == [
        "commits",
        "leases",
        "lock",
    ]
    assert spark.read.parquet(table.location).count() == 2
    assert write(outputs, spark.range(3), table).generation == 3


def test_a_step_may_read_the_table_it_writes(outputs_of: OutputsOf, spark: SparkSession, tmp_path: Path):
    """It is written aside, so its own input stays until it is done."""
    table = Table(f"{tmp_path}/t")
    outputs = outputs_of(table)
    write(outputs, spark.range(2), table)
    write(outputs, spark.read.parquet(table.location).selectExpr("id + 10 as id"), table)
    assert rows(spark.read.parquet(table.location)) == ["Row(id=10)", "Row(id=11)"]


def test_rows_that_another_interval_wrote_over_are_gone(outputs_of: OutputsOf, spark: SparkSession, tmp_path: Path):
    """An error that says so, not the other interval's rows."""
    table = Table(f"{tmp_path}/t")
    outputs = outputs_of(table)
    committed = write(outputs, spark.range(2), table)
    assert outputs.holds(committed)
    write(outputs_of(table, interval="other"), spark.range(3), table)
    assert not outputs.holds(committed)
    with pytest.raises(OutputGone, match=r"\d of \d files are missing.*clear the step that writes it"):
        outputs.read(committed, spark)


def test_foreign_files_in_a_partition_are_not_read(outputs_of: OutputsOf, spark: SparkSession, tmp_path: Path):
    """A program that appends to the same folder does not change what the step wrote."""
    table = Table(f"{tmp_path}/t", partition_by=["day"])
    outputs = outputs_of(table)
    df = spark.sql("select id, 1 as day from range(3)")
    committed = write(outputs, df, table)
    spark.range(5).write.mode("append").parquet(f"{table.location}/day=1")
    assert spark.read.parquet(table.location).count() == 8
    assert same(outputs.read(committed, spark), df)


def test_spark_reads_while_it_is_written(outputs_of: OutputsOf, spark: SparkSession, tmp_path: Path):
    """Ten swaps beside a plain reader: three equal rows, none, or an error that files went; never a mix.

    None: Hadoop's local file system looks at each file of a listing by itself, and leaves out those that are gone.
    """
    table = Table(f"{tmp_path}/t", "csv")
    outputs = outputs_of(table)
    done, seen, errors = threading.Event(), list[list[int]](), list[str]()

    def read() -> None:
        last = False
        while not last:
            last = done.is_set()
            try:
                seen.append([row.turn for row in spark.read.csv(table.location, schema="turn int").collect()])
            except (PySparkException, Py4JJavaError) as error:
                errors.append(str(error))

    write(outputs, spark.sql("select -1 as turn from range(3)"), table)
    thread = threading.Thread(target=read)
    thread.start()
    for turn in range(10):
        write(outputs, spark.sql(f"select {turn} as turn from range(3)"), table)
    done.set()
    thread.join(60)
    assert seen[-1] == [9] * 3
    assert all(not rows or (len(rows) == 3 and len(set(rows)) == 1) for rows in seen)
    assert all("FILE_NOT_EXIST" in error or "FileNotFound" in error for error in errors)


def test_options_reach_writer_and_reader(outputs_of: OutputsOf, odd: DataFrame, tmp_path: Path):
    """A CSV with a header and another separator."""
    table = Table(f"{tmp_path}/t", "csv", options={"header": "true", "sep": ";"})
    outputs = outputs_of(table)
    committed = write(outputs, odd, table)
    assert same(outputs.read(committed, odd.sparkSession), odd)
    assert next((tmp_path / "t").glob("part-*.csv")).read_text().startswith("a;day;s;ts;d;b\n")


def test_what_others_wrote_is_told_from_own(outputs_of: OutputsOf, spark: SparkSession, tmp_path: Path):
    """The same before the table is there, and after each own write; not after another day's."""
    table = Table(f"{tmp_path}/t", partition_by=["day"])
    monday, tuesday = outputs_of(table), outputs_of(table, interval="tuesday")

    def others(*own: Committed) -> str:
        return compute_others_generation(spark, Table(table.location), Interval("monday"), own)

    before = others()
    one = write(monday, spark.sql("select 1 id, 1 day"), table)
    assert others(one) == before
    two = write(monday, spark.sql("select 2 id, 2 day"), table)
    assert others(two) == before
    write(tuesday, spark.sql("select 3 id, 3 day"), table)
    assert others(two) != before


def test_a_link_is_written_through(outputs_of: OutputsOf, spark: SparkSession, tmp_path: Path):
    """To a table elsewhere: the link stays, and the draft was beside what it points to."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "link").symlink_to(elsewhere / "t")
    for mode in ("overwrite", "append"):
        table = Table(f"{tmp_path}/link", mode=mode)  # type: ignore[arg-type]
        outputs = outputs_of(table)
        for count in (2, 3):
            committed = write(outputs, spark.range(count), table)
            assert outputs.read(committed, spark).count() == count
        assert (tmp_path / "link").is_symlink()
        assert sorted(path.name for path in elsewhere.iterdir()) == [".dagsched-t", "t"]
        assert spark.read.parquet(f"{tmp_path}/link").count() == 3


@pytest.mark.parametrize("partition_by", [(), ("p",)])
def test_an_append_without_its_records_is_made_once(
    outputs_of: OutputsOf, spark: SparkSession, tmp_path: Path, partition_by: tuple[str, ...]
):
    """Somebody removed all beside the table: the step's earlier files are known by their names. Others' stay."""
    table = Table(f"{tmp_path}/t", partition_by=partition_by, mode="append")
    write(outputs_of(table, interval="other"), spark.sql("select 9L id, 1 p"), table)
    write(outputs_of(table), spark.sql("select id, 1 p from range(3)"), table)
    LocalStore().delete(name_hidden_folder(table.location))
    committed = write(outputs_of(table), spark.sql("select id, 2 p from range(3)"), table)
    assert rows(spark.read.parquet(table.location).select("id")) == [f"Row(id={n})" for n in (0, 1, 2, 9)]
    assert outputs_of(table).read(committed, spark).count() == 3


@pytest.mark.parametrize("damage", ["gone", "cut"])
def test_a_table_that_lost_a_file_does_not_hold_its_commit(
    outputs_of: OutputsOf, spark: SparkSession, tmp_path: Path, damage: str
):
    """Nor is it read: the step is made again."""
    table = Table(f"{tmp_path}/t")
    outputs = outputs_of(table)
    committed = write(outputs, spark.range(0, 12, 1, 4), table)
    assert len(committed.files) == 4
    file = tmp_path / "t" / committed.files[2][0]
    file.unlink() if damage == "gone" else file.write_bytes(file.read_bytes()[:-9])
    assert not outputs.holds(committed)
    with pytest.raises(OutputGone, match="1 of 4 files are missing"):
        outputs.read(committed, spark)
    # Records of before the field ``files``: then the bytes tell.
    assert not outputs.holds(replace(committed, files=()))
