"""The engine on a real Spark: what is executed, how often, and what is said about it.

A step's executions are counted by an accumulator in a function of its rows.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from airflow_dagsched.launch.protocol.calls import Output
from airflow_dagsched.launch.protocol.manifest import Repeat
from airflow_dagsched.launch.protocol.tables import Table
from airflow_dagsched.launch.protocol.wire import DEEPEST
from tests.garbled import nested
from tests.spark.running import Flow, run


class Counter:
    """Counts the rows that pass."""

    def __init__(self, spark: SparkSession) -> None:
        self.seen = spark.sparkContext.accumulator(0)

    def through(self, df: DataFrame) -> DataFrame:
        seen = self.seen

        def count(x: int) -> int:
            seen.add(1)
            return x

        return df.withColumn("id", sf.udf(count, "long").asNondeterministic()("id"))


@pytest.fixture
def counter(spark: SparkSession) -> Counter:
    return Counter(spark)


def kept(spark: SparkSession) -> set[int]:
    """Ids of what is kept; what earlier tests left may go at any moment, when Java collects it."""
    return {int(rdd) for rdd in spark.sparkContext._jsc.getPersistentRDDs().keySet()}


def test_a_lazy_chain_is_executed_once_by_its_write(spark: SparkSession, tmp_path: Path, counter: Counter) -> None:
    """a -> b -> c -> (dataset): one job; the batch of the commit has all three, those above first."""
    flow = Flow()

    def a(spark):
        return counter.through(spark.range(10))

    def b(a):
        return a.where("id > 2")

    def c(b):
        return b.select("id")

    flow.step(a)
    flow.step(b)
    flow.step(c, store=("",))
    ran = run(spark, tmp_path, flow)
    assert ran.ok
    assert counter.seen.value == 10
    assert [event.step for event in ran.batches[-1]] == ["a", "b", "c"]
    assert (ran.done["c"].rows, ran.done["c"].fused, ran.done["a"].fused) == (7, ("a", "b"), ("b", "c"))
    assert ran.done["a"].rows is None
    assert ran.done["a"].seconds == ran.done["c"].seconds
    assert spark.read.parquet(ran.done["c"].datasets[""]).count() == 7


def test_several_readers_share_one_execution(spark: SparkSession, tmp_path: Path, counter: Counter) -> None:
    """a -> b, a -> c: a is kept for both, counted, and released after the last."""
    flow, before = Flow(), kept(spark)

    def a(spark):
        return counter.through(spark.range(10))

    def b(a):
        return a.where("id > 2")

    def c(a):
        return a.limit(1)

    flow.step(a)
    flow.step(b)
    flow.step(c)
    ran = run(spark, tmp_path, flow)
    assert counter.seen.value == 10
    assert {step: done.rows for step, done in ran.done.items()} == {"a": 10, "b": 7, "c": 1}
    assert kept(spark) <= before


@pytest.mark.parametrize("use", ["self join", "count and return", "two datasets", "show", "rdd", "statement"])
def test_a_reader_that_reads_twice_executes_once(
    spark: SparkSession, tmp_path: Path, counter: Counter, use: str
) -> None:
    """a -> b where b needs a's rows more than once."""
    flow, before = Flow(), kept(spark)

    def a(spark):
        return counter.through(spark.range(10))

    def b(spark, a) -> Any:
        match use:
            case "self join":
                return a.alias("x").join(a.alias("y"), "id")
            case "count and return":
                a.count()
                return a
            case "two datasets":
                return {"even": a.where("id % 2 = 0"), "odd": a.where("id % 2 = 1")}
            case "show":
                a.show()
                return a.where("id > 3")
            case "rdd":
                return spark.createDataFrame([(a.rdd.count(),), (a.count(),)], "n long")
            case "statement":
                a.createOrReplaceTempView("a")
                spark.sql("cache table c as select * from a")
                return spark.table("a")

    flow.step(a)
    flow.step(b)
    assert run(spark, tmp_path, flow).states == {"a": "success", "b": "success"}
    spark.catalog.dropTempView("c")
    assert counter.seen.value == 10
    assert len(kept(spark) - before) <= (use == "statement")
    spark.catalog.clearCache()


def test_the_order_of_a_plain_edge_is_kept(spark: SparkSession, tmp_path: Path, counter: Counter) -> None:
    """a ~~> b (no rows): a has ended, not just been defined, when b is called; its reader does not run it again."""
    flow, seen = Flow(), []

    def a(spark):
        return counter.through(spark.range(10))

    def b():
        seen.append(counter.seen.value)

    def c(a):
        return a

    flow.step(a)
    flow.step(b, after=("a",))
    flow.step(c, after=("b",))
    assert run(spark, tmp_path, flow).ok
    assert seen == [10]
    assert counter.seen.value == 10


