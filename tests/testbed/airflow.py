"""An Airflow that sees only the example DAGs a test asks for, and the flights."""

from __future__ import annotations

import shutil
from pathlib import Path

from demo.flights_data import prepare
from demo.standalone import AirflowStandalone

CHECKOUT = Path(__file__).resolve().parents[2]
DATA = CHECKOUT / ".home" / "data"
"""Made once and shared with the demo: tests read it only."""


def airflow_with(
    home: Path, *examples: str, database: str | None = None, master: str = "local[2]", env: dict[str, str] | None = None
) -> AirflowStandalone:
    """An Airflow in ``home`` with the DAG files ``dags/<example>.py``; the flights' tables go to ``home/tables``."""
    dags = home / "dags"
    others = {path.name for path in (CHECKOUT / "dags").glob("*.py") if path.stem not in examples}
    shutil.copytree(CHECKOUT / "dags", dags, ignore=lambda _folder, names: others.intersection(names))
    own = {"FLIGHTS_DATA": str(prepare(DATA)), "FLIGHTS_OUT": str(home / "tables"), "FLIGHTS_WORK": str(home / "work")}
    return AirflowStandalone(home, dags, database=database, master=master, env={**own, **(env or {})})
