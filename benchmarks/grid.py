"""``python -m benchmarks.grid``: how long after its step's event a mirror turns green, on a real Airflow and Spark.

The seconds between a line of the driver's event file and the end of the mirror in Airflow's database, for a
dataflow of 200 steps in 20 levels. The file is looked at ten times a second.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

from benchmarks import machine
from demo.rest import ENDED, AirflowClient, Run
from demo.standalone import AirflowStandalone

DAGS = Path(__file__).parent / "dags"
DAG_ID, GROUP = "deep", "flow"
DAY = datetime(2026, 3, 5, tzinfo=UTC)
LOOK_S = 0.1


def main(argv: list[str]) -> int:
    """Run the dataflow, print the delays, write them; exit 1 where the run does not end well."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.grid", description=__doc__)
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--master", default="local[2]", help="default: %(default)s")
    asked = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="grid-") as folder:
        home = Path(folder)
        env = {"DEEP_WORK": str(home / "work"), "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "30"}
        with AirflowStandalone(home, DAGS, master=asked.master, env=env) as airflow:
            state, delays = measure(airflow.client, home / "work")
    figures = {"state": state, "mirrors": len(delays), "median_s": median(delays), "worst_s": max(delays)}
    print(f"{state}: {len(delays)} mirrors ended {median(delays):.1f} s (median), {max(delays):.1f} s (worst) after")
    if asked.json:
        asked.json.write_text(json.dumps({"machine": machine.facts(), **figures}, indent=1) + "\n")
    return int(state != "success")


def measure(client: AirflowClient, work: Path) -> tuple[str, list[float]]:
    """State of the run, and the seconds from event to green of each mirror."""
    client.wait_for_dag(DAG_ID)
    client.pause(DAG_ID, paused=False)
    run = client.trigger(DAG_ID, DAY, DAY + timedelta(days=1))
    told, state, asked = {}, "", 0.0
    while state not in ENDED:
        told.update({step: time.time() for step in _told(work) if step not in told})
        if time.time() > asked + 2.0:
            state, asked = client.run_state(run), time.time()
        time.sleep(LOOK_S)
    ended = dict(_ended(client, run))
    return state, [ended[step] - told[step] for step in told]


def _told(work: Path) -> Iterator[str]:
    """Steps whose end is in an event file."""
    for file in work.rglob("events.jsonl"):
        for line in file.read_text().splitlines():
            for event in json.loads(line):
                if event["kind"] == "done":
                    yield event["step"]


def _ended(client: AirflowClient, run: Run) -> Iterator[tuple[str, float]]:
    """Step and when its mirror ended, seconds since the epoch."""
    for offset in range(0, 1000, 100):
        page = client.call("GET", f"{run.path}/taskInstances", params={"limit": 100, "offset": offset})
        for each in page["task_instances"]:
            if each["end_date"]:
                yield each["task_id"].removeprefix(f"{GROUP}."), datetime.fromisoformat(each["end_date"]).timestamp()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
