"""Random flows over random frames: whatever is kept or stored of a dataset, readers say what they say without us."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from airflow_dagsched.launch.protocol.events import ColumnsRead, MadeAgain
from airflow_dagsched.spark.session.plan_columns import KeptColumns, find_use, select_use, unite_uses
from airflow_dagsched.spark.session.sessions import plan_anew
from tests.spark.odd_frames import frames, make_frame, make_storable, number_columns
from tests.spark.readers import Op, collect, read, readers
from tests.spark.running import Flow, Ran, run

Acting = Literal["no", "count", "rdd", "collect", "cache"]
Base = Literal["handed over", "stored", "another application's", "narrowed"]


@dataclass(frozen=True)
class Reader:
    """One step of a flow."""

    of: int
    """Which of the steps before it it reads; 0: the frame."""
    also: int | None
    """The same of a second one."""
    words: list[tuple[Op, int]]
    acting: Acting

    def find_inputs(self, at: int) -> list[int]:
        """The steps it reads, of those before the one at this place."""
        return [each % at for each in (self.of, self.also) if each is not None]


def step_readers(acting: st.SearchStrategy[Acting]) -> st.SearchStrategy[Reader]:
    """Mostly of the frame itself, else nobody shares anything."""
    of = st.one_of(st.just(0), st.integers(0, 3))
    return st.builds(Reader, of, st.one_of(st.none(), st.none(), of), readers, acting)


acts: st.SearchStrategy[Acting] = st.sampled_from(["no"] * 6 + ["count", "rdd", "collect", "cache"])  # type: ignore[list-item]
flows = st.lists(step_readers(acts), min_size=2, max_size=4)
bases: st.SearchStrategy[Base] = st.sampled_from(["handed over"] * 4 + ["stored", "another application's", "narrowed"])  # type: ignore[list-item]


def act(df: DataFrame, how: Acting) -> None:
    match how:
        case "count":
            df.count()
        case "rdd":
            df.rdd.map(len).count()
        case "collect":
            df.collect()
        case "cache":
            df.cache()


def meet(df: DataFrame, other: DataFrame) -> DataFrame:
    """Rows of ``df`` with those of ``other`` that have the same text in their first column."""
    right = number_columns(other).select(sf.col("c0").cast("string").alias("met"))
    left = number_columns(df)
    return left.join(right, left["c0"].cast("string").eqNullSafe(right["met"]), "inner")


def as_text(df: DataFrame) -> DataFrame:
    """The same rows, in types and names that can be stored."""
    numbered = number_columns(df)
    return numbered.select(*[sf.col(name).cast("string") for name in numbered.columns])


def build(reader: Reader, inputs: list[DataFrame], *, last: bool) -> DataFrame:
    """What the step returns."""
    df = read(inputs[0], reader.words)
    if len(inputs) > 1:
        df = meet(df, inputs[1])
    return as_text(df) if last else df


def make_flow(drawn: Any, chain: list[Reader], base: Base) -> tuple[Flow, list[str]]:
    """The flow, and its steps that nobody reads, whose rows are stored."""
    flow, inputs = Flow(), [reader.find_inputs(at) for at, reader in enumerate(chain, 1)]
    read_by_some = {each for found in inputs for each in found}
    last = [at for at in range(1, len(chain) + 1) if at not in read_by_some]

    def begin(spark: SparkSession) -> DataFrame:
        return make_storable(make_frame(spark, drawn)) if base != "handed over" else make_frame(spark, drawn)

    flow.call("s0", begin, store=() if base == "handed over" else ("",), way="the code")
    for at, (reader, found) in enumerate(zip(chain, inputs, strict=True), 1):
        step = make_step(reader, last=at in last)
        flow.call(f"s{at}", step, *(f"s{each}" for each in found), store=("",) if at in last else ())
    return flow, [f"s{at}" for at in last]


def make_step(reader: Reader, *, last: bool) -> Any:
    """Its function."""

    def call(spark: SparkSession, *inputs: DataFrame) -> DataFrame:
        act(inputs[0], reader.acting)
        return build(reader, [*inputs], last=last)

    return call


def run_by_hand(spark: SparkSession, flow: Flow) -> dict[str, list[str]]:
    """What the steps return, each by the same function, without anything in between."""
    found: dict[str, DataFrame] = {}
    for step, call in flow.calls.items():
        found[step] = call.function(spark, *(found[each.step] for each in call.args[1:]))  # type: ignore[misc]
    return {step: collect(df) for step, df in found.items() if flow.specs[step].store and step != "s0"}


def check(spark: SparkSession, drawn: Any, chain: list[Reader], base: Base, slots: int) -> None:
    """The flow says what its functions say."""
    flow, last = make_flow(drawn, chain, base)
    expected = run_by_hand(spark.newSession(), flow)
    ran = run_apart(spark, flow, base, last, expected, slots)
    if base == "narrowed":
        read = find_columns_read(ran)
        # As read, which is enough; and by chance, which may be less.
        for columns in (read, sorted(drawn_names(drawn))[::2]):
            if columns is not None:
                flow.specs["s0"] = replace(flow.specs["s0"], narrow={"": tuple(columns)})
                again = run_apart(spark, flow, base, last, expected, slots)
                assert columns is not read or not list_events(again, MadeAgain)
        # What all ask of the rows, which lets none of them out; and what some ask, or nobody.
        flow.specs["s0"] = replace(flow.specs["s0"], narrow={})
        shared, others = find_conditions(ran, chain)
        for where in (shared, *others):
            flow.specs["s0"] = replace(flow.specs["s0"], where={"": where})
            again = run_apart(spark, flow, base, last, expected, slots)
            assert where is not shared or not list_events(again, MadeAgain)
    spark.catalog.clearCache()


def run_apart(
    spark: SparkSession, flow: Flow, base: Base, last: list[str], expected: dict[str, list[str]], slots: int
) -> Ran:
    """Run the flow, its first step by itself where another application stores it; its rows are as they should be."""
    is_apart = base in ("another application's", "narrowed")
    with TemporaryDirectory() as folder:
        if is_apart:
            assert run(spark, Path(folder), flow, targets=("s0",)).ok
        targets = tuple(step for step in flow.specs if step != "s0" or not is_apart)
        ran = run(spark, Path(folder), flow, targets=targets, slots=slots)
        assert ran.ok, {step: done.failure for step, done in ran.done.items()}
        for step in last:
            assert collect(spark.read.parquet(ran.done[step].datasets[""])) == expected[step], step
    return ran


def drawn_names(drawn: Any) -> list[str]:
    """The names of its columns as it is stored."""
    return [f"{each.name}{at}" if at % 2 else each.name for at, each in enumerate(drawn[0])]


def list_events(ran: Ran, kind: type[Any]) -> list[Any]:
    return [event for batch in ran.batches for event in batch if isinstance(event, kind)]


def find_columns_read(ran: Ran) -> list[str] | None:
    """What was read of the first step's rows; None: all, or it is not told."""
    told = [columns for event in list_events(ran, ColumnsRead) for columns in event.read.get("s0/", {}).values()]
    if not told or None in told:
        return None
    return sorted({name for columns in told for name in columns})


