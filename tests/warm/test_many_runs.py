"""Two hundred runs through one application: rows as of cold ones, and memory that does not grow."""

from __future__ import annotations

import json
import os
from pathlib import Path
from statistics import linear_regression
from typing import Any

import pytest

from airflow_dagsched.launch.warm.terms import Terms
from tests.warm.kit import Lab, flow_of, open_lab, wait_until
from tests.warm.test_serving import find_host

pytestmark = [pytest.mark.spark, pytest.mark.warm]

RUNS = int(os.environ.get("DAGSCHED_WARM_RUNS", "200"))
TEMPORARY = "temporary"
FLAT = ("heap", "host", "keeper", "threads", "files", "temporary")
"""What may not grow. Java takes and gives back memory of its own as it likes: that is told, not looked at."""
LEAST = 0.05
"""That is growth, in MiB or pieces a run."""
POOLS = ("block-manager-", "shuffle-exchang", "ResultQueryStag")
"""How names of their threads begin, of which Linux keeps 15 characters."""
SETTLED = 20
"""Runs after which caches are as full as they get."""


def orders(spark: Any, interval: Any) -> Any:
    day = int(interval.key)
    return spark.range(2000).selectExpr("id", f"(id * 7919 + {day}) % 97 as shop", f"id % 13 + {day} as amount")


def by_shop(orders: Any) -> Any:
    return orders.groupBy("shop").sum("amount").withColumnRenamed("sum(amount)", "amount")


def largest(by_shop: Any) -> Any:
    from pyspark.sql.functions import udf

    double = udf(lambda amount: amount * 2, "long")
    found = by_shop.select("shop", double("amount").alias("twice")).orderBy("twice", "shop").collect()
    return [[row.shop, row.twice] for row in found]


def count_expected(day: int) -> list[list[int]]:
    """The same without Spark."""
    sums: dict[int, int] = {}
    for number in range(2000):
        shop = (number * 7919 + day) % 97
        sums[shop] = sums.get(shop, 0) + number % 13 + day
    return [[shop, twice] for twice, shop in sorted((2 * amount, shop) for shop, amount in sums.items())]


def measure(lab: Lab) -> dict[str, float]:
    """MiB: of Java's heap, collected; resident, of each process; and how many threads and open files Java has, and how
    many files are in temporary folders.
    """
    wait_until(lambda: (lab.find_status() is not None) and lab.find_status().state == "idle", "it is clean", 120)  # type: ignore[union-attr]
    status, processes = lab.find_status(), find_host(lab)
    assert status is not None
    found: dict[str, float] = {"heap": status.heap_mb}
    for name, pid in processes.items():
        lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
        found[name] = int(lines["VmRSS"].split()[0]) / 1024
    found["threads"], found["files"] = count_threads(processes["java"]), len(list_open_files(processes["java"]))
    found["temporary"] = len(list((lab.folder / TEMPORARY).rglob("*")))
    return found


def count_threads(pid: int) -> int:
    """But for pools of Spark's that have a thread for each task of the last minute, up to 128 or 1024."""
    names = [each.read_text() for each in Path(f"/proc/{pid}/task").glob("*/comm")]
    return sum(not name.startswith(POOLS) for name in names)


def list_open_files(pid: int) -> list[Path]:
    return list(Path(f"/proc/{pid}/fd").iterdir())


def test_many_runs_are_as_cold_ones_and_leave_memory_flat(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    samples: list[dict[str, float]] = []
    temporary = tmp_path / TEMPORARY
    temporary.mkdir()
    with open_lab(tmp_path, terms=Terms(120.0, RUNS)) as lab:
        lab.variables["TMPDIR"] = lab.settings["spark.local.dir"] = str(temporary)
        lab.settings["spark.driver.extraJavaOptions"] = f"-Djava.io.tmpdir={temporary}"
        for number in range(1, RUNS):
            ran = lab.run(
                flow_of(orders, by_shop, largest, dated=True), interval_key=str(number), run_id=f"run {number}"
            )
            assert (ran.code, ran.number) == (0, number), ran.output[-3000:]
            assert ran.values["largest"] == count_expected(number)
            samples.append(measure(lab))
        settled = samples[min(SETTLED, len(samples) // 2) :]
        slopes = {
            name: linear_regression(range(len(settled)), [each[name] for each in settled]).slope for name in settled[0]
        }
        with capsys.disabled():  # also of a test that passes
            print(json.dumps({"first": samples[0], "last": samples[-1], "slope per run": slopes}))
        grown = {name: slopes[name] for name in FLAT if slopes[name] >= LEAST}
        assert not grown, slopes
        last = lab.run(flow_of(orders, by_shop, largest, dated=True), interval_key="0", run_id="last")
        assert last.number == RUNS
        wait_until(lambda: not lab.list_warm(), "it has served its runs")
