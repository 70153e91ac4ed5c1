"""Stored datasets that have only the rows that all their readers ask for: who asks for more gets all, made again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from airflow_dagsched.launch.protocol.events import ColumnsRead, LeftOut, MadeAgain
from airflow_dagsched.spark.outputs.held_rows import give_back, hold_back
from airflow_dagsched.spark.session.plan_columns import Conditions, find_use
from airflow_dagsched.spark.session.written_conditions import select_rows, write_conditions
from tests.spark.running import Ran
from tests.spark.test_narrow_stored import Wide, told

HALF = ("(id > 9L)",)


def one(wide):
    return wide.where("id > 9").groupBy("c1").count()


def two(wide):
    return wide.where("id > 9 and c2 < 30").select("c2")


def store_half(spark: SparkSession, folder: Path, one: Callable[..., Any], two: Callable[..., Any]) -> tuple[Wide, Ran]:
    """Of 20 rows 10 are stored, with all columns."""
    case = Wide(spark, folder, one, two)
    case.know_rows(HALF)
    return case, case.write()


def count_stored(ran: Ran) -> int:
    files = Path(ran.done["wide"].datasets[""]).glob("*.parquet")
    return sum(pq.read_metadata(each).num_rows for each in files)


def test_what_all_ask_is_told_and_no_other_rows_are_stored(spark: SparkSession, tmp_path: Path) -> None:
    case = Wide(spark, tmp_path, one, two)
    first = case.read(case.write())
    (event,) = told(first, ColumnsRead)
    assert event.where == {"wide/": {"one": HALF, "two": ("(c2 < 30L)", *HALF)}}
    case.folder = tmp_path / "next"
    case.folder.mkdir()
    case, wrote = store_half(spark, case.folder, one, two)
    assert (count_stored(wrote), wrote.done["wide"].rows) == (10, 20)
    assert wrote.done["wide"].left_out == {"": LeftOut(10, 10, 1.0, HALF)}
    assert wrote.lines("wide") == ["stored 10 of 20 rows, those that all its readers take"]
    second = case.read(wrote)
    assert told(second, MadeAgain) == []
    assert told(second, ColumnsRead) == [event]
    assert [case.rows(second, step) for step in ("one", "two")] == [case.rows(first, step) for step in ("one", "two")]


def test_rows_and_columns(spark: SparkSession, tmp_path: Path) -> None:
    case = Wide(spark, tmp_path, one, two)
    case.know(_=("id", "c1", "c2"))
    case.know_rows(HALF)
    wrote = case.write()
    assert wrote.done["wide"].left_out == {"": LeftOut(10, 3, 0.3, HALF)}
    assert count_stored(wrote) == 10
    ran = case.read(wrote)
    assert (told(ran, MadeAgain), case.rows(ran, "two")) == ([], [(2 * at,) for at in range(10, 15)])


def count_unnoticed(spark: SparkSession, wide: DataFrame) -> DataFrame:
    return spark.range(wide.where("c2 >= 0")._jdf.count()).selectExpr("id * 2 as c2")


def count_subquery(spark: SparkSession, wide: DataFrame) -> DataFrame:
    wide.createOrReplaceTempView("w")
    return spark.sql("select c2 from w where id > 9 and (select count(*) from w) = 20")


def collect_all(spark: SparkSession, wide: DataFrame) -> DataFrame:
    return spark.createDataFrame([(row.c2,) for row in wide.collect()], "c2 long")


ALL = [(2 * at,) for at in range(20)]
UPPER = ALL[10:]
ASKING: dict[str, tuple[Callable[[SparkSession, DataFrame], DataFrame], list[Any]]] = {
    "all": (lambda spark, wide: wide.select("c2"), ALL),
    "others": (lambda spark, wide: wide.where("id < 3").select("c2"), ALL[:3]),
    "wider": (lambda spark, wide: wide.where("id > 8").select("c2"), ALL[9:]),
    "or": (lambda spark, wide: wide.where("id > 9 or c2 = 0").select("c2"), [ALL[0], *UPPER]),
    "later": (lambda spark, wide: wide.limit(20).where("id > 9").select("c2"), UPPER),
    "outer": (
        lambda spark, wide: spark.range(30).join(wide.where("id > 9"), "id", "left").dropna().select("c2")
        .union(wide.where("id = 0").select("c2")), [ALL[0], *UPPER],
    ),
    "subquery": (count_subquery, UPPER),
    "collect": (collect_all, ALL),
    "hidden": (lambda spark, wide: wide.where("id > 9").select("c2", "_metadata.file_name").select("c2"), UPPER),
    "today": (lambda spark, wide: wide.where("id > 9 and current_date() > date'2020-01-01'").select("c2"), UPPER),
    "unnoticed": (count_unnoticed, ALL),
    "union": (lambda spark, wide: wide.where("id > 9").select("c2").union(wide.where("id = 1").select("c2")),
              [ALL[1], *UPPER]),
}  # fmt: skip
"""What another day's way through the same code asks for, and what it gets."""