def find_conditions(ran: Ran, chain: list[Reader]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """What all readers of the first step's rows ask of each of these, and what each asks, and what none does."""
    count = sum(0 in reader.find_inputs(at) for at, reader in enumerate(chain, 1))
    told = [each for event in list_events(ran, ColumnsRead) for each in event.where.get("s0/", {}).values()]
    shared = {*told[0]}.intersection(*told[1:]) if len(told) == count > 0 else set()
    return tuple(sorted(shared)), [*dict.fromkeys(told), ("(c0 IN ('none', 'at all'))",)]


together = given(frames, flows, bases, st.sampled_from([1, 2]))
quietly = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@settings(quietly, max_examples=15)
@together
def test_random_flows_say_what_their_functions_say(
    spark: SparkSession, drawn: Any, chain: list[Reader], base: Base, slots: int
) -> None:
    """Readers of readers, in SQL, DataFrames, Python and pandas; some act inside their functions."""
    check(spark, drawn, chain, base, slots)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@settings(quietly, max_examples=100)
@together
def test_many_random_flows(spark: SparkSession, drawn: Any, chain: list[Reader], base: Base, slots: int) -> None:
    """The same, more of them."""
    check(spark, drawn, chain, base, slots)


MARK = "odd__0"


@settings(quietly, max_examples=15)
@given(frames, st.lists(readers, min_size=1, max_size=4))
def test_plans_over_what_is_kept_say_the_same(spark: SparkSession, drawn: Any, chains: list[Any]) -> None:
    """The types and names of each reader's columns, too, and its rows over the columns that all use."""
    marked = make_frame(spark, drawn).alias(MARK)
    found = [(df, find_use(df, marked, MARK)) for df in (read(marked, words) for words in chains)]
    known = [(df, each) for df, each in found if each is not None]
    together = unite_uses(each for _, each in known)
    assert together is not None
    persisted = select_use(marked, together).persist()
    kept = KeptColumns(persisted, together, plan_anew(persisted, spark).withCachedData())
    for df, _ in known:
        over = kept.read(df, MARK)
        assert over.schema == df.schema
        assert collect(as_text(over)) == collect(as_text(df))
    kept.df.unpersist()