def test_a_scan_with_several_readers_is_not_kept(spark: SparkSession, tmp_path: Path) -> None:
    """Reading columns of a Parquet file again is cheaper than keeping all of it."""
    flow, path, before, during = Flow(), str(tmp_path / "in"), kept(spark), set[int]()
    spark.range(10).withColumn("b", sf.col("id") * 2).write.parquet(path)

    def a(spark):
        return spark.read.parquet(path).where("id > 3")

    def b(spark, a):
        during.update(kept(spark))
        return a.select("b")

    def c(a):
        return a.groupBy().count()

    flow.step(a)
    flow.step(b)
    flow.step(c)
    ran = run(spark, tmp_path, flow)
    assert {step: done.rows for step, done in ran.done.items()} == {"a": None, "b": 6, "c": 1}
    assert during <= before


def test_values_dicts_sql_and_context(spark: SparkSession, tmp_path: Path) -> None:
    """What a step may return, and what it may ask for."""
    flow = Flow()

    def split(spark, interval, ds):
        assert (interval.key, interval.start.day, ds) == ("2013-01-01", 1, "2013-01-01")
        df = spark.range(10)
        return {"low": df.where("id < 3"), "high": df.where("id >= 3")}

    def n(split__low):
        return {"n": split__low.count()}

    def more(spark, n, split__high):
        assert n == {"n": 3}
        return split__high

    flow.step(split, store=("high",))
    flow.step(n)
    flow.step(more)
    flow.sql("total", "select sum(id) s from more", "more", writes=Table(str(tmp_path / "total")))
    ran = run(spark, tmp_path, flow, interval_start="2013-01-01T00:00:00+00:00", context={"ds": "2013-01-01"})
    assert ran.states == dict.fromkeys(["more", "n", "split", "total"], "success")
    assert ran.done["n"].value == {"n": 3}
    assert list(ran.done["split"].datasets) == ["high"]
    assert ran.done["total"].wrote == f"file://{tmp_path}/total"
    assert spark.read.parquet(str(tmp_path / "total")).collect() == [(42,)]


def test_views_of_one_name_do_not_meet(spark: SparkSession, tmp_path: Path) -> None:
    """Steps side by side, each with its own view ``x`` and settings, also through the builder."""
    flow = Flow()

    def view(spark: SparkSession, number: int) -> Any:
        spark.range(number).createOrReplaceTempView("x")
        spark.conf.set("spark.sql.session.timeZone", f"+0{number}:00")
        again = SparkSession.builder.getOrCreate()
        zone = spark.conf.get("spark.sql.session.timeZone")
        again.stop()
        return [again.sql("select count(*) from x").first()[0], zone]

    def one(spark):
        return view(spark, 1)

    def two(spark):
        return view(spark, 2)

    def three(spark):
        return view(spark, 3)

    for step in (one, two, three):
        flow.step(step)
    ran = run(spark, tmp_path, flow, slots=3)
    assert [ran.done[step].value for step in ("one", "two", "three")] == [[1, "+01:00"], [2, "+02:00"], [3, "+03:00"]]


def test_a_failed_step_stops_only_what_is_below(spark: SparkSession, tmp_path: Path) -> None:
    """bad -> below; good beside it; ``always`` and ``one_failed`` after it run."""
    flow = Flow()

    def bad(spark):
        raise ValueError("no such luck")

    def below(bad):
        return bad

    def good(spark):
        return spark.range(3)

    def mop():
        return "mopped"

    def alarm():
        return "rung"

    flow.step(bad)
    flow.step(below)
    flow.step(good)
    flow.step(mop, after=("bad", "good"), rule="all_done")
    flow.step(alarm, after=("good",), rule="one_failed", outside={"ordinary": "failed"})
    ran = run(spark, tmp_path, flow)
    assert not ran.ok
    assert ran.states == {
        "alarm": "success", "bad": "failed", "below": "upstream_failed", "good": "success", "mop": "success",
    }  # fmt: skip
    failure = ran.done["bad"].failure
    assert failure is not None
    assert (failure.kind, failure.message) == ("author", "ValueError: no such luck")
    assert "in bad" in failure.traceback
    assert "airflow_dagsched/spark" not in failure.traceback


