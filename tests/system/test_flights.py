"""One day of flights through Airflow's scheduler, as a person sees it over the REST API.

departures ─ clean ─┐
weather ────────────┼─ enriched ─┬─ by_route ──┬─ worst
planes ─────────────┘            ├─ by_carrier │
airports ────────────────────────┼─────────────┘           one launch task, one Spark application
                                 └─ by_weather
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
import pytest

from airflow_dagsched.provider.following.links import SparkUiLink
from demo.progress import LAUNCH, MIRRORS
from demo.rest import AirflowClient, Run
from demo.results import read_day
from tests.testbed.airflow import DATA, airflow_with

pytestmark = [pytest.mark.system, pytest.mark.spark, pytest.mark.airflow]

DAY = datetime(2013, 1, 15, tzinfo=UTC)
STEPS = {
    "departures", "clean", "weather", "planes", "enriched", "by_route", "by_carrier", "by_weather", "airports", "worst",
}  # fmt: skip


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("airflow")


@pytest.fixture(scope="module")
def client(home: Path) -> Iterator[AirflowClient]:
    with airflow_with(home, "flights") as airflow:
        yield airflow.client


@pytest.fixture(scope="module")
def run(client: AirflowClient) -> Run:
    client.wait_for_dag("flights")
    client.pause("flights", paused=False)
    run = client.trigger("flights", DAY, DAY + timedelta(days=1))
    client.wait_for_run(run, timeout_s=600.0)
    return run


@pytest.fixture(scope="module")
def departed() -> pa.Table:
    """The flights of the day that arrived, read without Spark."""
    folder = DATA / "flights" / f"day={DAY:%Y-%m-%d}"
    return pyarrow.parquet.ParquetFile(next(folder.iterdir())).read().filter(pc.field("arr_delay").is_valid())


def test_every_step_is_green_and_one_application_ran(client: AirflowClient, run: Run) -> None:
    """Ten mirrors and one launch task succeed; the launch task says what it took."""
    instances = client.task_instances(run)
    launches = [each["task_id"] for each in instances if each["operator"] == LAUNCH]
    mirrors = {each["task_id"] for each in instances if each["operator"] in MIRRORS}
    logs = "\n".join(client.log(run, launch) for launch in launches)
    assert client.states(run) == dict.fromkeys([*launches, *mirrors, "flights.launch_started"], "success"), logs
    assert mirrors == {f"flights.{step}" for step in STEPS}
    assert launches == ["flights.launch"]
    assert client.xcom(run, "flights.launch")["applications"] == 1
    assert client.xcom(run, "flights.launch", SparkUiLink().xcom_key).startswith("http://")


def test_mirrors_took_no_worker(client: AirflowClient, run: Run) -> None:
    """A mirror is handed to the triggerer: no host ever ran it."""
    hosts = {each["task_id"]: each["hostname"] for each in client.task_instances(run) if each["operator"] in MIRRORS}
    assert not any(hosts.values()), hosts


def test_rows_of_each_table_are_told(client: AirflowClient, run: Run, home: Path) -> None:
    """The rows a mirror tells are those on disk, and the path is the table's."""
    for name in ("by_route", "by_carrier", "by_weather", "worst"):
        told = client.xcom(run, f"flights.{name}")
        on_disk = read_day(home / "tables" / name, f"{DAY:%Y-%m-%d}")
        assert told["rows"] == on_disk.num_rows > 0, name
        assert told["path"].removeprefix("file:") == str(home / "tables" / name)


@pytest.mark.parametrize(("table", "keys"), [("by_route", ["origin", "dest"]), ("by_carrier", ["carrier"])])
@pytest.mark.usefixtures("run")
def test_tables_hold_what_another_engine_computes(home: Path, departed: pa.Table, table: str, keys: list[str]) -> None:
    """Means and counts by key, to 1e-9 relative."""
    expected = departed.group_by(keys).aggregate([("arr_delay", "count"), ("dep_delay", "mean"), ("arr_delay", "mean")])
    expected = expected.rename_columns([*keys, "flights", "dep_delay", "arr_delay"]).sort_by(
        [(key, "ascending") for key in keys]
    )
    found = read_day(home / "tables" / table, f"{DAY:%Y-%m-%d}").sort_by([(key, "ascending") for key in keys])
    assert found.select([*keys, "flights"]).to_pylist() == expected.select([*keys, "flights"]).to_pylist()
    for column in ("dep_delay", "arr_delay"):
        assert found[column].to_pylist() == pytest.approx(expected[column].to_pylist(), rel=1e-9)


@pytest.mark.usefixtures("run")
def test_worst_routes_are_the_ten_latest(home: Path) -> None:
    """The oracle is ``by_route``, which another test compares with the input."""
    day = f"{DAY:%Y-%m-%d}"
    routes = [row for row in read_day(home / "tables" / "by_route", day).to_pylist() if row["flights"] > 1]
    airports = set(pyarrow.parquet.ParquetFile(DATA / "airports" / "part-0.parquet").read()["faa"].to_pylist())
    named = [row for row in routes if row["dest"] in airports]
    latest = sorted(named, key=lambda row: (-row["arr_delay"], row["origin"], row["dest"]))[:10]
    found = read_day(home / "tables" / "worst", day).to_pylist()
    assert {(row["origin"], row["dest"]) for row in found} == {(row["origin"], row["dest"]) for row in latest}


def test_cleared_run_goes_green_again(client: AirflowClient, run: Run) -> None:
    """Clearing the launch task with downstream repeats the run; nothing is left deferred."""
    cleared = client.clear(run, ["flights.launch"], downstream=True)
    assert set(cleared) == set(client.states(run))
    assert client.wait_for_run(run, timeout_s=600.0) == "success"
    assert set(client.states(run).values()) == {"success"}
