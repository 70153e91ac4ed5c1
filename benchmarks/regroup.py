"""``python -m benchmarks.regroup [RUNS]``: a run with ``replan="regroup"`` against one with ``"off"``, really run.

Both have a history in which each step takes a third of what it does. It says how long each run took, from the start of
its first task to the end of its last, and what each launch task decided. Exit 1 where the outputs differ, or where the
median of the runs with ``regroup`` is not at least ``LEAST_GAIN`` sooner.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow.dataset

from airflow_dagsched.model.codec import encode_value
from airflow_dagsched.model.state import Connection, Measured, State
from demo.rest import Run
from demo.standalone import AirflowStandalone
from tests.testbed.postgres import postgres

DAGS = Path(__file__).parent / "dags" / "regroup"
DAY = datetime(2026, 3, 5, tzinfo=UTC)
PATIENCE_S = 1800.0
WAYS = ("off", "regroup")
OFF_BY = 3.0
SECONDS = {"first": 3.0, "long": 40.0, "sum": 1.0}
"""As in the DAG file."""
GROUPS = 5
START_S = 8.0
LEAST_GAIN = 0.15


def main(argv: Sequence[str]) -> int:
    """Run both ways in turn and print what they took."""
    runs = int(argv[0]) if argv else 1
    with (
        tempfile.TemporaryDirectory() as folder,
        postgres() as database,
        AirflowStandalone(Path(folder), DAGS, database=database, master="local[2]") as airflow,
    ):
        took: dict[str, list[float]] = {way: [] for way in WAYS}
        for number in range(runs):
            for way in WAYS:
                took[way].append(measure(airflow, way, number))
        equal = read_tables(airflow.home, "off") == read_tables(airflow.home, "regroup")
    gain = 1 - median(took["regroup"]) / median(took["off"])
    print(f"regroup ends {gain:.0%} sooner; outputs are {'equal' if equal else 'NOT equal'}")
    return 0 if equal and gain >= LEAST_GAIN else 1


def measure(airflow: AirflowStandalone, way: str, number: int) -> float:
    """Seconds of one run."""
    client, dag_id = airflow.client, f"five_{way}"
    client.wait_for_dag(dag_id, 300.0)
    client.pause(dag_id, paused=False)
    write_history(airflow.home, dag_id)
    day = DAY + timedelta(days=number)
    run = client.trigger(dag_id, day, day + timedelta(days=1))
    if client.wait_for_run(run, PATIENCE_S) != "success":
        raise RuntimeError(str(client.states(run)))
    found = client.task_instances(run)
    begin, end = (
        [datetime.fromisoformat(one[f"{what}_date"]) for one in found if one[f"{what}_date"]]
        for what in ("start", "end")
    )
    seconds = (max(end) - min(begin)).total_seconds()
    print(f"{way}: {seconds:.1f} s", flush=True)
    for task_id, told in list_decisions(client, run):
        print(f"  {task_id}: {json.dumps(told)}")
    return seconds


def list_decisions(client: Any, run: Run) -> list[tuple[str, Any]]:
    """What each launch task said of ``replan``, by when it ended."""
    launches = [one for one in client.task_instances(run) if one["operator"] == "LaunchOperator"]
    ended = sorted(launches, key=lambda one: one["end_date"])
    return [(one["task_id"], client.xcom(run, one["task_id"]).get("replan")) for one in ended]


def write_history(home: Path, dag_id: str) -> None:
    """As if each step had always taken a third of what it takes."""
    names = ["first", *(f"{kind}{number}" for number in range(1, GROUPS) for kind in ("long", "sum"))]
    measured = {name: Measured(runtime_s=SECONDS[name.rstrip("1234")] / OFF_BY) for name in names}
    start = Connection(application_start_s=START_S, recent_start_s=(START_S,))
    file = home / "work" / "history" / dag_id / "flow.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(encode_value(State(measured=measured, connections={"spark_default": start})))


def read_tables(home: Path, way: str) -> list[Any]:
    """The rows of all tables that the steps wrote, without Spark."""
    folders = sorted((home / "tables" / way).glob("[!.]*"))
    assert len(folders) == GROUPS - 1, folders
    return [pyarrow.dataset.dataset(folder, format="parquet").to_table().to_pylist() for folder in folders]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