def test_a_fused_failure_is_the_guilty_steps(spark: SparkSession, tmp_path: Path) -> None:
    """a -> b -> c: a's function fails in c's job; d, that c also reads, is not blamed."""
    flow = Flow()

    def a(spark):
        @sf.udf("long")
        def broken(x):
            return 1 // (x - x)

        return spark.range(3).select(broken("id").alias("id"))

    def b(a):
        return a.where("id > 0")

    def d(spark):
        return spark.range(3)

    def c(b, d):
        return b.join(d, "id")

    flow.step(a)
    flow.step(b)
    flow.step(d)
    flow.step(c)
    ran = run(spark, tmp_path, flow)
    assert ran.states == {"a": "failed", "b": "upstream_failed", "c": "upstream_failed", "d": "upstream_failed"}
    failure = ran.done["a"].failure
    assert failure is not None
    assert failure.message.endswith("ZeroDivisionError: integer division or modulo by zero")
    assert "c" in ran.done["d"].reason


def test_a_failing_expression_is_found_by_its_line(spark: SparkSession, tmp_path: Path) -> None:
    """No function of the author's: Spark says where the expression was written."""
    flow = Flow()

    def a(spark):
        return spark.range(3).withColumn("x", sf.lit(1) / (sf.col("id") * 0))

    def b(a):
        return a

    flow.step(a)
    flow.step(b)
    assert run(spark, tmp_path, flow).states == {"a": "failed", "b": "upstream_failed"}


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (object(), "return a DataFrame"),
        ("x" * 50_000, "50002 bytes of JSON"),
        ({"a": 1, "b": float("nan")}, "return a DataFrame"),
        (nested(DEEPEST), "more than 100 levels"),
    ],
)
def test_a_wrong_answer_says_what_to_return(spark: SparkSession, tmp_path: Path, returned: Any, message: str) -> None:
    flow = Flow()

    def a():
        return returned

    flow.step(a)
    failure = run(spark, tmp_path, flow).done["a"].failure
    assert failure is not None
    assert message in failure.message
    assert failure.message.startswith("step 'a' ")


def test_a_missing_dataset_is_named(spark: SparkSession, tmp_path: Path) -> None:
    flow = Flow()

    def a(spark):
        return {"good": spark.range(3)}

    def b(a__bad):
        return a__bad

    flow.step(a)
    flow.step(b)
    ran = run(spark, tmp_path, flow)
    assert ran.states == {"a": "failed", "b": "upstream_failed"}
    assert "did not return the dataset 'bad'" in str(ran.done["a"].failure)


def test_a_missing_path_and_sys_exit(spark: SparkSession, tmp_path: Path) -> None:
    """Each is its own step's failure, with what to do about it."""
    flow = Flow()

    def reader(spark):
        return spark.read.parquet(str(tmp_path / "nowhere"))

    def quitter():
        sys.exit(0)

    flow.step(reader)
    flow.step(quitter)
    ran = run(spark, tmp_path, flow)
    assert "input path is missing: file:" in str(ran.done["reader"].failure)
    assert "sys.exit(0)" in str(ran.done["quitter"].failure)


def test_skipped_steps_and_rows_nobody_read(spark: SparkSession, tmp_path: Path) -> None:
    """a -> b, and b is skipped by a branch: a's rows are never made."""
    flow = Flow()

    def a(spark):
        return spark.range(3)

    def b(a):
        return a

    def c(b):
        return b

    flow.step(a)
    flow.step(b, skipped_by="choose")
    flow.step(c)
    ran = run(spark, tmp_path, flow)
    assert ran.ok
    assert ran.states == {"a": "pruned", "b": "skipped", "c": "skipped"}
    assert ran.done["b"].reason == "skipped by 'choose'"


def test_what_is_committed_is_reused(spark: SparkSession, tmp_path: Path, counter: Counter) -> None:
    """a -> b -> (table) -> c: a second try reads b's table; a cleared b runs again, once, and a for it."""
    flow = Flow()

    def a(spark):
        return counter.through(spark.range(10))

    def b(a):
        return a.where("id > 2")

    def c(b):
        return b.count()

    flow.step(a)
    flow.step(b, writes=Table(str(tmp_path / "b")))
    flow.step(c)
    first = run(spark, tmp_path, flow)
    second = run(spark, tmp_path, flow, try_number=2)
    assert first.states == {"a": "success", "b": "success", "c": "success"}
    assert second.states == {"a": "reused", "b": "reused", "c": "reused"}
    assert (second.done["b"].wrote, second.done["b"].rows, second.done["c"].value) == (f"file://{tmp_path}/b", 7, 7)
    assert counter.seen.value == 10
    flow.step(b, writes=Table(str(tmp_path / "b")), force=True)
    third = run(spark, tmp_path, flow, try_number=3, clear_number=1)
    assert third.states == {"a": "success", "b": "success", "c": "reused"}
    retried = run(spark, tmp_path, flow, try_number=4, clear_number=1)
    assert retried.states == second.states
    other = run(spark, tmp_path, flow, run_id="another")
    assert other.ran == ["a", "b", "c"]


