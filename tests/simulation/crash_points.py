"""Every point of a table write at which its process may die, and every point of the write after that.

::

    settle     pointer in the work dir, torn swaps of the table finished     each operation of the store that changes
    lease      number taken, the one before removed, renewed                 something is a point: dead before it,
    draft      files put, named by key                                       within it where it is not done at once,
    lock       flock, or a lease of its own                                  and after the last
    prepare    probes into the table and back, journal
    record     <- the commit point
    swap       files out, files in, journal removed                          first  ....x
    clean up   draft, fenced drafts, lease and lock given back               second      ^..harm?..x
                                                                             third                  ^..harm?.......end
A death before an operation that only looks leaves the same files as one before the next change. Whatever differs in
nothing but the time is played once. ::

    python -m tests.simulation.crash_points
    python -m tests.simulation.crash_points --share 0.1 --only append
    python -m tests.simulation.crash_points --harm do_nothing
"""

from __future__ import annotations

import argparse
import gc
import logging
import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from random import Random

from airflow_dagsched.launch.protocol.keys import name_hidden_folder
from tests.simulation.crash_tries import SETTINGS, Explorer, Setting
from tests.simulation.drivers import TABLE
from tests.simulation.harms import HOME, IN_BETWEEN, LINKS, MOUNTS, Harm, do_nothing, empty_lease, empty_lock
from tests.simulation.snapshots import Snapshot

HELD_UP = (do_nothing, empty_lease, empty_lock)
"""After these the second try begins at once, and waits for what the dead one held; else it has expired."""


@dataclass
class Found:
    """What was counted, and what is not as it must be."""

    points: int = 0
    pairs: int = 0
    tries: int = 0
    wrong: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)

    def add(self, other: Found) -> None:
        """With all of the other's."""
        self.points += other.points
        self.pairs += other.pairs
        self.tries += other.tries
        self.wrong += other.wrong
        self.stuck += other.stuck


class Exploration:
    """All points, and pairs of points, of one setting."""

    def __init__(self, setting: Setting, share: float, rng: Random, harm: str = "") -> None:
        self._explorer = Explorer(setting)
        self._setting = setting
        self._share = math.sqrt(share)
        """Of the first points, and of the second ones after each: to find these costs more than to play one."""
        self._rng = rng
        self._harm = harm
        """Part of the name of those that are tried."""
        self.found = Found()

    def explore(self) -> Found:
        """Every harm at every place."""
        for harm in self._harms():
            for after in (1, 2) if harm in IN_BETWEEN else (0, 1, 2):
                self._explore(harm, after)
        self.found.tries = self._explorer.tries
        return self.found

    def _harms(self) -> tuple[Harm, ...]:
        harms = (*IN_BETWEEN, *(LINKS if self._setting.store == "local" else ()), *MOUNTS)
        return tuple(harm for harm in harms if self._harm in harm.__name__)

    def _explore(self, harm: Harm, after: int) -> None:
        """The harm is done after so many deaths."""
        begin = harm(self._explorer.begin) if after == 0 else self._explorer.begin
        if begin is None or (harm is do_nothing and after == 2):
            return
        with self._explorer.staged():
            deaths = tuple(self._deaths(begin, 2))
        for first, died in enumerate(deaths):
            harmed = harm(died) if after == 1 else died
            if harmed is None:
                continue
            if harm not in HELD_UP:
                harmed = _later(harmed)
            with self._explorer.staged():
                if self._is_drawn():
                    self._explore_second(harm, after, first, harmed)
                if after < 2:
                    self.found.points += 1
                    self._end(f"{harm.__name__} after {after}, point {first}", harmed, 3)

    def _explore_second(self, harm: Harm, after: int, first: int, files: Snapshot) -> None:
        for second, died in enumerate(self._deaths(files, 3)):
            harmed = harm(died) if after == 2 else died
            if harmed is not None and self._is_drawn():
                self.found.pairs += 1
                self._end(f"{harm.__name__} after {after}, points {first} and {second}", _later(harmed), 4)

    def _is_drawn(self) -> bool:
        return self._rng.random() < self._share

    def _deaths(self, files: Snapshot, number: int) -> Iterator[Snapshot]:
        """What try ``number`` may leave."""
        last = None
        for point in self._explorer.run(files, number, is_watched=True).points:
            if last is None or point.nodes != last.nodes:
                yield point
            last = point

    def _end(self, case: str, files: Snapshot, number: int) -> None:
        """The tries from ``number`` on go to their ends; what must be true then."""
        if files.mounts:
            files = self._end_refused(case, files, number)
            number += 2
        last = number if self._setting.writers != "two steps" else number + 1
        for each in range(number, last + 1):
            ran = self._explorer.run(files, each)
            files = ran.after
            if ran.outcome not in {"committed", "reused"}:
                self.found.stuck.append(f"{self._setting}: {case}: try {each}: {ran.outcome}")
        wanted = self._explorer.expected((0, 1, *range(number, last + 1)))
        if ran.content != wanted:
            self.found.wrong.append(
                f"{self._setting}: {case}: lost {sorted(wanted - ran.content)}, "
                f"not wanted {sorted(ran.content - wanted)}"
            )
        if is_torn(files):
            self.found.stuck.append(f"{self._setting}: {case}: a swap is left")

    def _end_refused(self, case: str, files: Snapshot, number: int) -> Snapshot:
        """What is left of a try that meets a mount point, once that is no more."""
        ran = self._explorer.run(files, number)
        if not is_torn(files) and ran.outcome.startswith("error"):
            changed = table_of(files) != table_of(ran.after) or is_torn(ran.after)
            if changed or not ran.outcome.startswith("error: NoWayIn"):
                self.found.wrong.append(f"{self._setting}: {case}: not as it was after {ran.outcome}")
        return replace(ran.after, mounts=frozenset())


