"""The inside of a group, predicted and measured: from its first step's begin to its last step's end.

Random groups of wide and narrow steps (``dags/inside.py``), each run some times; every run knows what those before it
measured, and nothing else of how long steps take. The last one counts.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from msgspec import Struct

from airflow_dagsched.launch.protocol.interval import Interval
from benchmarks.ways import begin_attempt, dataflow

DAG_FILE = Path(__file__).parent / "dags" / "inside.py"


class Inside(Struct, frozen=True):
    """One run of one group. Seconds."""

    predicted_s: float
    measured_s: float
    begins_off_s: float
    """Of its steps' begins, the median of how far they are from the plan's."""

    @property
    def error(self) -> float:
        """As a share of what was measured."""
        return abs(self.predicted_s / self.measured_s - 1)


def measure_groups(scratch: Path, groups: int, runs: int) -> list[dict[str, float]]:
    """The last of so many runs of each group, told and kept."""
    found = []
    for seed in range(groups):
        *_, last = run_group(scratch / str(seed), seed, runs)
        told = f"predicted {last.predicted_s:.1f} s, measured {last.measured_s:.1f} s"
        print(f"inside {seed}: {told}, {last.error:.0%} off, begins {last.begins_off_s:.1f} s", flush=True)
        found.append(last)
    print(f"inside: {median(one.error for one in found):.1%} off, median of {groups} groups", flush=True)
    return [
        {"predicted_s": one.predicted_s, "measured_s": round(one.measured_s, 2), "error": round(one.error, 3)}
        for one in found
    ]


def run_group(scratch: Path, seed: int, runs: int) -> Iterator[Inside]:
    """Runs of the group of ``seed``, one after another."""
    shutil.rmtree(scratch, ignore_errors=True)
    for at in range(runs):
        work = scratch / str(at)
        # All is made anew: of the runs before, the history alone is there.
        if at:
            shutil.copytree(scratch / str(at - 1) / "history", work / "history")
        yield _run_once(seed, work)


def _run_once(seed: int, work: Path) -> Inside:
    from airflow_dagsched.provider.runtime.execute import run_attempt

    flow = dataflow(DAG_FILE, {"INSIDE_SEED": str(seed), "INSIDE_WORK": str(work)})
    (launch,) = flow.launches()
    attempt = begin_attempt(launch, Interval("once"))
    run_attempt(attempt)
    (plan,) = work.rglob("plan.json")
    (group,) = json.loads(plan.read_text())["groups"]
    (ran,) = attempt.applications
    first = min(ran.begun.values())
    off = [abs(group["begins"].get(step, 0.0) - (begun - first)) for step, begun in ran.begun.items()]
    end = max(ran.begun[done.step] + (done.seconds or 0.0) for done in ran.ends)
    return Inside(group["time"]["compute"], end - first, median(off))
