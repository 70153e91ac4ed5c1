"""Tries of table writes, one alone at a time, each from files that others left; see ``crash_points``."""

from __future__ import annotations

import itertools
from collections import Counter
from contextlib import AbstractContextManager
from dataclasses import dataclass
from random import Random
from typing import Any, Literal

from airflow_dagsched.launch.protocol.identity import TryId
from tests.simulation.drivers import TABLE, Driver, Rows, write_draft
from tests.simulation.harms import BY_LINK
from tests.simulation.oracle import visible
from tests.simulation.places import HadoopPlaces, LocalPlaces, Places
from tests.simulation.scenario import LEASE_S, Attempt
from tests.simulation.seams import simulated
from tests.simulation.snapshots import Snapshot, halfway, restore, take
from tests.simulation.world import START, Process, Stuck, World

CHANGES = frozenset(
    {"link", "unlink", "create", "replace", "put", "mkdirs", "rename", "exchange", "rmdir", "delete", "close", "lock"}
)
PROMPT_S = 6 * LEASE_S + 60.0
"""A writer alone is done by then, whoever died before it."""
Content = Counter[tuple[str, str]]
"""Folder and text of each file that readers see."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What kind of write dies, and who comes after it."""

    store: Literal["local", "hadoop"]
    mode: Literal["append", "overwrite"]
    is_partitioned: bool
    writers: Literal["one work dir", "two work dirs", "two steps"]
    """Tries of one run; runs of one step from two work dirs in turn; steps with a work dir each in turn."""


SETTINGS = tuple(
    itertools.starmap(
        Setting,
        itertools.product(
            ("local", "hadoop"), ("append", "overwrite"), (False, True), ("one work dir", "two work dirs", "two steps")
        ),
    )
)


@dataclass(frozen=True, slots=True)
class Ran:
    """A try that nobody killed."""

    outcome: str
    after: Snapshot
    points: tuple[Snapshot, ...]
    """What it would have left if it had died."""
    content: Content


class Watched(World):
    """A world of one process that keeps what is there before, and within, each of its changes."""

    def __init__(self, seed: int, snapshot: Snapshot) -> None:
        super().__init__(Random(seed), 0.0)
        self.now = snapshot.now
        self.tree = Places(lambda: self.now)
        restore(snapshot, self.tree)
        self.points: list[Snapshot] = []
        self._last: tuple[str, str, Snapshot] | None = None
        self.is_watched = False
        self._until = self.now + PROMPT_S

    def point(self, operation: str, path: str) -> None:
        """See ``World``. Who goes round and round is stuck, too."""
        super().point(operation, path)
        if self.now > self._until:
            raise Stuck("time is up")
        if self.is_watched and operation in CHANGES:
            self.keep(operation, path)

    def keep(self, operation: str, path: str) -> None:
        """Keep what is there now, before this operation, and what half of the one before it would have left."""
        snapshot = take(self.tree, self.now)
        if self._last is not None:
            self.points += halfway(*self._last, snapshot)
        self.points.append(snapshot)
        self._last = operation, path, snapshot


class Stage:
    """The world that is played in now."""

    def __init__(self) -> None:
        self.world: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.world, name)


class Explorer:
    """Plays the tries of one setting; each that meets the same files once."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self._known: dict[object, Ran] = {}
        self.tries = 0
        """Those that were played."""
        self._stage = Stage()
        nothing = Watched(0, Snapshot({}, START))
        for folder in ("/data", "/work0", "/work1"):
            nothing.tree.make_folder(folder)
        with self.staged():
            before = self.run(take(nothing.tree, START), 0).after
            self.begin = self.run(before, 1).after
        """Rows of another interval, and of an earlier run of the step."""

    def staged(self) -> AbstractContextManager[None]:
        """Tries are played in it; of those in one what the product reads again and again is parsed once."""
        return simulated(self._stage, write_draft)

    def run(self, files: Snapshot, number: int, *, is_watched: bool = False) -> Ran:
        """Try ``number`` of the setting to its end."""
        key = (number, files.key)
        ran = self._known.get(key)
        if ran is None or (is_watched and len(ran.points) == 1):
            ran = self._known[key] = self._play(files, number, is_watched)
            self.tries += 1
        return ran

    def _play(self, files: Snapshot, number: int, is_watched: bool) -> Ran:
        world = self._stage.world = Watched(number, files)
        world.is_watched = is_watched
        outcomes: list[str] = []

        def main(process: Process) -> None:
            driver = Driver(self._store(world, process), process, self.attempt(number), _location(world.tree))
            try:
                outcomes.append(driver.run(self._rows(number, process)))
            except Exception as error:  # noqa: BLE001 - whatever it is
                outcomes.append(f"error: {type(error).__name__}: {error}")

        world.process(f"try {number}", main)
        try:
            world.run(PROMPT_S)
        except Stuck as stuck:
            outcomes.append(f"stuck: {stuck}")
        finally:
            world.close()
        world.keep("end", "")
        after = world.points[-1]
        return Ran(outcomes[-1], after, tuple(world.points), Counter(visible(world.tree, TABLE)))

    def _store(self, world: Watched, process: Process) -> Any:
        if self.setting.store == "local":
            return LocalPlaces(world, world.tree)
        return HadoopPlaces(world, world.tree, process)

    def attempt(self, number: int) -> Attempt:
        """0 is of another interval, 1 of an earlier run, the others are those that die, or come after these."""
        is_second = number > 2 and number % 2 == 1 and self.setting.writers != "one work dir"
        step = "b" if is_second and self.setting.writers == "two steps" else "a"
        run = f"r{number if number < 2 else 2 + is_second}"
        return Attempt(
            name=f"try {number}",
            step=step,
            interval="mon" if number else "tue",
            run_id=run,
            try_id=TryId("2026-01-01T00:00:00.000000Z", 0, number),
            at=0.0,
            work_dir=f"/work{int(is_second)}",
            output="table",
            mode=self.setting.mode,
            folders=self._folders(step, number),
            files=1 if self.setting.is_partitioned else 2,
            code=run,
            compute_s=LEASE_S / 4 + 1.0,
        )

    def _folders(self, step: str, number: int) -> tuple[str, ...]:
        if not self.setting.is_partitioned:
            return ("",)
        if number < 2:
            return (("p=0", "p=2"), ("p=1", "p=2"))[number]
        return ("p=2", "p=3") if step == "a" else ("p=2", "p=4")

    def _rows(self, number: int, process: Process) -> Rows:
        attempt = self.attempt(number)
        return Rows(f"t{number:04d}", attempt.folders, self._texts(number), attempt.compute_s, process)

    def _texts(self, number: int) -> tuple[str, ...]:
        """The same of all tries of a step but the first."""
        attempt = self.attempt(number)
        name = ("other", "a old")[number] if number < 2 else f"{attempt.step} new"
        return tuple(f"{name} {file}" for file in range(attempt.files))

    def expected(self, numbers: tuple[int, ...]) -> Content:
        """What the table holds after these tries, one after the other and each to its end."""
        content: dict[str, dict[str, tuple[str, ...]]] = {}
        for number in numbers:
            attempt = self.attempt(number)
            writer = f"{attempt.step} {attempt.interval}"
            for there in content.values():
                there.pop(writer, None)
            for folder in attempt.folders:
                kept = content.get(folder, {}) if attempt.mode == "append" else {}
                content[folder] = {**kept, writer: self._texts(number)}
        return Counter((at, text) for at, there in content.items() for texts in there.values() for text in texts)


def _location(tree: Places) -> str:
    return BY_LINK if tree.is_link(BY_LINK) else TABLE
