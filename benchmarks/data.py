"""Input of the cases, made once below a folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from demo import flights_data


def year(folder: Path, _scale: float = 1.0) -> Path:
    """The flights of all of 2013. There is one size of them."""
    return flights_data.prepare(folder / "flights-2013")


def flights(folder: Path, _scale: float = 1.0) -> Path:
    """The flights of January 2013, with weather, planes, airports and airlines: links into the whole year's data."""
    whole, month = year(folder), folder / "flights-2013-01"
    (month / "flights").mkdir(parents=True, exist_ok=True)
    for source in (*(whole / name for name in flights_data.TABLES), *(whole / "flights").glob("day=2013-01-*")):
        link = month / source.relative_to(whole)
        if not link.exists():
            link.symlink_to(source.resolve())
    return month


def tpch(folder: Path, scale: float) -> Path:
    """The eight TPC-H tables at ``scale``, two Parquet files a table; raises ``CalledProcessError``."""
    made = folder / f"tpch-{scale:g}"
    if not made.exists():
        scratch = made.with_name(f"{made.name}.part")
        generator = Path(sys.executable).with_name("tpchgen-cli")
        command = [str(generator), "parquet", "-s", f"{scale:g}", f"--output-dir={scratch}", "--parts=2"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        scratch.rename(made)
    return made