@pytest.mark.parametrize("how", ASKING)
def test_equal_code_that_asks_for_more_gets_it(spark: SparkSession, tmp_path: Path, how: str) -> None:
    ask, expected = ASKING[how]

    def two(spark, wide):
        return ask(spark, wide)

    case, wrote = store_half(spark, tmp_path, one, two)
    assert count_stored(wrote) == 10
    ran = case.read(wrote)
    assert ran.ok, ran.done["two"].failure
    (again,) = told(ran, MadeAgain)
    assert again == MadeAgain(again.step, "wide/", "more_columns", 10, 10, HALF)
    assert case.rows(ran, "two") == expected
    assert case.rows(ran, "one") == [(at, 1) for at in range(10, 20)]
    # Nothing that is not asked of each row is told as if it were.
    asked = [by["wide/"]["two"] for event in told(ran, ColumnsRead) if "two" in (by := event.where).get("wide/", {})]
    assert not any({*HALF} <= {*each} for each in asked[-1:])
    spark.catalog.clearCache()


@pytest.mark.parametrize("slots", [1, 2])
def test_readers_of_readers_ask_for_them(spark: SparkSession, tmp_path: Path, slots: int) -> None:
    """wide ──> two ──> three, four, over what is kept of two's rows; and five, that reads them twice."""

    def two(wide):
        return wide.where("id > 9")

    def three(two):
        return two.select("c2")

    def four(two):
        return two.groupBy().sum("c4").toDF("c4")

    def five(two):
        return two.alias("a").join(two.alias("b"), "id").select("a.c3")

    case, wrote = store_half(spark, tmp_path, one, two)
    ran = case.read(wrote, case.hand_on(three, four, five), slots=slots)
    assert ran.ok, ran.done
    assert told(ran, MadeAgain) == []
    assert case.rows(ran, "three") == UPPER
    assert case.rows(ran, "four") == [(4 * sum(range(10, 20)),)]
    assert case.rows(ran, "five") == [(3 * at,) for at in range(10, 20)]


@pytest.mark.parametrize("columns", [(), ("id", "c1", "c2", "c3")])
def test_rows_that_pass_through_a_bare_scan_are_still_some(
    spark: SparkSession, tmp_path: Path, columns: tuple[str, ...]
) -> None:
    """wide ──> two ──> three, four: two only takes columns; whether its rows are kept or read anew, all are asked."""

    def two(wide):
        return wide.select("id", "c1", "c2", "c3")

    def three(two):
        return two.where("id > 9").select("c2")

    def four(two):
        return two.where("id > 9").groupBy().sum("c2").toDF("c2")

    case = Wide(spark, tmp_path, one, two)
    case.know(**({"_": columns} if columns else {}))
    case.know_rows(HALF)
    wrote = case.write()
    ran = case.read(wrote, case.hand_on(three, four))
    assert ran.ok, ran.done
    assert told(ran, MadeAgain) == []
    assert case.rows(ran, "three") == UPPER
    assert case.rows(ran, "four") == [(2 * sum(range(10, 20)),)]


def test_a_retry_reuses_what_has_the_rows_that_are_wanted(spark: SparkSession, tmp_path: Path) -> None:
    case, _ = store_half(spark, tmp_path, one, two)
    assert case.write().states == {"wide": "reused"}
    case.know_rows((*HALF, "(c1 > 3L)"))
    assert case.write().states == {"wide": "reused"}
    case.know_rows(())
    assert case.write().states == {"wide": "success"}
    assert case.write().states == {"wide": "reused"}


def test_some_rows_never_pass_for_all(spark: SparkSession, tmp_path: Path) -> None:
    """Their record is torn: nothing says any more which they are."""

    def two(wide):
        return wide.select("c2")

    case, wrote = store_half(spark, tmp_path, one, two)
    (record,) = tmp_path.glob("work/commits/*wide*/*/*.json")
    record.write_text("{")
    ran = case.read(wrote)
    assert (ran.ok, case.rows(ran, "two")) == (True, ALL)


CONDITIONS = (
    "a = 'x'", "a in ('x', 'y\\'z', '\\\\')", "n between 3 and 5", "n in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)",
    "m < 3.5", "day >= date'2024-01-20'", "f > 1.5 or g < 2.5", "f = double('NaN')", "b", "not b", "`odd.name` < 3",
    "a like 'x%'", "a <=> null or n > 3", "naive > timestamp_ntz'2024-01-01'",
)  # fmt: skip


