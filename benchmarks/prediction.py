"""``python -m benchmarks.prediction``: how far predicted and measured seconds are apart, run by run.

Each run writes everything anew and keeps only the history of those before it. ``--history-of per_step``: the first run
is of another grouping, an application a step, and what it has left predicts the groups of those that follow. The case
``inside`` has random groups of wide and narrow steps; only what is inside the application counts (``inside.py``).
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks import data, home
from benchmarks.cases import CASES, Case
from benchmarks.inside import measure_groups
from benchmarks.places import LOCAL
from benchmarks.ways import Folders, Run, Way, per_step, planned

ROOT = Path(__file__).parent
GROUPINGS = {"planned": planned, "per_step": per_step}


def arguments(argv: list[str]) -> argparse.Namespace:
    """What the caller asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prediction", description=__doc__)
    parser.add_argument("--case", action="append", choices=[*sorted(CASES), "inside"], help="default: all")
    parser.add_argument("--groups", type=int, default=20, help="of the case inside (default: %(default)s)")
    parser.add_argument("--scale", type=float, default=0.1, help="scale factor of TPC-H (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=5, help="default: %(default)s")
    parser.add_argument("--history-of", choices=list(GROUPINGS), default="planned", help="grouping of the first run")
    parser.add_argument("--folder", type=Path, default=ROOT.parent / ".home" / "benchmarks", help="input and scratch")
    parser.add_argument("--json", type=Path, help="file for the figures")
    return parser.parse_args(argv)


def main(argv: list[str]) -> int:
    """Run the cases, print and keep the figures."""
    asked = arguments(argv)
    folder = asked.folder.resolve()
    home.enter(folder / "airflow")
    found: dict[str, list[dict[str, float]]] = {}
    for name in asked.case or [*CASES, "inside"]:
        if name == "inside":
            found[name] = measure_groups(folder / "prediction" / name, asked.groups, asked.runs)
            continue
        prepared = data.flights(folder) if name == "flights" else data.tpch(folder, asked.scale)
        ran = runs(CASES[name], prepared, folder / "prediction", asked.runs, GROUPINGS[asked.history_of])
        found[name] = [_told(name, run) for run in ran]
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


def runs(case: Case, prepared: Path, scratch: Path, count: int, first: Way) -> Iterator[Run]:
    """So many runs of ``case``, one after another, each with the history of those before."""
    shutil.rmtree(scratch / case.name, ignore_errors=True)
    history: Path | None = None
    for at in range(count):
        folders = Folders(prepared, scratch / case.name / f"out-{at}", scratch / case.name / f"work-{at}")
        if history is not None:
            shutil.copytree(history, folders.work / "history")
        yield (planned if at else first)(case, folders, LOCAL)
        history = folders.work / "history"


def _told(name: str, run: Run) -> dict[str, float]:
    assert run.predicted_s is not None
    error = run.predicted_s / run.seconds - 1
    print(f"{name}: predicted {run.predicted_s:.1f} s, measured {run.seconds:.1f} s, {error:+.0%}", flush=True)
    return {"predicted_s": run.predicted_s, "measured_s": round(run.seconds, 1), "error": round(error, 3)}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
