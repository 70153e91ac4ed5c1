"""Random readers of a dataset: what an author may make of its rows, one word after another."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

from hypothesis import strategies as st
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, LongType, NullType, StringType, StructType

from airflow_dagsched.spark.session.observed import quote_name

Op = Callable[[DataFrame, Random], DataFrame]
MOST_COLUMNS = 14


def make_rows(spark: SparkSession, count: int, seed: int) -> DataFrame:
    """Rows of many types: some columns are never null, some always, some of the same few values."""
    dice = f"abs(hash(id, {seed}))"
    return spark.range(count).selectExpr(
        "id",
        f"{dice} % 5 as few",
        f"if({dice} % 3 = 0, null, {dice} % 7) as maybe",
        f"cast({dice} % 4 as string) as text",
        f"if({dice} % 2 = 0, null, 'x') as word",
        f"struct({dice} % 3 as x, cast(id as string) as y) as pair",
        f"array({dice} % 2, id) as both",
        f"cast({dice} % 9 as decimal(9, 2)) as price",
        "cast(null as long) as nothing",
        f"date_add(date'2013-01-01', cast({dice} % 4 as int)) as day",
        f"map('k', {dice} % 3) as lookup",
        f"{dice} % 2 = 0 as even",
    ).coalesce(1)  # fmt: skip


def pick(df: DataFrame, dice: Random, kind: type | None = None) -> str | None:
    """A column of ``df`` that can be compared, of this type."""
    names = [
        field.name
        for field in df.schema.fields
        if (isinstance(field.dataType, kind) if kind else field.dataType.typeName() not in ("map", "struct", "array"))
    ]
    return dice.choice(names) if names else None


def some(df: DataFrame, dice: Random) -> list[str]:
    """Some of its columns, as they are asked for. Of two of one name neither can be."""
    return sorted(map(quote_name, dice.sample(df.columns, dice.randint(1, len(df.columns)))))


def compare(df: DataFrame, dice: Random) -> Any:
    name = pick(df, dice)
    if name is None:
        return sf.lit(True)
    text = sf.col(quote_name(name)).cast("string")
    return dice.choice([text > "2", text.isNotNull(), text.isNull(), text.isin("0", "1", "x"), text.eqNullSafe("1")])


def with_udf(df: DataFrame, dice: Random) -> DataFrame:
    name = pick(df, dice, LongType)
    made = dice.choice([sf.udf, sf.pandas_udf])(lambda x: x, "long")
    return df if name is None else df.withColumn("called", made(sf.col(quote_name(name))))


def grouped(df: DataFrame, dice: Random) -> DataFrame:
    by, of = pick(df, dice), pick(df, dice)
    if by is None or of is None:
        return df.groupBy().count()
    text = sf.col(quote_name(of)).cast("string")
    what = dice.choice([sf.count("*"), sf.count(text), sf.max(text), sf.countDistinct(text)])
    return df.groupBy(quote_name(by)).agg(what.alias("found"))


def ranked(df: DataFrame, dice: Random) -> DataFrame:
    by, of = pick(df, dice), pick(df, dice)
    if by is None or of is None:
        return df
    over = Window.partitionBy(quote_name(by)).orderBy(quote_name(of))
    ranks = df.withColumn("place", dice.choice([sf.rank, sf.dense_rank])().over(over))
    return dice.choice([ranks, ranks.where("place < 3")])


def joined(df: DataFrame, dice: Random) -> DataFrame:
    by = pick(df, dice)
    other = df.select(*some(df, dice))
    if by is None or by not in other.columns or df.schema[by].dataType == NullType():
        # Spark joins by columns of nothing one way where they are constants, another where they are cached.
        return df
    how = dice.choice(["inner", "left", "left_semi", "left_anti"])
    right = other.toDF(*[f"r{at}" for at in range(len(other.columns))])
    kept = df.join(right, df[quote_name(by)].eqNullSafe(right[f"r{other.columns.index(by)}"]), how)
    return kept.select(*map(quote_name, kept.columns[:MOST_COLUMNS]))


def asked_in_sql(df: DataFrame, dice: Random) -> DataFrame:
    by = pick(df, dice)
    name = f"v{abs(hash(df)) % 10**9}"
    df.createOrReplaceTempView(name)
    if by is None:
        return df.sparkSession.sql(f"select * from {name}")
    text = dice.choice([
        "select * from {v}",
        "select {c}, count(*) as n from {v} group by {c}",
        "select * from {v} where {c} in (select {c} from {v} where cast({c} as string) > '1')",
        "select * from {v} a where exists (select 1 from {v} b where b.{c} = a.{c})",
        "select *, (select max(cast({c} as string)) from {v}) as most from {v}",
        "with q as (select {c} from {v}), r as (select * from q) select q.{c} from q join r on q.{c} = r.{c}",
        "select * except ({c}) from {v}",
        "select {c} from {v} union all select {c} from {v}",
        "select {c} from {v} intersect select {c} from {v}",
        "select {c} from {v} except all select {c} from {v} where cast({c} as string) > '1'",
    ])  # fmt: skip
    return df.sparkSession.sql(text.format(v=name, c=quote_name(by)))


def in_pandas(df: DataFrame, dice: Random) -> DataFrame:
    name = pick(df, dice, LongType)
    if name is None:
        return df
    some_of_it = df.select(quote_name(name), sf.lit(1).alias("one"))
    if dice.random() < 0.5:
        return some_of_it.mapInPandas(lambda frames: frames, some_of_it.schema)
    return some_of_it.groupBy("one").applyInPandas(lambda frame: frame.sort_values(frame.columns[0]), some_of_it.schema)


def exploded(df: DataFrame, dice: Random) -> DataFrame:
    name = pick(df, dice, ArrayType)
    made = dice.choice([sf.explode, sf.explode_outer])
    return df if name is None else df.withColumn("item", made(quote_name(name)))


def nested(df: DataFrame, dice: Random) -> DataFrame:
    name = pick(df, dice, StructType)
    if name is None:
        return df
    inner = sf.col(f"{quote_name(name)}.{quote_name(dice.choice(df.select(f'{quote_name(name)}.*').columns))}")
    return dice.choice([df.withColumn("inner", inner), df.select(inner.alias("inner")), df.where(inner.isNotNull())])


def renamed(df: DataFrame, dice: Random) -> DataFrame:
    name = dice.choice(["renamed", "re.named", dice.choice(df.columns)])
    return dice.choice([
        lambda: df.withColumnRenamed(dice.choice(df.columns), name),
        lambda: df.toDF(*[f"{at}.{each}" for at, each in enumerate(df.columns)]),
    ])()  # fmt: skip


def dropped(df: DataFrame, dice: Random) -> DataFrame:
    return df.drop(*dice.sample(df.columns, dice.randint(0, len(df.columns) - 1)))


def distinct(df: DataFrame, dice: Random) -> DataFrame:
    plain = [quote_name(name) for name, kind in df.dtypes if "map<" not in kind and kind not in ("variant", "interval")]
    return df.select(*plain).distinct() if plain else df


def united(df: DataFrame, dice: Random) -> DataFrame:
    return dice.choice([df.union(df), df.unionByName(df.where(compare(df, dice)))])


def filled(df: DataFrame, dice: Random) -> DataFrame:
    return dice.choice([df.fillna(0), df.dropna(subset=[quote_name(dice.choice(df.columns))]), df.fillna("?")])


def told(df: DataFrame, dice: Random) -> DataFrame:
    return dice.choice([df.repartition(2), df.hint("broadcast"), df.alias("again"), df.coalesce(1)])


def filtered(df: DataFrame, dice: Random) -> DataFrame:
    return df.where(compare(df, dice))


def selected(df: DataFrame, dice: Random) -> DataFrame:
    return df.select(*some(df, dice))


def counted(df: DataFrame, dice: Random) -> DataFrame:
    return df.groupBy().count()


def text_of(df: DataFrame, dice: Random) -> DataFrame:
    name = pick(df, dice, StringType)
    return df if name is None else df.withColumn(name, sf.upper(quote_name(name)))


def in_one(df: DataFrame, dice: Random) -> DataFrame:
    """All of it, or what is inside, as one column."""
    return dice.choice([
        lambda: df.select(sf.struct("*").alias("all")),
        lambda: df.select("*", sf.struct(*some(df, dice)).alias("some")),
        lambda: df.select(sf.to_json(sf.struct(*some(df, dice))).alias("text")),
    ])()  # fmt: skip


OPS: tuple[Op, ...] = (
    filtered, selected, dropped, renamed, with_udf, grouped, ranked, joined, asked_in_sql, in_pandas, exploded, nested,
    distinct, united, filled, told, counted, text_of, in_one,
)  # fmt: skip

readers = st.lists(st.tuples(st.sampled_from(OPS), st.integers(0, 10**6)), min_size=1, max_size=4)
"""The words of one reader, each with a seed for what it picks."""


def read(df: DataFrame, reader: list[tuple[Op, int]]) -> DataFrame:
    """What the reader makes of ``df``."""
    for op, seed in reader:
        # A word that does not fit these columns is none, nor is what leaves no column: no table has none.
        with suppress(AnalysisException):
            made = op(df, Random(seed))
            df = made if made.columns else df
    return df


def collect(df: DataFrame) -> list[str]:
    """The rows in an order of their own."""
    return sorted(repr(row) for row in df.collect())