def make_kinds(spark: SparkSession) -> DataFrame:
    return spark.range(40).selectExpr(
        "id n", "element_at(array('x', 'y\\'z', '\\\\', null), cast(id % 4 + 1 as int)) a",
        "cast(id as short) `odd.name`",
        "cast(id / 7 as decimal(10, 2)) m", "date_add(date'2024-01-01', cast(id as int)) day", "id / 9 f",
        "cast(id as float) g", "id > 3 b", "cast(char(60 + id % 9) as binary) bin", "timestamp'2024-01-01' moment",
        "array(timestamp'2024-01-01') moments",
        "timestamp_ntz'2024-01-01 00:00:01' naive",
    )  # fmt: skip


def read_asked(df: DataFrame, condition: str) -> Conditions | None:
    """What a plan that asks this of the rows of ``df`` is found to ask."""
    marked = df.alias("s__0")
    use = find_use(marked.where(condition), marked, "s__0")
    assert use is not None
    return use.conditions


@pytest.mark.parametrize("condition", CONDITIONS)
def test_conditions_of_all_kinds_are_written_and_read(spark: SparkSession, condition: str) -> None:
    df = make_kinds(spark)
    written = write_conditions(df, read_asked(df, condition))
    assert written
    rows, fulfilled = select_rows(df, written)
    assert fulfilled == tuple(sorted(written))
    assert sorted(map(str, rows.collect())) == sorted(map(str, df.where(condition).collect()))


@pytest.mark.parametrize(
    "condition",
    [
        "moment > timestamp'2023-01-01'",  # another one where the time zone is
        "moments = array(timestamp'2023-01-01')",
        "bin = x'41'",  # a secret would not be known in it
        "a = cast(x'ff' as string)",  # written as what Java puts in its place
        "a = '\\u0007'",
        "a in ('" + "', '".join(map(str, range(500))) + "')",  # too long to be read by anybody
    ],
)
def test_what_would_mean_others_elsewhere_is_not_written(spark: SparkSession, condition: str) -> None:
    df = make_kinds(spark)
    assert write_conditions(df, read_asked(df, condition)) == frozenset()


def test_what_is_asked_of_today_is_asked_of_no_row(spark: SparkSession) -> None:
    """It may be tomorrow when the plan is executed."""
    for condition in ("day > current_date()", "n > 3 and year(day) = year(now())"):
        assert read_asked(make_kinds(spark), condition) == {}


def test_conditions_that_mean_others_here_are_not_used(spark: SparkSession) -> None:
    session = spark.newSession()
    df = make_kinds(session)
    session.conf.set("spark.sql.parser.escapedStringLiterals", "true")
    rows, fulfilled = select_rows(df, ["(a = '\\\\')", "(gone = 1L)", "no condition at all", "(n > 30L)"])
    assert (fulfilled, rows.count()) == (("(n > 30L)",), 9)


HOLDING: dict[str, Callable[[DataFrame], Any]] = {
    "count": lambda df: df.count(),
    "filter": lambda df: df.where("n < 3").count(),
    "null": lambda df: df.where("a is null").count(),
    "limit": lambda df: df.limit(3).collect(),
    "empty": lambda df: df.isEmpty(),
    "rdd": lambda df: df.rdd.count(),
    "anti": lambda df: make_kinds(df.sparkSession).join(df, "n", "left_anti").count(),
    "semi": lambda df: make_kinds(df.sparkSession).where("n > 50").join(df, "n", "full").count(),
    "distinct": lambda df: df.select("b").distinct().count(),
    "group": lambda df: df.groupBy("a").max("n").collect(),
    "union": lambda df: df.union(df).where("b").count(),
    "java": lambda df: df.where("n < 3")._jdf.count(),
    "subquery": lambda df: make_kinds(df.sparkSession).where(df.where("n < 3").select("n").exists()).count(),
}


@pytest.mark.parametrize("how", HOLDING)
def test_rows_that_are_held_back_fail_whoever_executes_them(spark: SparkSession, how: str) -> None:
    held = hold_back(make_kinds(spark))
    assert held.dtypes == make_kinds(spark).dtypes
    with pytest.raises(Exception, match="was not stored"):
        HOLDING[how](held)


def test_rows_are_given_back_wherever_they_are_in_a_plan(spark: SparkSession) -> None:
    rows = make_kinds(spark).where("n > 9")
    held = hold_back(rows).alias("s__0")

    def meet(df: DataFrame) -> DataFrame:
        upper = df.where("n > 20")
        both = upper.join(df.where("n < 30").select("n", "a"), "n").select("n", upper["a"], "day")
        return both.union(both.where(sf.col("n") > 25)).where(df.where("b").select("n").exists())

    assert sorted(map(str, give_back(meet(held), {"s__0": rows}).collect())) == sorted(map(str, meet(rows).collect()))
