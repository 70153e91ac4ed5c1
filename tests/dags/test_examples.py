"""The example DAGs: short, planned as their comments say, and right when ``dag.test()`` runs them on real Spark."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow.dataset
import pytest
from airflow.dag_processing.dagbag import DagBag

from airflow_dagsched.provider.hook import dataflows
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
    (flow,) = dataflows(dag)
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
    assert len(run["tasks"]) == 11
    assert set(run["tasks"].values()) == {"success"}
    arrived = [row for row in rows(flights_data / "flights" / "day=2013-01-15") if row["arr_delay"] is not None]
    found = {row["carrier"]: row["flights"] for row in rows(home / "tables" / "by_carrier")}
    assert found == Counter(row["carrier"] for row in arrived)
