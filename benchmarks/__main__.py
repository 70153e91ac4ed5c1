"""``python -m benchmarks``: what planning saves, on this machine, now. Exit 1 where outputs differ."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks import data, home, machine, parse_time, pruning, report
from benchmarks.cases import CASES
from benchmarks.measure import Measured, measure
from benchmarks.ways import WAYS

ROOT = Path(__file__).parent
SIZES = (10, 100, 1000)


def arguments(argv: list[str]) -> argparse.Namespace:
    """What the caller asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--case", action="append", choices=sorted(CASES), help="default: all")
    parser.add_argument("--way", action="append", choices=list(WAYS), help="default: all")
    parser.add_argument("--scale", type=float, default=0.1, help="scale factor of TPC-H (default: %(default)s)")
    parser.add_argument("--repetitions", type=int, default=3, help="default: %(default)s")
    parser.add_argument("--parse", action=argparse.BooleanOptionalAction, default=True, help="parse and import time")
    parser.add_argument("--pruning", action=argparse.BooleanOptionalAction, default=True, help="what pruning saves")
    parser.add_argument("--folder", type=Path, default=ROOT.parent / ".home" / "benchmarks", help="input and scratch")
    parser.add_argument("--results", type=Path, default=ROOT / "results", help="default: %(default)s")
    return parser.parse_args(argv)


def main(argv: list[str]) -> int:
    """Measure, print the page, write the JSON file."""
    asked = arguments(argv)
    home.enter(asked.folder.resolve() / "airflow")
    facts = machine.facts()
    home.make_archive()
    parses = [parse_time.parse_time(steps, asked.repetitions) for steps in SIZES] if asked.parse else []
    import_s = parse_time.import_time(asked.repetitions) if asked.parse else None
    measured = [run_case(name, asked) for name in asked.case or CASES]
    saved = run_pruning(asked) if asked.pruning else ()
    print("\n" + report.page(measured, parses, import_s))
    print("\n".join(["", *pruning.lines(saved)]) if saved else "")
    print(f"\n{report.write(asked.results, facts, measured, parses, import_s, saved)}")
    return int(any(found.differences for found in measured))


def run_pruning(asked: argparse.Namespace) -> tuple[pruning.Saved, ...]:
    """One day of the flights with pruning and without."""
    folder = asked.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    return pruning.measure(data.year(folder), folder / "scratch", asked.repetitions)


def run_case(name: str, asked: argparse.Namespace) -> Measured:
    """Prepare the input of a case and measure it."""
    folder = asked.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    prepared = data.flights(folder) if name == "flights" else data.tpch(folder, asked.scale)
    return measure(CASES[name], prepared, folder / "scratch" / name, asked.way or list(WAYS), asked.repetitions)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