def test_an_earlier_group_is_read_or_made_again(spark: SparkSession, tmp_path: Path) -> None:
    """a (earlier group) -> b (target): from its path, from its commit, or by running a again, silently."""
    flow = Flow()

    def a(spark):
        print("again")
        return spark.range(10)

    def b(a):
        return a.count()

    flow.step(a, store=("",))
    flow.step(b)
    known = run(spark, tmp_path, flow, targets=("a",)).done["a"].datasets[""]
    by_path = run(spark, tmp_path, flow, targets=("b",), try_number=2, datasets={"a/": known})
    by_commit = run(spark, tmp_path, flow, targets=("b",), try_number=3)
    gone = run(spark, tmp_path, flow, targets=("b",), run_id="other", datasets={"a/": str(tmp_path / "gone")})
    assert [ran.done["b"].value for ran in (by_path, by_commit, gone)] == [10, 10, 10]
    assert [list(ran.done) for ran in (by_path, by_commit, gone)] == [["b"], ["b"], ["b"]]
    assert gone.ran == ["b"]
    assert run(spark, tmp_path, flow, targets=("a",), run_id="other", try_number=2).states == {"a": "reused"}


def test_no_secret_leaves(spark: SparkSession, tmp_path: Path) -> None:
    """A password in an argument is printed, logged and raised: never sent."""
    flow = Flow()

    def a(url):
        print("connecting to", url)
        raise ValueError(f"cannot connect: {url}")

    flow.step(a)
    flow.calls["a"].kwargs["url"] = "jdbc:postgresql://me:s3cr%40t@db/x?password=tops3cret"  # type: ignore[index]
    ran = run(spark, tmp_path, flow)
    assert ran.lines("a") == ["connecting to jdbc:postgresql://me:***@db/x?password=***"]
    (events,) = tmp_path.glob("events-*.jsonl")
    assert "s3cr" not in events.read_text()


def test_lines_belong_to_their_step(spark: SparkSession, tmp_path: Path) -> None:
    """Two steps print in turns while both run."""
    import logging
    import threading

    flow, meet = Flow(), threading.Barrier(2, timeout=60)
    logger = logging.getLogger("tests.engine")

    def speak(name: str) -> None:
        for number in range(3):
            meet.wait()
            print(name, number, end="\n" if number < 2 else "")
            logger.warning("%s logs", name)

    def one():
        speak("one")

    def two():
        speak("two")

    flow.step(one)
    flow.step(two)
    ran = run(spark, tmp_path, flow)
    for step in ("one", "two"):
        assert [line for line in ran.lines(step) if "logs" not in line] == [f"{step} {number}" for number in range(3)]
        assert sum(f"{step} logs" in line for line in ran.lines(step)) == 3


def test_output_of_a_written_step_is_what_was_committed(spark: SparkSession, tmp_path: Path) -> None:
    """a's rows are random; whoever reads them reads those of the table."""
    flow = Flow()

    def a(spark):
        return spark.range(10).withColumn("x", sf.rand())

    def b(a):
        return [row.x for row in a.orderBy("id").collect()]

    def c(a):
        return [row.x for row in a.orderBy("id").collect()]

    flow.step(a, writes=Table(str(tmp_path / "a")))
    flow.step(b)
    flow.step(c)
    ran = run(spark, tmp_path, flow)
    there = [row.x for row in spark.read.parquet(str(tmp_path / "a")).orderBy("id").collect()]
    assert ran.done["b"].value == ran.done["c"].value == there
    assert Output("a") in flow.specs["b"].inputs


ANOTHER_DAY = {"run_id": "another day", "interval_key": "2013-01-02"}