def is_torn(files: Snapshot) -> bool:
    """Whether a swap of the table is not finished."""
    table = files.nodes.get(TABLE)
    home = HOME if table is None or table.kind == "folder" else name_hidden_folder(table.text)
    return any(path.endswith("/swap.json") for path in files.paths(home))


def table_of(files: Snapshot) -> dict[str, str]:
    """The table's files, but for probes, and their texts."""
    return {path: files.nodes[path].text for path in files.paths(TABLE) if "/." not in path[len(TABLE) :]}


def _later(files: Snapshot) -> Snapshot:
    """What was held has expired."""
    return replace(files, now=files.now + 60.0)


def explore(share: float, seed: int = 0, only: str = "", harm: str = "") -> Iterator[tuple[Setting, Found]]:
    """Setting by setting; of pairs a share, drawn by the seed."""
    for setting in SETTINGS:
        if only in str(setting):
            yield setting, Exploration(setting, share, Random(f"{seed} {setting}"), harm).explore()


@contextmanager
def in_a_hurry() -> Iterator[None]:
    """Without log, and with the garbage of what is played collected seldom: a quarter of all time else."""
    thresholds, level = gc.get_threshold(), logging.root.manager.disable
    gc.freeze()
    gc.set_threshold(100_000, 50, 50)
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(level)
        gc.set_threshold(*thresholds)
        gc.unfreeze()


def main() -> None:
    """Print what there was; exit 1 if anything was wrong or stuck."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.crash_points")
    parser.add_argument("--share", type=float, default=1.0, help="of the pairs, from 0 to 1")
    parser.add_argument("--seed", type=int, default=0, help="which ones")
    parser.add_argument("--only", default="", help="settings with this in their name, as append or hadoop")
    parser.add_argument("--harm", default="", help="harms with this in their name, as do_nothing or mount")
    args = parser.parse_args()
    total, began = Found(), time.process_time()
    with in_a_hurry():
        for setting, found in explore(args.share, args.seed, args.only, args.harm):
            _say(str(setting), found, began)
            total.add(found)
    _say("all", total, began)
    sys.exit(bool(total.wrong or total.stuck))


def _say(what: str, found: Found, began: float) -> None:
    for each in (*found.wrong[:5], *found.stuck[:5]):
        print(each)
    print(
        f"{what}: {found.points} points, {found.pairs} pairs, {found.tries} tries played, {len(found.wrong)} wrong, "
        f"{len(found.stuck)} stuck, {time.process_time() - began:.0f} CPU s",
        flush=True,
    )


if __name__ == "__main__":
    main()
