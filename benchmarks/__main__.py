"""``python -m benchmarks``: what planning saves, on this machine, now. Exit 1 where outputs differ.

::

    flights      ten steps, a month
    tpch         24 steps, at each --scale, so that it is seen what data that grows changes
    two_groups   the flights with an ordinary task in between
    backfill     the flights of seven days, a run each
    cluster      the flights on a standalone cluster of two workers

What was measured is in the file of results after each round.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks import clock, data, home, machine, parse_time, pruning, report
from benchmarks.cases import CASES, Case
from benchmarks.measure import Bench, Measured
from benchmarks.places import open_place
from benchmarks.ways import WAYS

ROOT = Path(__file__).parent
SIZES = (10, 100, 1000)
SCALES = (0.1, 1.0)


def arguments(argv: list[str]) -> argparse.Namespace:
    """What the caller asks for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--case", action="append", choices=list(CASES), help="default: all")
    parser.add_argument("--way", action="append", choices=list(WAYS), help="default: those of the case")
    parser.add_argument("--scale", action="append", type=float, help="of TPC-H's data (default: 0.1 and 1)")
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
    clock.adopt_orphans()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what was started is ended, as after Ctrl-C
    results = report.Results(asked.results, machine.facts())
    home.make_archive()
    parses = [parse_time.parse_time(steps, asked.repetitions) for steps in SIZES] if asked.parse else []
    import_s = parse_time.import_time(asked.repetitions) if asked.parse else None
    results.keep(parse=report.as_json(parses), import_s=import_s)
    measured: list[Measured] = []
    for case, scale in list_cases(asked):
        before = [found.as_json() for found in measured]
        for found in run_case(case, scale, asked):
            results.keep(cases=[*before, found.as_json()])
        measured.append(found)
    saved = run_pruning(asked) if asked.pruning else ()
    results.keep(pruning=[found.as_json() for found in saved])
    print("\n" + report.page(measured, parses, import_s))
    print("\n".join(["", *pruning.lines(saved)]) if saved else "")
    print(f"\n{results.file}")
    return int(any(found.differences for found in measured))


def list_cases(asked: argparse.Namespace) -> Iterator[tuple[Case, float | None]]:
    """Cases in the order they are told of, one whose data can grow at each scale."""
    for case in (case for name, case in CASES.items() if not asked.case or name in asked.case):
        for scale in (asked.scale or SCALES) if case.is_scaled else (None,):
            yield case, scale


def run_case(case: Case, scale: float | None, asked: argparse.Namespace) -> Iterator[Measured]:
    """Prepare the input of a case and measure it; what there is after each round."""
    folder = asked.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    prepared = case.prepare(folder, scale or 1.0)
    with open_place(case.place) as place:
        bench = Bench(case, place, prepared, folder / "scratch" / case.name, scale)
        yield from bench.measure(case.choose_ways(asked.way), asked.repetitions)


def run_pruning(asked: argparse.Namespace) -> tuple[pruning.Saved, ...]:
    """One day of the flights with pruning and without."""
    folder = asked.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    return pruning.measure(data.year(folder), folder / "scratch", asked.repetitions)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