def test_what_is_the_same_for_every_interval_is_made_once(
    spark: SparkSession, tmp_path: Path, counter: Counter
) -> None:
    """a (dataset for another group) and w (a whole table) see no interval; d, below them, does."""
    flow, static = Flow(), {"dated": False, "within_run": False}

    def a(spark):
        return counter.through(spark.range(10))

    def w(a):
        return counter.through(a)

    def d(a):
        return a.where("id > 2")

    flow.step(a, store=("",), **static)
    flow.step(w, writes=Table(str(tmp_path / "w")), **static)
    flow.step(d, store=("",))
    first, second = run(spark, tmp_path, flow), run(spark, tmp_path, flow, **ANOTHER_DAY)
    assert first.states == dict.fromkeys("adw", "success")
    assert second.states == {"a": "reused", "d": "success", "w": "reused"}
    assert counter.seen.value == 20
    assert second.done["a"].datasets == first.done["a"].datasets
    assert second.done["d"].rows == 7


def test_a_whole_table_that_rows_were_added_to_is_written_for_each_interval(
    spark: SparkSession, tmp_path: Path
) -> None:
    """w writes the whole table, d (dated) appends to it: as with one submit a step, the last day's rows are left."""
    flow, table = Flow(), str(tmp_path / "t")

    def w(spark):
        return spark.range(3)

    def d(spark, ds):
        return spark.range(100 + int(ds), 101 + int(ds))

    flow.step(w, writes=Table(table), dated=False, within_run=False)
    flow.step(d, writes=Table(table, mode="append"), after=("w",))
    for day in (1, 2):
        key = f"2013-01-0{day}"
        ran = run(spark, tmp_path, flow, run_id=key, interval_key=key, context={"ds": str(day)})
        assert ran.states == {"w": "success", "d": "success"}
    again = run(spark, tmp_path, flow, run_id=key, interval_key=key, context={"ds": "2"}, try_number=2)
    assert again.states == {"w": "reused", "d": "reused"}
    assert sorted(row.id for row in spark.read.parquet(table).collect()) == [0, 1, 2, 102]


def test_a_step_without_rows_ends_once(spark: SparkSession, tmp_path: Path) -> None:
    """a ─┬─> count ──> told      count leaves a value, mail and told nothing, sink rows that nobody reads
    ├─> mail
    ├─> sink
    └─> last ✗
    """
    flow, called, broken = Flow(), [], [True]

    def a(spark):
        return spark.range(10)

    def count(a):
        called.append("count")
        return {"rows": a.count()}

    def told(count):
        called.append(f"told {count['rows']}")

    def mail(a):
        called.append("mail")

    def sink(a):
        called.append("sink")
        return a.where("id > 2")

    def last(count):
        assert count == {"rows": 10}
        called.append("last")
        if broken:
            raise ValueError("not yet")

    for step in (a, count, told, mail, sink, last):
        flow.step(step)
    first = run(spark, tmp_path, flow)
    assert first.states == {**dict.fromkeys(["a", "count", "mail", "sink", "told"], "success"), "last": "failed"}
    broken.clear()
    second = run(spark, tmp_path, flow, try_number=2)
    assert second.states == {**dict.fromkeys(["a", "count", "mail", "sink", "told"], "reused"), "last": "success"}
    assert (second.done["count"].value, second.done["sink"].rows) == ({"rows": 10}, 7)
    assert second.ran == ["last"]
    assert sorted(called) == ["count", "last", "last", "mail", "sink", "told 10"]
    assert run(spark, tmp_path, flow, run_id="another").ran == sorted(flow.specs)


def test_a_value_is_made_once_for_all_groups(spark: SparkSession, tmp_path: Path) -> None:
    """n (earlier group) -> r (target): r gets n's value, and n is not called again for it."""
    flow, called = Flow(), []

    def n():
        called.append("n")
        return 7

    def r(n):
        return n + 1

    flow.step(n, store=("",))
    flow.step(r)
    assert run(spark, tmp_path, flow, targets=("n",)).done["n"].value == 7
    assert run(spark, tmp_path, flow, targets=("r",), try_number=2).done["r"].value == 8
    assert called == ["n"]


def test_a_loop_for_its_effect_ends_once(spark: SparkSession, tmp_path: Path) -> None:
    """(a -> b) twice, nobody reads it; other fails, and a retry runs other alone."""
    flow, called = Flow(), []

    def a(spark):
        called.append("a")
        return spark.range(3)

    def b(a):
        called.append("b")
        return a

    def other():
        raise ValueError("no")

    flow.step(a, repeat="l")
    flow.step(b, repeat="l")
    flow.step(other)
    loop = (Repeat("l", ("a", "b"), 2),)
    first = run(spark, tmp_path, flow, repeats=loop)
    second = run(spark, tmp_path, flow, repeats=loop, try_number=2)
    assert (first.states["b"], second.states) == ("success", {"a": "reused", "b": "reused", "other": "failed"})
    assert called == ["a", "b"] * 2
