"""``python -m benchmarks.warm [--days 7] [--cold]``: a backfill of days, one after another, in an application that is
warm from the first one on; seconds on the wall and of processor, each day's as a share of the first's.

What a day takes of the processor is what its own processes took, and the warm application's until it is clean again.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec.structs import replace

from airflow_dagsched.launch.protocol.interval import Interval
from airflow_dagsched.launch.warm.about import FOLDER
from airflow_dagsched.provider.warm.applications import ask_status, list_applications, tell_end
from benchmarks.cases import FLIGHTS
from benchmarks.data import year
from benchmarks.home import CONF, enter
from benchmarks.ways import Clock, begin_attempt, dataflow

FIRST = datetime(2013, 1, 1, tzinfo=UTC)
TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Print a line a day, and the median of those after the first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=7)
    parser.add_argument("--cold", action="store_true", help="each day in an application of its own")
    parser.add_argument("--folder", type=Path, default=None, help="of the data, which is made if it is not there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dagsched-warm-") as home:
        folder = Path(home)
        enter(folder / "airflow")
        os.environ["AIRFLOW__DAGSCHED__CACHE_DIR"] = str(folder / "cache")
        taken = run_days(options.days, folder, year(options.folder or folder / "data"), 0.0 if options.cold else 120.0)
        first, later = taken[0], taken[1:]
        shares = [[day[at] / first[at] for day in later] for at in (0, 1)]
        print(json.dumps({"median_of_first": [round(statistics.median(each), 3) for each in shares]}))


def run_days(days: int, home: Path, data: Path, warm_s: float) -> list[tuple[float, float]]:
    """Seconds on the wall and of processor, a day each."""
    from airflow_dagsched.provider.runtime.execute import run_attempt

    flow = dataflow(FLIGHTS.dag_file, FLIGHTS.variables(data, home / "out", home / "work"))
    (launch,) = flow.launches()
    settings = replace(launch.flow.settings, warm=warm_s > 0)
    launch.spec = replace(launch.spec, flow=replace(launch.flow, conf=dict(CONF), warm_s=warm_s, settings=settings))
    taken, warm = [], home / "cache" / FOLDER
    for number in range(days):
        begin = FIRST + timedelta(days=number)
        interval = Interval(f"{begin:%Y-%m-%d}", begin, begin + timedelta(days=1))
        clock, before = Clock(), read_warm_cpu_s(warm)
        result = run_attempt(begin_attempt(launch, interval))
        wall, own = clock.read()
        wait_until_idle(warm)
        taken.append((wall, own + read_warm_cpu_s(warm) - before))
        print(json.dumps({"day": interval.key, "wall_s": round(wall, 2), "cpu_s": round(taken[-1][1], 2),
                          "run": result["warm_run"], "predicted_s": result["predicted_s"]}), flush=True)  # fmt: skip
    for each in list_applications(warm):
        tell_end(each, "the benchmark is over")
    return taken


def wait_until_idle(warm: Path) -> None:
    """Until what the run left in its application is gone."""
    for each in list_applications(warm):
        while (status := ask_status(each)) is not None and status.state != "idle":
            time.sleep(0.05)


def read_warm_cpu_s(warm: Path) -> float:
    """Of all processes of the applications there, and of those of theirs that have ended."""
    names = [str(each.folder).encode() for each in list_applications(warm)]
    found = 0
    for process in Path("/proc").iterdir():
        try:
            command = (process / "cmdline").read_bytes() if process.name.isdigit() else b""
            if any(name in command for name in names):
                fields = (process / "stat").read_text().rpartition(")")[2].split()
                found += sum(map(int, fields[11:15]))
        except OSError:  # it has ended just now
            continue
    return found / TICKS


if __name__ == "__main__":
    main()
