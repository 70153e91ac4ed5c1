"""``python -m benchmarks.rcpsp FOLDER``: how close schedules come to the best known, and what they cost.

Reads the PSPLIB files (``.sm``) of a folder and of those in it. With a ``best_known*.json`` there, or one level
up, an object of ``{instance: {"ub": makespan}}``, gaps are counted from it. Exit 1 where a schedule breaks a rule.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from statistics import fmean

from airflow_dagsched.errors import DagschedError
from airflow_dagsched.model.order import natural_key
from airflow_dagsched.plan.rcpsp.schedule import THOROUGH, schedule
from benchmarks.psplib import read_project
from benchmarks.rcpsp_check import find_violations
from benchmarks.rcpsp_exact import solve_exactly


@dataclass(frozen=True, slots=True)
class Found:
    """One instance; its fields are those of the JSON file."""

    name: str
    set: str
    """The folder the file is in."""
    makespan: int
    lower_bound: int
    best_known: int | None
    start_times: tuple[int, ...]
    """By job in the file's order, the empty first and last one included."""
    cpu_s: float
    """Processor seconds of this process from project to schedule."""
    verified: bool

    @property
    def gap(self) -> float:
        """Share of the best known makespan that this one is longer."""
        return self.makespan / self.best_known - 1 if self.best_known else 0.0


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    """What the caller asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rcpsp", description=__doc__)
    parser.add_argument("folder", type=Path, help="with .sm files")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write one object an instance")
    parser.add_argument("--effort", type=int, default=THOROUGH, help="activities placed at most (default: %(default)s)")
    parser.add_argument("--exact", type=float, metavar="WORK", help="then CP-SAT, so much deterministic time each")
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> int:
    """Schedule, print the table, write the JSON file."""
    asked = arguments(argv)
    try:
        found = measured(asked.folder, asked.effort, asked.exact)
    except (DagschedError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    print(table(found))
    if asked.json:
        asked.json.write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n")
    return int(not all(one.verified for one in found))


def measured(folder: Path, effort: int, exact: float | None = None) -> list[Found]:
    """All instances below ``folder``, in natural order; ``exact`` is the work of CP-SAT, none for none."""
    best = best_known(folder)
    files = sorted(folder.rglob("*.sm"), key=lambda file: natural_key(str(file)))
    return [solved(file, best.get(file.stem), effort, exact) for file in files]


def best_known(folder: Path) -> dict[str, int]:
    """Makespan by instance, the least of those told."""
    found: dict[str, int] = {}
    for file in sorted(chain(folder.rglob("best_known*.json"), folder.resolve().parent.glob("best_known*.json"))):
        _merge(found, json.loads(file.read_text()))
    return found


def _merge(found: dict[str, int], told: Mapping[str, Mapping[str, int]]) -> None:
    for name, entry in told.items():
        found[name] = min(entry["ub"], found.get(name, entry["ub"]))


def solved(file: Path, best: int | None, effort: int, exact: float | None) -> Found:
    """One instance, scheduled and checked."""
    project = read_project(file)
    before = time.process_time()
    made = schedule(project, effort=effort)
    if exact is not None:
        made = solve_exactly(project, made, work=exact)
    cpu_s = time.process_time() - before
    ends = (start + duration for start, duration in zip(made.starts, project.durations, strict=True))
    right = not find_violations(project, made.starts) and max(ends, default=0) == made.makespan
    return Found(
        file.stem, file.parent.name, made.makespan, made.lower_bound, best, made.starts, round(cpu_s, 4), right
    )


def table(found: Iterable[Found]) -> str:
    """One line a set."""
    sets: dict[str, list[Found]] = {}
    for one in found:
        sets.setdefault(one.set, []).append(one)
    head = f"{'set':8}{'files':>7}{'verified':>10}{'proved':>8}{'hits':>6}{'mean gap':>10}{'cpu s':>8}{'most':>7}"
    return "\n".join([head, *(_line(name, members) for name, members in sets.items())])


def _line(name: str, members: Sequence[Found]) -> str:
    known = [one for one in members if one.best_known]
    verified = sum(one.verified for one in members)
    proved = sum(one.makespan == one.lower_bound for one in members)
    hits = sum(one.gap <= 0 for one in known)
    gap = f"{fmean(one.gap for one in known):.3%}" if known else "-"
    cpu = [one.cpu_s for one in members]
    counts = f"{len(members):>7}{verified:>10}{proved:>8}{hits:>6}"
    return f"{name:8}{counts}{gap:>10}{fmean(cpu):>8.2f}{max(cpu):>7.2f}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
