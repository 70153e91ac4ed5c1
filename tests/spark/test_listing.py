"""Digests of declared reads: they change when what would be read changes, and only then."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.launch.protocol.interval import Interval
from airflow_dagsched.launch.protocol.tables import Table
from airflow_dagsched.spark.inputs.listing import compute_generation, may_match, parse_where

DAY = Interval("2013-01-01", datetime(2013, 1, 1, tzinfo=UTC), datetime(2013, 1, 2, tzinfo=UTC))
COLUMNS = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True).filter(lambda name: name != "and")
VALUES = st.sampled_from(["interval.start", "interval.end", "interval.key", "7", "-1.5"]) | st.from_regex(
    r"'[^'\\\n]{0,8}'", fullmatch=True
)
SPACES = st.sampled_from(["", " ", "  "])


@given(st.dictionaries(COLUMNS, VALUES, min_size=1, max_size=4), SPACES, st.sampled_from(["and", "AND"]))
def test_equalities_are_understood(conditions: dict[str, str], space: str, joint: str):
    """Whatever the values hold, the word ``and`` too."""
    where = f" {joint} ".join(f"{column}{space}={space}{value}" for column, value in conditions.items())
    assert parse_where(where) == conditions


@given(st.text(max_size=40))
def test_anything_else_lists_all(where: str):
    """Never an error; what is understood was an equality."""
    assert not parse_where(where) or "=" in where


@pytest.mark.parametrize(
    "where",
    [
        None,
        "",
        "day > interval.start",
        "day = interval.start or true",
        "day = interval.start and",
        "day = 1 and day = 2",
        "day = 'it\\'s'",
        "day = interval.start + 1",
        "not day = 1",
        "day = 1 andx = 2",
        "day != 1",
    ],
)
def test_not_understood(where: str | None):
    """Then all is listed."""
    assert parse_where(where) == {}


@pytest.mark.parametrize(
    ("condition", "value", "expected"),
    [
        ("interval.start", "2013-01-01", True),
        ("interval.start", "2013-01-02", False),
        ("interval.end", "2013-01-02", True),
        ("interval.start", "2013-01-01 00:00:00", True),
        ("interval.start", "2013-01-01T00:00:00+00:00", True),
        ("interval.start", "2013-01-01T01:00:00+01:00", True),
        ("interval.start", "2013-01-01 01:00:00", False),
        ("interval.start", "20130101x", True),  # not understood: it may be
        ("interval.key", "2013-01-01", True),
        ("interval.key", "2013-01-02", False),
        ("interval.key", "2013-01-01 00:00:00", True),
        ("'AA'", "AA", True),
        ("'AA'", "aa", False),
        ("'7'", "07", True),
        ("'2013-01-01'", "2013-01-01 00:00:00", True),
        ("'1 Jan 2013'", "2013-01-01", True),  # Spark may make it a date
        ("7", "07", True),
        ("7", "8", False),
        ("7", "x", False),
        ("7", "__HIVE_DEFAULT_PARTITION__", False),
    ],
)
def test_matches(condition: str, value: str, expected: bool):
    """A folder's value against a condition."""
    assert may_match(condition, value, DAY) == expected


def test_a_day_is_one_of_its_zone_or_utc():
    """Midnight in New York is the same date there, and in UTC, but not always."""
    zone = timezone(timedelta(hours=9))
    interval = Interval("k", datetime(2013, 1, 2, tzinfo=zone))
    assert [may_match("interval.start", f"2013-01-0{day}", interval) for day in (1, 2, 3)] == [True, True, False]
    assert may_match("interval.start", "2013-01-03", Interval("k"))


@pytest.mark.spark
class TestGeneration:
    """On files."""

    def generation(self, spark: SparkSession, table: Table) -> str:
        """Of the day."""
        return compute_generation(spark, table, DAY)

    def test_only_the_partitions_read_count(self, spark: SparkSession, tmp_path: Path):
        """The day's, of any carrier; not the next day's, not hidden files."""
        for day, carrier in (("2013-01-01", "AA"), ("2013-01-01", "B%2FB"), ("2013-01-02", "AA")):
            folder = tmp_path / f"day={day}" / f"carrier={carrier}"
            folder.mkdir(parents=True)
            (folder / "part-0").write_text("1")
        table = Table(str(tmp_path), where="day = interval.start")
        one = Table(str(tmp_path), where="carrier = 'B/B' and day = interval.start")
        first = [self.generation(spark, each) for each in (table, one)]
        (tmp_path / "day=2013-01-02" / "carrier=AA" / "part-1").write_text("2")
        (tmp_path / "day=2013-01-01" / "carrier=AA" / "_SUCCESS").write_text("")
        assert [self.generation(spark, each) for each in (table, one)] == first
        (tmp_path / "day=2013-01-01" / "carrier=AA" / "part-0").write_text("22")
        assert self.generation(spark, table) != first[0]
        assert self.generation(spark, one) == first[1]

    def test_a_file_is_a_table_too(self, spark: SparkSession, tmp_path: Path):
        """Of one file; ``file://`` makes no difference."""
        path = tmp_path / "planes.csv"
        path.write_text("a")
        first = self.generation(spark, Table(str(path), "csv"))
        assert first == self.generation(spark, Table(f"file://{path}", "csv"))
        path.write_text("bb")
        assert first != self.generation(spark, Table(str(path), "csv"))

    def test_a_missing_path_is_named(self, spark: SparkSession, tmp_path: Path):
        """With what to do."""
        with pytest.raises(InvalidInput, match=r"/none: reads: it does not exist: check the path"):
            self.generation(spark, Table(f"{tmp_path}/none"))

    def test_a_catalog_table_is_its_files(self, spark: SparkSession):
        """A view has none: it is new each time. A table that is not there is named."""
        spark.sql("CREATE OR REPLACE TEMPORARY VIEW listing_view AS SELECT 1 a")
        spark.range(1).write.mode("overwrite").saveAsTable("listing_table")
        table, view = Table("listing_table"), Table("listing_view")
        first = self.generation(spark, table)
        assert self.generation(spark, table) == first
        spark.range(2).write.mode("append").saveAsTable("listing_table")
        assert self.generation(spark, table) != first
        assert self.generation(spark, view) != self.generation(spark, view)
        with pytest.raises(InvalidInput, match="not in the catalog"):
            self.generation(spark, Table("listing_none"))
        spark.sql("DROP TABLE listing_table")

    @pytest.mark.parametrize("format_", ["delta", "iceberg", "jdbc"])
    def test_what_cannot_be_told_is_never_reused(self, spark: SparkSession, format_: str):
        """No jars here: a new value each time, and no error, for the read itself will say it better."""
        table = Table("/data/none", format_)
        assert self.generation(spark, table) != self.generation(spark, table)
