"""What a run came to: the tables it wrote, and how many Spark applications it took."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset

from demo.progress import LAUNCH, MIRRORS
from demo.rest import AirflowClient, Run

ROWS = 10


def tables(out: Path, day: str) -> dict[str, pa.Table]:
    """Each table under ``out``: its rows of one day, as they lie on disk."""
    return {folder.name: read_day(folder, day) for folder in sorted(out.glob("[!.]*"))}


def read_day(folder: Path, day: str) -> pa.Table:
    """The rows of one day of a table partitioned by ``day``."""
    partition = pyarrow.dataset.partitioning(pa.schema([("day", pa.string())]), flavor="hive")
    dataset = pyarrow.dataset.dataset(folder, format="parquet", partitioning=partition)
    return dataset.to_table(filter=pyarrow.dataset.field("day") == day).drop_columns(["day"])


def render(name: str, table: pa.Table) -> str:
    """A table as text, its first rows, numbers to one decimal."""
    head = [table.column_names, *[[_cell(value) for value in row.values()] for row in table.slice(0, ROWS).to_pylist()]]
    widths = [max(len(row[column]) for row in head) for column in range(table.num_columns)]
    lines = ["  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in head]
    more = [f"  ... {table.num_rows - ROWS} more"] if table.num_rows > ROWS else []
    return "\n".join([f"{name} ({table.num_rows} rows)", *[text.rstrip() for text in lines], *more])


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:.1f}" if isinstance(value, float) else str(value)


def summary(client: AirflowClient, run: Run) -> str:
    """How many steps ran as how many applications, and the seconds predicted and measured."""
    instances = client.task_instances(run)
    steps = sum(instance["operator"] in MIRRORS for instance in instances)
    launches = [client.xcom(run, each["task_id"]) for each in instances if each["operator"] == LAUNCH]
    return summarize(steps, [launch for launch in launches if launch])


def summarize(steps: int, launches: Iterable[dict[str, Any]]) -> str:
    """The line about ``steps`` and what their launch tasks returned."""
    launched = list(launches)
    applications = sum(each["applications"] for each in launched)
    predicted, measured = (sum(each[key] for each in launched) for key in ("predicted_s", "measured_s"))
    plural = "" if applications == 1 else "s"
    return (
        f"{steps} steps, {applications} Spark application{plural} instead of {steps}, "
        f"predicted {predicted:.1f} s / measured {measured:.1f} s"
    )
