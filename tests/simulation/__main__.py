"""Plays histories from the command line.

::

    python -m tests.simulation --histories 100000
    python -m tests.simulation --seed 4711 --trace

Histories are drawn; the points at which one table write, and the next after it, may die are all gone through by::

    python -m tests.simulation.crash_points
    python -m tests.simulation.crash_points --share 0.1 --only hadoop
"""

from __future__ import annotations

import argparse
import gc
import logging
import sys
import time
from collections import Counter

from tests.simulation.history import Result, play


def main() -> None:
    """Play what is asked for; exit 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, help="only this history")
    parser.add_argument("--trace", action="store_true", help="print every operation of it")
    parser.add_argument("--histories", type=int, default=3000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first")
    args = parser.parse_args()
    logging.disable(logging.CRITICAL)
    sys.exit(_one(args.seed, args.trace) if args.seed is not None else _many(args.first, args.histories))


def _one(seed: int, trace: bool) -> int:
    result = play(seed, trace=trace)
    print("\n".join(result.trace))
    print(result.scenario)
    for name, outcome in result.outcomes.items():
        print(f"{name}: {outcome}")
    print(*result.violations or ["nothing wrong"], sep="\n")
    return bool(result.violations)


def _many(first: int, count: int) -> int:
    gc.freeze()
    gc.set_threshold(100_000, 50, 50)  # a history leaves cycles, small ones: to look for them seldom saves a sixth
    began, red, kinds, operations = time.process_time(), [], Counter[str](), 0
    for seed in range(first, first + count):
        result = play(seed)
        operations += result.operations
        kinds.update(outcome.partition(":")[0] for outcome in result.outcomes.values())
        if result.violations:
            red.append(seed)
            _say(result, len(red))
        if (seed - first + 1) % 5000 == 0:
            print(
                f"{seed - first + 1} histories, {len(red)} wrong, {time.process_time() - began:.0f} CPU s", flush=True
            )
    spent = time.process_time() - began
    print(f"{count} histories, {operations} operations, {spent:.1f} CPU s, {1000 * spent / count:.2f} ms each")
    print(f"tries: {dict(sorted(kinds.items()))}; wrong: {len(red)}")
    return bool(red)


def _say(result: Result, number: int) -> None:
    if number <= 20:
        print(f"seed {result.seed} ({result.scenario.store}): {result.violations[0][:200]}", flush=True)


if __name__ == "__main__":
    main()
