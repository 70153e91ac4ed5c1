"""The example DAGs: short, planned as their comments say, and right when ``dag.test()`` runs them on real Spark."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.dataset
import pytest
from airflow.dag_processing.dagbag import DagBag

from airflow_dagsched.provider.clusters.planner_hook import list_dataflows
from tests.dags.conftest import CHECKOUT, Play

EXAMPLES = sorted(path.stem for path in (CHECKOUT / "dags").glob("*.py"))
GROUPS = {
    "backfill": [["sales", "takings"]],
    "branch_between": [["readings"], ["averages", "plain_copy"]],
    "composite": [["links", "start", "votes", "ranks", "top"]],
    "flights": [
        [
            "weather",
            "planes",
            "departures",
            "clean",
            "enriched",
            "by_route",
            "by_carrier",
            "by_weather",
            "airports",
            "worst",
        ]
    ],
    "sql_steps": [["orders", "totals", "best"]],
}


def rows(table: Path) -> list[dict[str, object]]:
    return pyarrow.dataset.dataset(table, format="parquet", partitioning="hive").to_table().to_pylist()


def test_all_examples_are_planned_here() -> None:
    assert sorted(GROUPS) == EXAMPLES


@pytest.mark.parametrize("example", EXAMPLES)
def test_groups(example: str) -> None:
    """Under 60 lines, and as few applications as can be."""
    file = CHECKOUT / "dags" / f"{example}.py"
    assert len(file.read_text().splitlines()) < 60
    (dag,) = DagBag(file, collect_dags=False).process_file(str(file), only_if_updated=False)
    (flow,) = list_dataflows(dag)
    assert [list(group.steps) for group in flow.grouping.groups] == GROUPS[example]


@pytest.mark.airflow
@pytest.mark.spark
def test_sql_steps(play: Play, home: Path) -> None:
    """The best shops by the orders' amounts, added up here once more."""
    run = play("sql_steps")
    assert set(run["tasks"].values()) == {"success"}
    totals = {shop: sum(order * 37 % 100 for order in range(1000) if order % 7 == shop) for shop in range(7)}
    best = sorted((total for total in totals.values() if total >= 7000), reverse=True)
    found = sorted(rows(home / "tables" / "best_shops"), key=lambda row: row["place"])
    assert [row["total"] for row in found] == best


@pytest.mark.airflow
@pytest.mark.spark
def test_branch_between(play: Play, home: Path) -> None:
    """500 readings are enough for averages: the other step is skipped, and writes nothing."""
    run = play("branch_between")
    assert run["state"] == "success"
    assert (run["tasks"]["sensors.averages"], run["tasks"]["sensors.plain_copy"]) == ("success", "skipped")
    assert len(rows(home / "tables" / "sensor_averages")) == 5
    assert not (home / "tables" / "sensor_readings").exists()


@pytest.mark.airflow
@pytest.mark.spark
def test_backfill_writes_its_own_day(play: Play, home: Path) -> None:
    """Two days: a partition each, with the rows of its day."""
    for day in ("2026-01-03", "2026-01-04"):
        assert play("backfill", day)["state"] == "success"
    found = {(str(row["day"]), row["shop"]): row["amount"] for row in rows(home / "tables" / "takings")}
    assert found == {
        (f"2026-01-0{day}", shop): sum(sale * day for sale in range(200) if sale % 4 == shop)
        for day in (3, 4)
        for shop in range(4)
    }


@pytest.mark.airflow
@pytest.mark.spark
def test_composite_converges(play: Play, home: Path) -> None:
    """The ranks are those of PageRank computed here, to the precision the loop stops at."""
    assert set(play("composite")["tasks"].values()) == {"success"}
    found = {row["page"]: row["rank"] for row in rows(home / "tables" / "top_pages")}
    ranks = page_ranks()
    assert set(found) == set(sorted(ranks, key=ranks.__getitem__, reverse=True)[:5])
    assert all(abs(found[page] - ranks[page]) < 1e-3 for page in found)


def page_ranks() -> dict[int, float]:
    """Ranks of the example's twenty pages after many rounds."""
    links = {page: {page * 7 % 20, page * page % 20, 3} for page in range(20)}
    ranks = dict.fromkeys(links, 1.0)
    for _ in range(200):
        given = [(target, ranks[page] / len(targets)) for page, targets in links.items() for target in targets]
        ranks = {page: 0.15 + 0.85 * sum(share for target, share in given if target == page) for page in links}
    return ranks


