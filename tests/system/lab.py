"""What the tests of failure do to a running Airflow: trigger, hold, kill, clear, and look at what came of it.

::

    scheduler ── supervisor ── task process ── spark-submit (Java) ── driver program (Python)
                                    └ launcher_pid of the manifest         └ manifest's path on its command line
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pyarrow.dataset
import pytest

from demo.rest import AirflowClient, Run, until
from demo.standalone import AirflowStandalone
from tests.testbed.postgres import postgres, server_programs

DAGS = Path(__file__).parent / "dags"
DAY = datetime(2026, 3, 5, tzinfo=UTC)
PER_STEP = {"dagsched": {"run": "per_step"}}
PATIENCE_S = 600.0
"""For what takes seconds on an idle machine: a deadline, no measurement."""


ON_POSTGRES = [
    pytest.mark.system,
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.airflow,
    pytest.mark.postgres,
    pytest.mark.skipif(server_programs() is None, reason="no PostgreSQL server programs installed"),
]
"""Of files whose Airflow keeps its state in PostgreSQL."""


@dataclass(frozen=True)
class Lab:
    """One Airflow, and the folder it shares with the steps."""

    airflow: AirflowStandalone

    @property
    def client(self) -> AirflowClient:
        return self.airflow.client

    @property
    def home(self) -> Path:
        return self.airflow.home

    def start(self, dag_id: str, *, day: datetime = DAY, conf: Any = None) -> Run:
        """Start a run of one day."""
        self.client.wait_for_dag(dag_id)
        self.client.pause(dag_id, paused=False)
        return self.client.trigger(dag_id, day, day + timedelta(days=1), conf=conf)

    def start_beside(self, other: Run, *, day: datetime = DAY) -> Run:
        """Start another run for the data interval of a run that was started for ``day``."""
        body = {
            "logical_date": (day + timedelta(hours=1)).isoformat(),
            "data_interval_start": day.isoformat(),
            "data_interval_end": (day + timedelta(days=1)).isoformat(),
        }
        made = self.client.call("POST", f"/api/v2/dags/{other.dag_id}/dagRuns", body=body)
        return Run(other.dag_id, made["dag_run_id"])

    def end(self, run: Run) -> str:
        """The state the run ends in."""
        return self.client.wait_for_run(run, PATIENCE_S)

    def states(self, run: Run, group: str = "") -> dict[str, str | None]:
        """State of each task; of one group's alone, without its name, if ``group`` says so."""
        prefix = f"{group}." if group else ""
        found = self.client.states(run)
        return {name.removeprefix(prefix): state for name, state in found.items() if name.startswith(prefix)}

    def until_state(self, run: Run, task_id: str, *wanted: str) -> None:
        """Wait for a task's state."""

        def there() -> bool | None:
            return self.client.states(run).get(task_id) in wanted or None

        until(f"{task_id} of {run.run_id} {wanted}", there, PATIENCE_S)

    # Gates and wires of the steps

    def wire(self, name: str, how: str) -> None:
        """Make the step behind the wire fail, "once" or "always"."""
        self._gate(name, "wire").write_text(how)

    def unwire(self, name: str) -> None:
        self._gate(name, "wire").unlink()

    def close(self, name: str) -> None:
        """Hold whoever comes to the gate."""
        self._gate(name, "closed").touch()

    def open(self, name: str) -> None:
        self._gate(name, "closed").unlink(missing_ok=True)
        self._gate(name, "reached").unlink(missing_ok=True)

    def wait_reached(self, name: str) -> None:
        """Wait until a step stands at the closed gate."""
        until(f"gate {name}", lambda: self._gate(name, "reached").exists() or None, PATIENCE_S)

    def _gate(self, name: str, ending: str) -> Path:
        folder = self.home / "gates"
        folder.mkdir(exist_ok=True)
        return folder / f"{name}.{ending}"

    # Processes

    def manifests(self, run: Run) -> list[dict[str, Any]]:
        """All manifests of a run that were submitted, by when they were."""
        files = (self.home / "work" / "runs" / run.dag_id).rglob("manifest.json")
        ours = [(file.stat().st_mtime_ns, json.loads(file.read_text())) for file in files]
        return [manifest for _, manifest in sorted(ours, key=lambda each: each[0]) if manifest["run_id"] == run.run_id]

    def applications(self, dag_id: str) -> list[psutil.Process]:
        """Living spark-submits and driver programs of a DAG's runs, known by the manifest they were given."""
        return list(_with_argument(str(self.home / "work" / "runs" / dag_id)))

    def driver(self, dag_id: str) -> psutil.Process:
        """The driver program proper of the one application of a DAG that lives."""
        (found,) = [each for each in self.applications(dag_id) if "python" in each.name()]
        return found

    def logs(self, run: Run, task_id: str, tries: int) -> str:
        """Logs of the first ``tries`` tries of a task."""
        return "\n".join(self.client.log(run, task_id, number) for number in range(1, tries + 1))

    def last_log(self, run: Run, task_id: str) -> str:
        """Log of a task's last try."""
        (number,) = [each["try_number"] for each in self.client.task_instances(run) if each["task_id"] == task_id]
        return self.client.log(run, task_id, number)

    # What was written

    def notes(self, name: str) -> list[str]:
        """The lines that steps noted."""
        file = self.home / "notes" / name
        return file.read_text().splitlines() if file.exists() else []

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        """The rows of ``tables/<table>`` in order, read without Spark; none where it is not there."""
        folder = self.home / "tables" / table
        if not folder.exists():
            return []
        found = pyarrow.dataset.dataset(folder, format="parquet", partitioning="hive").to_table()
        return sorted(tuple(sorted(row.items())) for row in found.to_pylist())

    def tables(self, dag_id: str) -> dict[str, list[tuple[Any, ...]]]:
        """The rows of all tables of a DAG, by the table's name."""
        folders = (self.home / "tables" / dag_id).glob("[!.]*")
        return {folder.name: self.rows(f"{dag_id}/{folder.name}") for folder in folders}

    def events(self, run: Run) -> list[str]:
        """URIs of the assets the run emitted an event for, in order."""
        params = {"source_dag_id": run.dag_id, "source_run_id": run.run_id, "limit": 100}
        return sorted(
            each["uri"] for each in self.client.call("GET", "/api/v2/assets/events", params=params)["asset_events"]
        )


def kill(processes: Iterable[psutil.Process]) -> None:
    """``kill -9``, those above first, so that none sees the other die."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def gone(processes: Iterable[psutil.Process], within_s: float) -> bool:
    """Whether all of them end within so many seconds."""
    return not psutil.wait_procs(list(processes), timeout=within_s)[1]


def _with_argument(prefix: str) -> Iterable[psutil.Process]:
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            given = any(argument.startswith(prefix) for argument in process.cmdline())
            if given and process.status() != psutil.STATUS_ZOMBIE:
                yield process


def reused(feed: dict[str, Any]) -> set[str]:
    """Steps that the launch task's feed calls reused."""
    return {step for step, done in feed["steps"].items() if done["state"] == "reused"}


@contextmanager
def open_lab(home: Path, env: Mapping[str, str] | None = None) -> Iterator[Lab]:
    """An Airflow on a PostgreSQL of its own; ``env`` changes its settings."""
    with (
        postgres() as database,
        AirflowStandalone(home, DAGS, database=database, master="local[2]", env=env) as airflow,
    ):
        yield Lab(airflow)
