"""In which order, and how parallel, the steps of a group run, on a real Spark of two cores."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from airflow_dagsched.launch.managers.parallelism import make_session_settings
from airflow_dagsched.launch.protocol.manifest import StepSpec
from airflow_dagsched.launch.steps.turns import Gate, TurnPlan
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.settings import Settings
from airflow_dagsched.spark.driver.engine import run_in_order
from airflow_dagsched.spark.steps.lineage import Lineage
from tests.plan.drawn import drawn, standalone
from tests.spark.running import Flow, run

PARALLEL = make_session_settings(5, ())


class Clock:
    """When each task of each step ran, by files: tasks run in processes of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def sleep(self, step: str, tasks: int, seconds: float) -> Callable[..., Any]:
        """A step of so many tasks, each of so many seconds."""
        folder = str(self.folder)

        def work(spark: SparkSession) -> int:
            def wait(index: int) -> int:
                began = time.time()
                time.sleep(seconds)
                Path(folder, f"{step}-{index}").write_text(f"{began} {time.time()}")
                return index

            return spark.sparkContext.parallelize(range(tasks), tasks).map(wait).count()

        work.__name__ = step
        return work

    def read(self, step: str) -> list[tuple[float, float]]:
        """Begin and end of its tasks, the first first."""
        found = [each.read_text().split() for each in self.folder.glob(f"{step}-*")]
        return sorted((float(began), float(ended)) for began, ended in found)


def test_the_plan_s_list_and_slots_are_kept(spark: SparkSession, tmp_path: Path) -> None:
    """
    2 cores    c c c c c c    c begins with a, and b when a has ended: not a and b first, with c behind them.
               a a a b b b
    """
    steps = {"a": 15, "b": 15, "c": 30}
    group = plan(
        drawn("a; b; c", **{name: {"runtime_s": each} for name, each in steps.items()}),
        standalone(2),
        Settings(slots=2),
    ).groups[0]
    clock, flow = Clock(tmp_path), Flow()
    for name, seconds in steps.items():
        flow.step(clock.sleep(name, 1, seconds / 10))
    ran = run(spark, tmp_path, flow, slots=group.slots, order=group.steps, begins=group.begins, cores=2)
    assert ran.ok
    (a, a_end), (b, _), (c, c_end) = (clock.read(name)[0] for name in "abc")
    assert max(a, c) < b
    assert a_end <= b < c_end


def test_a_wide_step_has_all_its_cores_before_the_next_begins(spark: SparkSession, tmp_path: Path) -> None:
    """
    2 cores    a a a c c c c    a: 3 tasks. c waits for the third to have a core, though a slot is free from the start,
               a a a a a a .    and is not overtaken by b, which needs one as well.
    """
    clock, flow = Clock(tmp_path), Flow()
    for name in "bc":
        flow.step(clock.sleep(name, 1, 0.5))
    flow.step(clock.sleep("a", 3, 0.7))
    ran = run(spark, tmp_path, flow, slots=3, order=("a", "c", "b"), instances={"a": 3}, cores=2)
    assert ran.ok
    third, (c, _), (b, _) = clock.read("a")[2], clock.read("c")[0], clock.read("b")[0]
    assert third[0] <= c <= b


def test_steps_that_run_nothing_in_spark_hold_nobody_up(spark: SparkSession, tmp_path: Path) -> None:
    """a waits outside Spark for b, which comes after it: with its core counted both would wait for ever."""
    flow, sign = Flow(), tmp_path / "sign"

    def a() -> bool:
        end = time.monotonic() + 60
        while not sign.exists() and time.monotonic() < end:
            time.sleep(0.05)
        return sign.exists()

    def b() -> None:
        sign.touch()

    flow.step(a)
    flow.step(b)
    ran = run(spark, tmp_path, flow, slots=2, order=("a", "b"), instances={"a": 2}, cores=1)
    assert ran.done["a"].value is True


def test_steps_that_call_nothing_need_neither_slot_nor_core() -> None:
    """a ──> b ──> c, x: a and b are reused while x, which is wide, has the only slot; then c has it."""
    specs = tuple(
        StepSpec(name, "", upstream=above) for name, above in (("x", ()), ("a", ()), ("b", ("a",)), ("c", ("b",)))
    )
    turns, told, reused = TurnPlan(("x", "a", "b", "c"), {}, {"x": 9}, 1), list[str](), threading.Event()

    def take(unit: tuple[str, ...]) -> None:
        if unit == ("x",):
            assert reused.wait(60)
        told.append(unit[0])
        if unit == ("b",):
            reused.set()

    gate = Gate(turns, lambda steps: {}, lambda: 1)
    run_in_order(Lineage(specs), take, 1, turns, gate, frozenset("ab"))
    assert told == ["a", "b", "x", "c"]


def test_scans_and_shuffles_are_as_parallel_as_the_step(spark: SparkSession, tmp_path: Path) -> None:
    """wide: 5 partitions of made rows and after a shuffle, small as they are; plain has Spark's own."""
    flow, session = Flow(), {"wide": {**PARALLEL}}

    def wide(spark: SparkSession) -> list[int]:
        return count_partitions(spark)

    def plain(spark: SparkSession) -> list[int]:
        return count_partitions(spark)

    flow.step(wide)
    flow.step(plain)
    ran = run(spark, tmp_path, flow, session=session)
    assert ran.done["wide"].value == [5, 5]
    assert 5 not in ran.done["plain"].value


def test_a_lazy_chain_is_as_parallel_as_its_widest_step(spark: SparkSession, tmp_path: Path) -> None:
    """a (5) -> b (1), whose job has a's shuffle in it."""
    flow, narrow = Flow(), {name: "1" if value == "5" else value for name, value in PARALLEL.items()}

    def a(spark: SparkSession) -> DataFrame:
        return spark.range(100).repartition("id")

    def b(a: DataFrame) -> DataFrame:
        return a.where("id >= 0")

    flow.step(a)
    flow.step(b, store=("",))
    ran = run(spark, tmp_path, flow, session={"a": PARALLEL, "b": narrow}, instances={"a": 5, "b": 1})
    assert len(list(Path(ran.done["b"].datasets[""]).glob("*.parquet"))) == 5


def count_partitions(spark: SparkSession) -> list[int]:
    """Of rows that are made, and of groups of them after a shuffle."""
    rows = spark.sql("select id % 10 as id from range(100)")
    return [rows.rdd.getNumPartitions(), rows.groupBy("id").count().rdd.getNumPartitions()]