@pytest.mark.airflow
@pytest.mark.spark
def test_flights_of_a_day(play: Play, home: Path, flights_data: Path) -> None:
    """One application for the ten steps; flights by carrier are those counted without Spark."""
    run = play("flights", "2013-01-16", FLIGHTS_DATA=str(flights_data))
    assert len(run["tasks"]) == 12, "ten mirrors, their launch task, and the gate between"
    assert set(run["tasks"].values()) == {"success"}
    arrived = [row for row in rows(flights_data / "flights" / "day=2013-01-15") if row["arr_delay"] is not None]
    found = {row["carrier"]: row["flights"] for row in rows(home / "tables" / "by_carrier")}
    assert found == Counter(row["carrier"] for row in arrived)


@pytest.fixture
def some_days(flights_data: Path, tmp_path: Path) -> Path:
    """The flights' data, of the days there are but the 14th and the 15th of January."""
    for folder in ("weather", "planes", "airports"):
        shutil.copytree(flights_data / folder, tmp_path / "data" / folder)
    for day in ("2013-01-14", "2013-01-15"):
        shutil.copytree(flights_data / "flights" / f"day={day}", tmp_path / "data" / "flights" / f"day={day}")
    return tmp_path / "data"


def manifests(work: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(work.rglob("manifest.json"))]


@pytest.mark.airflow
@pytest.mark.spark
def test_flights_read_their_day_alone(play: Play, some_days: Path, tmp_path: Path) -> None:
    """The day before is not even opened: it is no Parquet."""
    (some_days / "flights" / "day=2013-01-14" / "part-0.parquet").write_bytes(b"no Parquet")
    run = play("flights", "2013-01-16", **places(some_days, tmp_path))
    assert set(run["tasks"].values()) == {"success"}
    (manifest,) = manifests(tmp_path / "work")
    (departures,) = (step for step in manifest["steps"] if step["id"] == "departures")
    assert departures["needed"] == {f"{some_days}/flights": {"folders": ["day=2013-01-15"], "no_rows": False}}


def places(data: Path, folder: Path) -> dict[str, str]:
    return {"FLIGHTS_DATA": str(data), "FLIGHTS_OUT": f"{folder}/out", "FLIGHTS_WORK": f"{folder}/work"}


@pytest.mark.airflow
@pytest.mark.spark
def test_a_day_without_flights_starts_nothing(play: Play, some_days: Path, tmp_path: Path) -> None:
    """All boxes are green and say why; no application, no table."""
    run = play("flights", "2013-01-20", **places(some_days, tmp_path))
    assert set(run["tasks"].values()) == {"success"}
    launch = run["told"]["flights.launch"]
    assert (launch["applications"], len(launch["pruned"])) == (0, 10)
    assert launch["pruned"]["departures"].startswith(
        f"no work without input: nothing in {some_days}/flights matches day >= '2013-01-19"
    )
    assert launch["pruned"]["planes"] == "all that read its rows have nothing to do: enriched"
    assert run["told"]["flights.by_route"]["pruned"] == "no work without input: step 'enriched' has nothing to do"
    assert not (tmp_path / "out").exists()


COUNTED = """
from airflow.sdk import dag, task
from airflow_dagsched import SparkDataflow, SparkSqlStep, Table

@dag(schedule=None)
def counted():
    with SparkDataflow("counted", work_dir="{folder}/work", pruned="skipped"):

        @task.spark_step(reads=Table("{data}/flights", where="day = '2013-01-19'"), works_without_input=False)
        def departures(spark):
            return spark.read.parquet("{data}/flights")

        rows = departures()
        SparkSqlStep("total", sql="select count(*) as n from departures", inputs=[rows], writes=Table("{folder}/total"))
        SparkSqlStep(
            "by_carrier",
            sql="select carrier, count(*) as n from departures group by carrier",
            inputs=[rows],
            writes=Table("{folder}/by_carrier", partition_by=["carrier"]),
        )

counted()
"""


@pytest.mark.airflow
@pytest.mark.spark
def test_a_day_without_flights_is_counted_as_none(play: Play, some_days: Path, tmp_path: Path) -> None:
    """A global count writes its 0, in SQL as anywhere; a grouped one writes nothing, and is grey as asked for."""
    file = tmp_path / "counted.py"
    file.write_text(COUNTED.format(folder=tmp_path, data=some_days))
    run = play(str(file.with_suffix("")), AIRFLOW__CORE__DAGS_FOLDER=str(tmp_path))
    states = {name.partition(".")[2]: state for name, state in run["tasks"].items()}
    assert states.pop("launch_started") == "success"
    assert states == {"launch": "success", "departures": "skipped", "total": "success", "by_carrier": "skipped"}
    assert [row["n"] for row in rows(tmp_path / "total")] == [0]
    assert not (tmp_path / "by_carrier").exists()
