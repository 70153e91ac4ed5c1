"""What an archive of classes saves: ``python -m benchmarks.archive [--part start|flights|cluster|fresh]``.

::

    start     an application of one step that counts a few rows, on local[2]
    flights   January of the flights, on local[2]
    cluster   the first one on a standalone cluster of two workers: driver and two executors
    fresh     the first one on a machine without an archive, whose making begins when it has ended

Each way in turns, processor seconds of all processes, medians. ``plain`` is Java as it comes, in driver and executors;
``quick`` has the quick compiler, ``archive`` both. What making one takes is told, and counted nowhere.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from airflow_dagsched.launch.protocol.interval import Interval
from benchmarks import data, home, machine
from benchmarks.cases import FLIGHTS, HERE, Case
from benchmarks.clock import Clock, adopt_orphans
from benchmarks.home import CACHE, CONF, PLAIN, SWITCH, changed_environment
from benchmarks.places import ON_LOOPBACK, THEIRS, open_cluster
from benchmarks.results_file import RESULTS, put_down
from benchmarks.ways import Folders, Run, launch_planned

START = Case("start", "one step that counts a few rows", HERE / "dags" / "start.py", Path(), (Interval("once"),))
PARTS = ("start", "flights", "cluster", "fresh")
Way = Callable[[], Run]


def main(argv: list[str]) -> int:
    """Measure the parts asked for, print them, write the JSON file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.archive")
    parser.add_argument("--part", action="append", choices=PARTS, help="default: all")
    parser.add_argument("--repetitions", type=int, default=5, help="default: %(default)s")
    parser.add_argument("--folder", type=Path, default=HERE.parent / ".home" / "benchmarks", help="input and scratch")
    parser.add_argument("--json", type=Path, default=RESULTS / "archive.json", help="default: %(default)s")
    asked = parser.parse_args(argv)
    folder = asked.folder.resolve()
    home.enter(folder / "airflow")
    os.environ[CACHE] = str(folder / "archives")
    adopt_orphans()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what was started is ended, as after Ctrl-C
    put_down(asked.json, machine=machine.facts(), making=make(folder))
    for part in asked.part or PARTS:
        put_down(asked.json, **{part: measure(part, asked.repetitions, folder)})
    return 0


def make(folder: Path) -> dict[str, float]:
    """An archive for drivers; what it takes."""
    command = [sys.executable, "-m", "airflow_dagsched", "class-archive", "make"]
    shutil.rmtree(folder / "archives", ignore_errors=True)
    clock = Clock()
    subprocess.run([*command, "--cache-dir", str(folder / "archives")], check=True)
    taken = clock.read()
    (file,) = (folder / "archives" / "class-archives").glob("*.jsa")
    print(f"making: {taken.seconds:.1f} s, {taken.cpu_s:.1f} cpu s, {file.stat().st_size >> 20} MB", flush=True)
    return {"seconds": taken.seconds, "cpu_s": taken.cpu_s, "bytes": file.stat().st_size}


def measure(part: str, repetitions: int, folder: Path) -> dict[str, Any]:
    """Each way of the part in turns; told and kept."""
    runs: dict[str, list[Run]] = {}
    with open_ways(part, folder) as ways:
        for _ in range(repetitions):
            for name, run in ways.items():
                runs.setdefault(name, []).append(run())
                print(f"{part} {name}: {runs[name][-1].cpu_s:.1f} cpu s", flush=True)
    cpu_s = {name: median(run.cpu_s for run in each) for name, each in runs.items()}
    wall_s = {name: median(run.seconds for run in each) for name, each in runs.items()}
    last = list(cpu_s)[-1]
    ratios = {
        f"{last} / {name}": {"cpu_s": cpu_s[last] / cpu_s[name], "seconds": wall_s[last] / wall_s[name]}
        for name in list(cpu_s)[:-1]
    }
    for name, taken in cpu_s.items():
        print(f"{part} {name}: median {taken:.2f} cpu s, {wall_s[name]:.2f} s")
    for name, ratio in ratios.items():
        print(f"{part} {name}: {ratio['cpu_s']:.2f} of the processor time, {ratio['seconds']:.2f} of the time")
    return {"runs": {name: [asdict(run) for run in each] for name, each in runs.items()}, "ratios": ratios}


@contextmanager
def open_ways(part: str, folder: Path) -> Iterator[dict[str, Way]]:
    """The ways of a part; what they stand on is there inside the block."""
    where = Folders(folder, folder / "scratch" / "archive" / "out", folder / "scratch" / "archive" / "work")
    if part == "cluster":
        theirs = {SWITCH: "auto", THEIRS: home.make_executor_archive()}
        with open_cluster():
            yield {
                "plain": lambda: run_case(START, where, {**PLAIN, **ON_LOOPBACK}, {SWITCH: "off"}),
                "quick": lambda: run_case(START, where, {**CONF, **ON_LOOPBACK}, {SWITCH: "off"}),
                "archive": lambda: run_case(START, where, {**CONF, **ON_LOOPBACK}, theirs),
            }
    elif part == "fresh":
        yield {
            "off": lambda: run_case(START, where, CONF, {SWITCH: "off"}),
            "fresh": lambda: run_fresh(where, folder / "fresh"),
        }
    else:
        case, given = (FLIGHTS, data.flights(folder)) if part == "flights" else (START, folder)
        there = Folders(given, where.out, where.work)
        yield {
            "plain": lambda: run_case(case, there, PLAIN, {SWITCH: "off"}),
            "quick": lambda: run_case(case, there, CONF, {SWITCH: "off"}),
            "archive": lambda: run_case(case, there, CONF, {SWITCH: "auto"}),
        }


def run_case(case: Case, where: Folders, conf: Mapping[str, str], environment: Mapping[str, str]) -> Run:
    """The case as its launch tasks run it, once, from nothing."""
    where.clear()
    with changed_environment(environment):
        return launch_planned(case, where, conf)


def run_fresh(where: Folders, cache: Path) -> Run:
    """As the first run on a machine; what it leaves behind is ended."""
    shutil.rmtree(cache, ignore_errors=True)
    run = run_case(START, where, CONF, {SWITCH: "auto", CACHE: str(cache)})
    for each in Path("/proc").iterdir():
        if each.name.isdecimal() and _is_maker(each, cache):
            os.kill(int(each.name), signal.SIGKILL)
    return run


def _is_maker(process: Path, cache: Path) -> bool:
    try:
        return str(cache).encode() in (process / "cmdline").read_bytes()
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
