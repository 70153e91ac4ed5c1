"""``python -m benchmarks.stream``: a stream's speed beside a plain query, pauses and moves, and what switches leave."""

from __future__ import annotations

import argparse
import shutil
import sys
from dataclasses import asdict
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks import machine
from benchmarks.results_file import RESULTS, put_down
from benchmarks.stream.application import open_spark
from benchmarks.stream.moves import measure_moves
from benchmarks.stream.pause import measure_pauses
from benchmarks.stream.ratios import find_speed, measure_rounds
from benchmarks.stream.twenty import measure_switches

PARTS = ("moves", "speed", "pause", "switches")
STREAM = RESULTS / "stream.json"


def main(argv: list[str]) -> int:
    """Measure what is asked for, one after another, in one process."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stream", description=__doc__)
    parser.add_argument("--part", action="append", choices=PARTS, help="default: all")
    parser.add_argument("--rounds", type=int, default=5, help="of the speed, after two to warm up (default: 5)")
    parser.add_argument("--switches", type=int, default=20, help="in one application (default: 20)")
    parser.add_argument("--folder", type=Path, default=Path(".home/benchmarks/stream"), help="scratch")
    asked = parser.parse_args(argv)
    folder = asked.folder.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    parts = asked.part or PARTS
    if "moves" in parts:
        put_down(STREAM, moves={"machine": machine.facts(), "found": _measure_moves(folder / "moves")})
    if inside := [each for each in parts if each != "moves"]:
        _measure_inside(inside, folder, asked)
    return 0


def _measure_inside(parts: list[str], folder: Path, asked: argparse.Namespace) -> None:
    """What is measured in an application of this process."""
    spark = open_spark(folder)
    measure = {"speed": _measure_speed, "pause": _measure_pause, "switches": _measure_switches}
    for part in parts:
        facts = machine.facts()
        put_down(STREAM, **{part: {"machine": facts, "found": measure[part](spark, folder / part, asked)}})
    spark.stop()


def _measure_moves(folder: Path) -> object:
    """Before there is a Spark in this process: its drivers are processes of their own."""
    moves = measure_moves(folder)
    print(f"trigger {moves.trigger_s:g} s, batches of {moves.batches_s} s; longest gap between commits, medians:")
    for kind, gaps in moves.gaps.items():
        gap = moves.find_median(kind)
        print(f"  {kind:16} {gap.seconds:5.1f} s, {gap.seconds / moves.trigger_s:4.1f} triggers, ", end="")
        print(f"{gap.cpu_s:5.1f} CPU s, of {len(gaps)}")
    return asdict(moves)


def _measure_speed(spark: SparkSession, folder: Path, asked: argparse.Namespace) -> object:
    rounds = measure_rounds(spark, folder, warm_up=2, rounds=asked.rounds)
    for each in rounds:
        print(f"plain {each.plain:6.2f} s   replay {each.replay:6.2f} s   {each.plain / each.replay:.2f}", end="   ")
        print(f"inbox {each.inbox:6.2f} s   {each.plain / each.inbox:.2f}")
    speed = {way: find_speed(rounds, way) for way in ("replay", "inbox")}
    for way, found in speed.items():
        print(f"speed of a graph that took over by {way}: {found:.2f} of the plain query's (CPU, median)")
    return {**speed, "rounds": [each._asdict() for each in rounds]}


def _measure_pause(spark: SparkSession, folder: Path, _asked: argparse.Namespace) -> object:
    pauses = measure_pauses(spark, folder)
    print(f"trigger {pauses.trigger_s:g} s, batch {pauses.batch_s:.1f} s; longest gap between commits:")
    print(f"  no switch {pauses.plain_s:.1f} s, switch by replay {pauses.replay_s:.1f} s: ", end="")
    print(f"{pauses.longer_triggers:+.2f} triggers; stop and restart in the same application ", end="")
    print(f"{pauses.same_application_s:.1f} s, in a new one {pauses.new_application_s:.1f} s")
    return asdict(pauses)


def _measure_switches(spark: SparkSession, folder: Path, asked: argparse.Namespace) -> object:
    return [asdict(each) for each in measure_switches(spark, folder, asked.switches)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
