"""``python -m benchmarks.mirrors 10 63 500``: what mirrors that wait cost a triggerer, and how late they turn green.

Each number is a dataflow of so many steps, in an Airflow of its own on PostgreSQL. Its first step is held, so that all
mirrors wait; then it goes on. It says

* how long after the launch task began all mirrors waited, and what that took of the triggerer's two processes
  (``db``: queries, ``async``: triggers),
* their memory and processor time while all wait, and how much more memory than without mirrors,
* how many seconds after the table was committed the last mirror was green (with ``--green``).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import psycopg2

from demo.rest import Run, until
from demo.standalone import AirflowStandalone
from tests.testbed.postgres import postgres

DAGS = Path(__file__).parent / "dags" / "mirrors"
DAY = datetime(2026, 3, 5, tzinfo=UTC)
LOOK_S = 20.0
PATIENCE_S = 1800.0


@dataclass(frozen=True, slots=True)
class Row:
    """One size."""

    mirrors: int
    deferred_s: float
    """From the launch task's start until a trigger of each mirror was with the triggerer."""
    deferring_cpu_s: float
    waiting_mb: float
    """More than without mirrors, both processes."""
    kb_a_mirror: float
    waiting_cpu_percent: float
    """Of one core, both processes."""
    idle_cpu_percent: float
    """The same without mirrors."""
    green_after_s: float | None
    """From the commit of the last step's table to the last mirror's end."""


def main(argv: Sequence[str]) -> int:
    """Measure each size and print it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mirrors", description=__doc__)
    parser.add_argument("mirrors", nargs="*", type=int, default=[10, 63, 500])
    parser.add_argument("--green", action="store_true", help="let the steps run to their end")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the rows to this file")
    asked = parser.parse_args(argv)
    rows = []
    for count in asked.mirrors:
        rows.append(measure(count, green=asked.green))
        print(rows[-1], flush=True)
    if asked.json:
        asked.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    return 0


def measure(mirrors: int, *, green: bool) -> Row:
    """One Airflow, one run."""
    env = {
        "MIRRORS": str(mirrors),
        "AIRFLOW__TRIGGERER__CAPACITY": "3000",
        "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "120",
        "AIRFLOW__DAG_PROCESSOR__DAG_FILE_PROCESSOR_TIMEOUT": "300",
    }
    with (
        tempfile.TemporaryDirectory() as folder,
        postgres() as database,
        AirflowStandalone(Path(folder), DAGS, database=database, master="local[2]", env=env) as airflow,
        closing(psycopg2.connect(database.replace("+psycopg2", ""))) as connection,
    ):
        connection.autocommit = True
        return _measure(airflow, connection, mirrors, green)


def _measure(airflow: AirflowStandalone, connection: Any, mirrors: int, green: bool) -> Row:
    client = airflow.client
    client.wait_for_dag("waiting", 300.0)
    client.pause("waiting", paused=False)
    triggerer = _triggerer(airflow)
    idle_mb, idle_cpu = _memory_mb(triggerer), _cpu_percent(triggerer)
    run = client.trigger("waiting", DAY, DAY + timedelta(days=1))
    until("launch", lambda: _count(connection, "operator = 'LaunchOperator' and state = 'running'") or None, PATIENCE_S)
    began, before = time.monotonic(), _cpu_s(triggerer)
    until("mirrors", lambda: _waiting(connection) >= mirrors or None, PATIENCE_S)
    deferred_s, deferring_cpu_s = time.monotonic() - began, _cpu_s(triggerer) - before
    time.sleep(LOOK_S)
    waiting_cpu, waiting_mb = _cpu_percent(triggerer), _memory_mb(triggerer) - idle_mb
    late = _green_after_s(airflow, connection, run) if green else None
    return Row(
        mirrors=mirrors,
        deferred_s=round(deferred_s, 1),
        deferring_cpu_s=round(deferring_cpu_s, 1),
        waiting_mb=round(waiting_mb, 1),
        kb_a_mirror=round(waiting_mb * 1024 / mirrors, 1),
        waiting_cpu_percent=round(waiting_cpu, 1),
        idle_cpu_percent=round(idle_cpu, 1),
        green_after_s=late,
    )


def _green_after_s(airflow: AirflowStandalone, connection: Any, run: Run) -> float:
    """Let the first step go on, and wait for the run's end."""
    (airflow.home / "go").touch()
    if airflow.client.wait_for_run(run, PATIENCE_S) != "success":
        raise RuntimeError(str(airflow.client.states(run)))
    commits = (airflow.home / "work" / "commits").rglob("*.json")
    tables = (airflow.home).glob(".dagsched-*/commits/*/*.json")
    committed = max(file.stat().st_mtime for file in (*commits, *tables))
    with connection.cursor() as cursor:
        cursor.execute("select max(end_date) from task_instance where operator = 'PythonStep'")
        return round(float(cursor.fetchone()[0].timestamp()) - committed, 1)


def _triggerer(airflow: AirflowStandalone) -> list[psutil.Process]:
    everyone = psutil.Process(airflow.pid).children(recursive=True)
    named = {each.pid: each for each in everyone if _last_word(each) == "triggerer"}
    (top,) = [each for each in named.values() if each.ppid() not in named]
    return [top, *top.children(recursive=True)]


def _last_word(process: psutil.Process) -> str:
    try:
        return str((process.cmdline() or [""])[-1])
    except psutil.Error:  # it has just ended
        return ""


def _memory_mb(processes: Sequence[psutil.Process]) -> float:
    return float(sum(each.memory_full_info().uss for each in processes)) / 2**20


def _cpu_s(processes: Sequence[psutil.Process]) -> float:
    return float(sum(each.cpu_times().user + each.cpu_times().system for each in processes))


def _cpu_percent(processes: Sequence[psutil.Process]) -> float:
    before, at = _cpu_s(processes), time.monotonic()
    time.sleep(LOOK_S)
    return 100 * (_cpu_s(processes) - before) / (time.monotonic() - at)


def _waiting(connection: Any) -> int:
    """Mirrors whose trigger is with the triggerer."""
    with connection.cursor() as cursor:
        cursor.execute(
            "select count(*) from trigger where triggerer_id is not null and classpath like '%MirrorTrigger'"
        )
        return int(cursor.fetchone()[0])


def _count(connection: Any, condition: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"select count(*) from task_instance where {condition}")
        return int(cursor.fetchone()[0])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
