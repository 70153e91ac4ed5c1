"""One history from beginning to end, and what was wrong with it.

::

    tries with faults, readers | settled? | damage | retention passes | tries with faults, clean | settled?
        | a healthy try of each step, alone: prompt, settled? | all cleaned: nothing left, nothing lost
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from tests.simulation.cleaning import clean, damage
from tests.simulation.drivers import TABLE, Driver, Rows, write_draft
from tests.simulation.hadoop_files import HadoopFiles
from tests.simulation.local_files import LocalFiles
from tests.simulation.oracle import Oracle, rubbish
from tests.simulation.scenario import EVERYTHING, LEASE_S, RETENTION_S, Attempt, Bounds, Scenario, draw_scenario
from tests.simulation.seams import simulated
from tests.simulation.tree import Tree
from tests.simulation.world import Faults, Process, Stuck, World

LIMIT_S = 4_000.0
"""All tries with their faults are over by then."""
PROMPT_S = 6 * LEASE_S + 60.0
"""A healthy writer alone is done by then, whoever died before it."""


@dataclass
class Result:
    """How a history went."""

    seed: int
    scenario: Scenario
    violations: list[str]
    outcomes: dict[str, str] = field(default_factory=dict)
    trace: list[str] = field(default_factory=list)
    operations: int = 0


def play(seed: int, bounds: Bounds = EVERYTHING, *, trace: bool = False) -> Result:
    """The history of ``seed``."""
    rng = Random(seed)
    scenario = draw_scenario(rng, bounds)
    world = World(rng, scenario.switch, trace)
    with simulated(world, write_draft):
        history = History(seed, scenario, world)
        try:
            history.play()
        except Stuck as stuck:
            history.wrong(str(stuck))
        finally:
            world.close()
    result = history.result
    result.trace = world.trace or []
    result.operations = sum(process.operations for process in world.processes)
    return result


class History:
    """A scenario in its world."""

    def __init__(self, seed: int, scenario: Scenario, world: World) -> None:
        self.scenario = scenario
        self.world = world
        self.tree = Tree(lambda: world.now)
        self.oracle = Oracle(self.tree)
        self.result = Result(seed, scenario, self.oracle.violations)
        world.appeared = self._appeared
        for folder in ("/data", "/work0", "/work1"):
            self.tree.make_folder(folder)

    def wrong(self, what: str) -> None:
        """Something is."""
        self.world.note(f"!! {what}")
        self.result.violations.append(what)

    def play(self) -> None:
        """See the module."""
        scenario = self.scenario
        for at in scenario.readers:
            self.world.process(f"reader{at:.0f}", self._read, at=at)
        self._tries(scenario.attempts, "after the first tries")
        if scenario.damaged:
            self.world.note(f"somebody {damage(self.tree, self.world.rng)}")
        if scenario.later:
            self.world.now += 2 * RETENTION_S
            for each in scenario.cleans:
                self._clean(each.at, each.faults)
            self._tries(scenario.later, "after the later tries")
        last = {(each.step, each.interval): each for each in (*scenario.attempts, *scenario.later)}
        for attempt in last.values():
            self._again(attempt)
        self._settle("after healthy tries")
        if scenario.ends_clean:
            self.world.now += 2 * RETENTION_S
            self._clean()
            self.world.run(PROMPT_S)
            self._settle("after the last clean")
            for path in rubbish(self.tree):
                self.wrong(f"left for ever: {path}")

    def _appeared(self, path: str, text: str) -> None:
        if "/leases/" in path or "/lock/" in path:
            self.world.take_over()
        else:
            self.oracle.appeared(path, text)

    def store(self, process: Process) -> Any:
        """The files as the process sees them."""
        if self.scenario.store == "local":
            return LocalFiles(self.world, self.tree)
        return HadoopFiles(self.world, self.tree, process)

    def _tries(self, attempts: Iterable[Attempt], when: str) -> None:
        for attempt in attempts:
            self._begin(attempt)
        self.world.run(LIMIT_S)
        self._settle(when)

    def _begin(self, attempt: Attempt) -> None:
        def main(process: Process) -> None:
            driver = Driver(self.store(process), process, attempt)
            try:
                outcome = driver.run(self._rows(attempt, process))
            except Exception as error:  # noqa: BLE001 - whatever it is
                outcome = f"error: {type(error).__name__}: {error}"
            self._ended(attempt, process, outcome)

        self.world.process(
            attempt.name,
            main,
            at=attempt.at,
            faults=attempt.faults,
            slow_rename_s=attempt.slow_rename_s,
            skew_s=attempt.skew_s,
        )

    def _ended(self, attempt: Attempt, process: Process, outcome: str) -> None:
        self.result.outcomes[attempt.name] = outcome
        self.world.note(f"== {outcome}")
        writer = f"dag/flow/{attempt.step}"
        if outcome == "committed" and (attempt.run_id, writer, attempt.try_id) not in self.oracle.tries:
            self.wrong(f"{attempt.name} says that it committed, and did not")
        cleaned = (
            self.scenario.cleans and attempt in self.scenario.later
        )  # the numbers that somebody looked at may be gone
        troubled = process.faulted or attempt.slow_rename_s or cleaned or self._is_followed(attempt)
        if outcome.startswith(("refused", "error")) and not troubled:
            self.wrong(f"{attempt.name} is the last try, nothing happened to it: {outcome}")

    def _is_followed(self, attempt: Attempt) -> bool:
        """Whether there is a later try in the same run."""
        mine = (attempt.step, attempt.run_id, attempt.interval)
        tries = (*self.scenario.attempts, *self.scenario.later)
        return any((of.step, of.run_id, of.interval) == mine and of.try_id > attempt.try_id for of in tries)

    def _rows(self, attempt: Attempt, process: Process) -> Rows:
        texts = tuple(f"{attempt.name}#{number}" for number in range(attempt.files))
        rows = Rows(f"t{len(self.oracle.rows):04d}", attempt.folders, texts, attempt.compute_s, process)
        self.oracle.rows[rows.tag] = tuple((folder, text) for folder in rows.folders for text in texts)
        return rows

    def _settle(self, when: str) -> None:
        """A healthy reader comes, and finds what it must."""
        tables = {each.work_dir: each for each in self.scenario.attempts if each.output == "table"}
        for attempt in tables.values():
            self._alone("finisher", lambda process, of=attempt: Driver(self.store(process), process, of).settle())
        for wrong in self.oracle.wrong(TABLE):
            self.wrong(f"{when}: {wrong}")

    def _alone(self, name: str, do: Callable[[Process], None]) -> None:
        def main(process: Process) -> None:
            try:
                do(process)
            except Exception as error:  # noqa: BLE001 - whatever it is
                self.wrong(f"{name}: {type(error).__name__}: {error}")

        self.world.process(name, main)
        self.world.run(PROMPT_S)

    def _again(self, attempt: Attempt) -> None:
        """The step is cleared, healthy, and must commit."""
        again = healthy(attempt)
        self._begin(again)
        self.world.run(PROMPT_S)
        if (outcome := self.result.outcomes.get(again.name)) != "committed":
            self.wrong(f"{again.name}: a healthy writer alone ends as {outcome}")

    def _clean(self, at: float = 0.0, faults: Faults | None = None) -> None:
        self.world.process("clean", lambda process: clean(self.store(process), process), at=at, faults=faults)

    def _read(self, process: Process) -> None:
        """A plain reader: lists the table's folders some times, and compares with what they ever were."""
        store = self.store(process)
        for _ in range(6):
            for folder in self.scenario.partitions or ("",):
                self._look(store, folder)
            process.sleep(self.world.rng.choice((0.0, 0.2, 5.0)))

    def _look(self, store: Any, folder: str) -> None:
        names = [each.name for each in store.list(f"{TABLE}/{folder}" if folder else TABLE) if not each.is_folder]
        seen = frozenset(name[11:16] for name in names if name.startswith("part-"))
        moves_files = any(each.mode == "append" for each in self.scenario.attempts)
        if seen and not self.oracle.was(folder, seen, partly=moves_files):
            self.wrong(f"reader: {folder!r} shows {sorted(seen)}, which it never was")


def healthy(attempt: Attempt) -> Attempt:
    """The same step, cleared and tried again, with nothing in its way."""
    before = attempt.try_id
    again = replace(before, clear_number=before.clear_number + 1, try_number=before.try_number + 1)
    return replace(
        attempt,
        name=f"{attempt.name}+",
        try_id=again,
        code=f"{attempt.code}+",
        at=0.0,
        faults={},
        slow_rename_s=0.0,
        skew_s=0.0,
    )
