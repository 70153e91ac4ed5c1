"""Random frames: columns of every type, null or not, some of one name, some with dots and backticks in their names.

What was done last is what a step returns: mostly columns were chosen, but it may be anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from hypothesis import strategies as st
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as sf

NAMES = (
    "a",
    "A",
    "a.b",
    "a`b",
    "x y",
    "",
    "count",
    "é",
    "select",
    "a#12",
    "b",
    "c",
    "d",
    "all",
    "value",
    "s__0",
    "a.b.c",
)
KINDS = (
    "id", "{d} % 5", "cast({d} % 4 as string)", "cast({d} % 3 as double)", "cast({d} % 9 as decimal(9, 2))",
    "{d} % 2 = 0",
    "date_add(date'2013-01-01', cast({d} % 4 as int))", "timestamp_ntz'2013-01-01' + make_dt_interval({d} % 3)",
    "timestamp_seconds({d} % 3)", "cast(cast({d} % 3 as string) as binary)", "cast(null as long)", "null",
    "struct({d} % 3 as x, cast(id as string) as y)",
    "named_struct('x.y', {d} % 2, 'z`z', struct(id as x, array(id) as y))",
    "array({d} % 2, id)", "array(struct({d} % 2 as x, id as y))", "map('k', {d} % 3)", "map({d} % 2, struct(id as x))",
    "make_dt_interval({d} % 3)", "parse_json(cast({d} % 3 as string))", "cast({d} % 3 as tinyint)",
)  # fmt: skip


@dataclass(frozen=True)
class OddColumn:
    """One column of a frame."""

    name: str
    kind: str
    """Of its values, in SQL."""
    nulls: int
    """Every so many values are null; 0: none, and Spark knows it."""

    def write(self, seed: int) -> str:
        """Its values in SQL."""
        value = self.kind.format(d=f"abs(hash(id, {seed}))")
        return f"if(abs(hash(id, {seed + 1})) % {self.nulls} = 0, null, {value})" if self.nulls else value


columns = st.builds(OddColumn, st.sampled_from(NAMES), st.sampled_from(KINDS), st.sampled_from([0, 0, 1, 2, 3]))


def _read_view(df: DataFrame) -> DataFrame:
    df.createOrReplaceTempView("odd")
    return df.sparkSession.sql("select /*+ broadcast(odd) */ * from odd")


Last = Literal["columns", "hint", "partitions", "order", "limit", "sample", "observe", "union", "cache", "view"]
LAST: dict[Last, Callable[[DataFrame], DataFrame]] = {
    "columns": lambda df: df,
    "hint": lambda df: df.hint("broadcast"),
    "partitions": lambda df: df.repartition(2),
    "order": lambda df: df.orderBy(sf.monotonically_increasing_id()),
    "limit": lambda df: df.limit(5),
    "sample": lambda df: df.sample(0.7, 7),
    "observe": lambda df: df.observe(Observation(), sf.count(sf.lit(1)).alias("rows")),
    "union": lambda df: df.union(df),
    "cache": lambda df: df.cache(),
    "view": _read_view,
}
"""What is done last."""


frames = st.tuples(
    st.lists(columns, min_size=4, max_size=12),
    st.integers(0, 99),
    st.one_of(st.just("columns"), st.sampled_from([*LAST])),
)
"""The columns of a frame, a seed for its values, and what is done last."""


def make_frame(spark: SparkSession, drawn: tuple[list[OddColumn], int, Last], count: int = 9) -> DataFrame:
    """The rows."""
    chosen, seed, last = drawn
    values = [sf.expr(each.write(seed + at)).alias(each.name) for at, each in enumerate(chosen)]
    return LAST[last](spark.range(count).coalesce(1).select(*values))


def make_storable(df: DataFrame) -> DataFrame:
    """A frame whose columns have one name each: others can't be stored."""
    seen: set[str] = set()
    names = []
    for at, name in enumerate(df.columns):
        names.append(f"{name}{at}" if name.lower() in seen or not name else name)
        seen.add(names[-1].lower())
    return df.toDF(*names)


def number_columns(df: DataFrame) -> DataFrame:
    """The same rows, the columns called by their places."""
    return df.toDF(*[f"c{at}" for at in range(len(df.columns))])
