"""Backfill through Airflow's scheduler, three runs at a time: each interval is written once, whatever is repeated.

On PostgreSQL: on SQLite a backfill beside a running scheduler is unreliable by Airflow's own defect.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from demo.rest import until
from tests.system.lab import ON_POSTGRES, PATIENCE_S, PER_STEP, Lab, open_lab

pytestmark = ON_POSTGRES

DAYS = 7
PLANNED = ("intervals", "partitions")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with open_lab(tmp_path_factory.mktemp("backfill")) as lab:
        yield lab


def backfill(lab: Lab, dag_id: str, last: int, reprocess: str, conf: object = None) -> None:
    """Start the backfill of January's first ``last`` days, as a person does at the command line."""
    lab.client.wait_for_dag(dag_id)
    lab.client.pause(dag_id, paused=False)
    days = ["--from-date", "2026-01-01", "--to-date", f"2026-01-{last:02d}", "--max-active-runs", "3"]
    given = ["--dag-run-conf", json.dumps(conf)] if conf else []
    done = lab.airflow.cli("backfill", "create", "--dag-id", dag_id, *days, "--reprocess-behavior", reprocess, *given)
    assert done.returncode == 0, done.stderr


def wait(lab: Lab, dag_id: str) -> None:
    """Wait until the backfills of a DAG are complete."""

    def completed() -> bool | None:
        params = {"dag_id": dag_id}
        found = lab.client.call("GET", "/api/v2/backfills", params=params)["backfills"]
        return True if found and all(each["completed_at"] for each in found) else None

    until(f"backfill of {dag_id}", completed, PATIENCE_S)


def states(lab: Lab, dag_id: str) -> list[str]:
    """States of all runs of a DAG."""
    return sorted(run["state"] for run in lab.client.runs(dag_id))


@pytest.fixture(scope="module")
def filled(lab: Lab) -> Lab:
    """
    none       1 2 3✗ 4 5 6 7      the wire of day 3 is stretched
    failed         3               it is removed
    completed  1 2
    """
    for dag_id in PLANNED:
        lab.wire(f"{dag_id}-03", "always")
        backfill(lab, dag_id, DAYS, "none")
    for dag_id in PLANNED:
        wait(lab, dag_id)
        assert states(lab, dag_id) == ["failed"] + ["success"] * (DAYS - 1)
        assert len(lab.rows(f"{dag_id}/called")) == 1, "what is the same for all days was made more than once"
    backfill(lab, "intervals_per_step", DAYS, "none", PER_STEP)
    return lab


def test_failed_day_is_repaired(filled: Lab) -> None:
    """``failed`` runs day 3 again and nothing else: a partitioned DAG gets a new run for it, another the old one."""
    before = {dag_id: finished(filled, dag_id) for dag_id in PLANNED}
    for dag_id in PLANNED:
        filled.unwire(f"{dag_id}-03")
        backfill(filled, dag_id, DAYS, "failed")
    for dag_id in PLANNED:
        wait(filled, dag_id)
        assert finished(filled, dag_id).items() >= before[dag_id].items(), "a green day ran again"
    assert states(filled, "intervals") == ["success"] * DAYS
    assert states(filled, "partitions") == ["failed"] + ["success"] * DAYS
    assert_written_once(filled)


def test_completed_days_are_repeated(filled: Lab) -> None:
    """``completed`` runs days 1 and 2 again, into the same partitions, and their rows are in the ledger once."""
    before = finished(filled, "intervals")
    for dag_id in PLANNED:
        backfill(filled, dag_id, 2, "completed")
    for dag_id in PLANNED:
        wait(filled, dag_id)
    again = {run_id for run_id, end in finished(filled, "intervals").items() if before.get(run_id) != end}
    assert len(again) == 2
    assert states(filled, "partitions") == ["failed"] + ["success"] * (DAYS + 2)
    assert_written_once(filled)


def finished(lab: Lab, dag_id: str) -> dict[str, str]:
    """When each green run of a DAG ended."""
    return {run["dag_run_id"]: run["end_date"] for run in lab.client.runs(dag_id) if run["state"] == "success"}


def assert_written_once(lab: Lab) -> None:
    """Both tables of both DAGs are those of one application a step, run once."""
    wait(lab, "intervals_per_step")
    assert states(lab, "intervals_per_step") == ["success"] * DAYS
    assert len(lab.rows("intervals_per_step/called")) == 1
    for table in ("takings", "ledger"):
        expected = lab.rows(f"intervals_per_step/{table}")
        assert len({dict(row)["day"] for row in expected}) == DAYS
        for dag_id in PLANNED:
            assert lab.rows(f"{dag_id}/{table}") == expected, (dag_id, table)
