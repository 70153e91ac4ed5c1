"""Days of flights, one after another, by Airflow's scheduler: the second goes on in the first one's application, which
ends with Airflow.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from airflow_dagsched.provider.warm.applications import list_applications
from demo.results import read_day
from tests.testbed.airflow import airflow_with
from tests.warm.kit import wait_until

pytestmark = [pytest.mark.system, pytest.mark.spark, pytest.mark.airflow, pytest.mark.slow]

DAYS = tuple(datetime(2013, 1, day, tzinfo=UTC) for day in (15, 16))


def test_a_second_day_goes_on_in_the_application_of_the_first(tmp_path: Path) -> None:
    env = {"AIRFLOW__DAGSCHED__WARM": "5 minutes", "AIRFLOW__DAGSCHED__CACHE_DIR": str(tmp_path / "cache")}
    warm = tmp_path / "cache" / "warm"
    with airflow_with(tmp_path / "home", "flights", env=env) as airflow:
        client = airflow.client
        client.wait_for_dag("flights")
        client.pause("flights", paused=False)
        numbers = []
        for day in DAYS:
            run = client.trigger("flights", day, day + timedelta(days=1))
            client.wait_for_run(run, timeout_s=900.0)
            assert set(client.states(run).values()) == {"success"}, client.log(run, "flights.launch")
            numbers.append(client.xcom(run, "flights.launch")["warm_run"])
            assert read_day(tmp_path / "home" / "tables" / "by_route", f"{day:%Y-%m-%d}").num_rows
        assert numbers == [1, 2]
        assert "(warm, run 2)" in client.log(run, "flights.launch")
        listed = airflow.cli("dagsched", "warm", "list").stdout
        assert "flights.flights" in listed
        assert "2 runs" in listed
    wait_until(lambda: not list(list_applications(warm)), "the application ends with Airflow")
