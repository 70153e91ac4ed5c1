"""Who goes on after each operation, and when: cooperative tasks, a virtual clock, seeded faults.

::

    process "mon.1"  task main      --op--op--sleep 3.2------op--+           killed: nothing of it has an effect
                     task renewal   --------sleep 5----op--------+---
    process "tue.1"  task main      ----op--[frozen 40 s]----------------op--op--> ended

Each store operation is a *point*: here the seed decides who goes on, and here processes are killed, frozen
(all tasks of it stand) or slowed down (one task of it does).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Literal

from greenlet import getcurrent, greenlet

TICK_S = 0.004
"""Virtual seconds that an operation takes."""
BRIEF_S = 14.0
"""A lease that somebody took after having stood still for so long lasts for some time yet."""
START = 1_800_000_000.0


def area_of(path: str) -> str:
    """What the file at ``path``, or the first of two, is for: ``leases``, ``lock``, ``commits``, ``data``; or else."""
    return next((area for area in ("leases", "lock", "commits", "data") if f"/{area}/" in path), "other")


class Killed(BaseException):
    """The process is dead; unwinds what is left of it, without any effect."""


class Stuck(Exception):
    """Virtual time is up, or all wait for each other."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to a process before one of its operations."""

    kind: Literal["kill", "freeze", "slow"]
    seconds: float = 0.0
    """For how long it is frozen, or the one operation takes."""
    overtaken: int = 0
    """A freeze ends early once others took over so many times (see ``World.take_over``); 0: it does not."""
    operations: int = 0
    """That others then still do before it ends."""


Faults = Mapping[int | str, Fault]
"""By the number of the operation; by its name and number among those of that name: ``rename 3``; or by its name, where
it is done, and its number among these: ``rename data 1``. See ``area_of``."""


@dataclass(slots=True)
class Overtaking:
    """A freeze that ends when others have gone so far. See ``Fault``."""

    process: Process
    times: int
    operations: int


class Task:
    """One thread of a process."""

    __slots__ = ("let", "process", "waiting")

    def __init__(self, process: Process, run: Callable[[], None]) -> None:
        self.process = process
        self.let = greenlet(run)
        self.waiting: list[object] | None = None
        """The queue that it stands in."""


class Process:
    """A driver, a reader, a ``clean``: what is killed or frozen as a whole."""

    def __init__(self, world: World, name: str, faults: Faults, slow_rename_s: float, skew_s: float) -> None:
        self.world = world
        self.name = name
        self.faults = faults
        self.failing = frozenset(place.partition(" ")[0] for place in faults if isinstance(place, str))
        """Names of operations that something happens before."""
        self.slow_rename_s = slow_rename_s
        self.skew_s = skew_s
        self.operations = 0
        self.of_kind: dict[str, int] = {}
        self.frozen_until = 0.0
        self.holds = False
        """Whether it ever took a lease or a lock."""
        self.faulted = False
        """Whether anything was done to it since, or lasted: that is a reason to be refused."""
        self.dead = False
        self.killed = False
        self.tasks: list[Task] = []
        self.releases: list[Callable[[], None]] = []
        """What the system frees when the process dies."""

    def end(self) -> None:
        """No task of it goes on."""
        self.dead = True
        for release in tuple(self.releases):
            release()
        self.releases.clear()

    # -- the clock seam of the product: ``spark.clock.Clock``

    def now(self) -> float:
        return self.world.now + self.skew_s

    def sleep(self, seconds: float) -> None:
        self.world.sleep(seconds)

    def every(self, seconds: float, do: Callable[[], None], name: str) -> Callable[[], None]:
        """See ``Clock``. What is returned waits for the last call, as the machine's does."""
        world, ended, working = self.world, [False], [False]

        def work() -> None:
            while True:
                world.sleep(seconds)
                if ended[0]:
                    return
                working[0] = True
                do()
                working[0] = False

        def end() -> None:
            ended[0] = True
            while working[0] and not self.dead:
                world.sleep(TICK_S)

        world.start(self, work)
        return end


class World:
    """One history's time, order of events, and trace."""

    def __init__(self, rng: Random, switch: float, trace: bool = False) -> None:
        self.rng = rng
        self.switch = switch
        """Chance that another task goes on after an operation, if it can."""
        self.now = START
        self.current: Task | None = None
        self.overtakings: list[Overtaking] = []
        self.processes: list[Process] = []
        self.trace: list[str] | None = [] if trace else None
        self.appeared: Callable[[str, str], None] = lambda path, text: None
        """Called with a file that was created exclusively once its text is there."""
        self._ready: list[Task] = []
        self._asleep: list[tuple[float, int, Task]] = []
        self._number = 0
        self._hub = getcurrent()

    def process(
        self,
        name: str,
        main: Callable[[Process], None],
        *,
        at: float = 0.0,
        faults: Faults | None = None,
        slow_rename_s: float = 0.0,
        skew_s: float = 0.0,
    ) -> Process:
        """A process that begins ``at`` seconds from now, and is over when ``main`` is."""
        process = Process(self, name, faults or {}, slow_rename_s, skew_s)
        self.processes.append(process)

        def run() -> None:
            try:
                main(process)
            finally:
                process.end()

        self.start(process, run, at)
        return process

    def start(self, process: Process, run: Callable[[], None], after: float = 0.0) -> None:
        """A further task of ``process``."""

        def guarded() -> None:
            with suppress(Killed):
                run()

        task = Task(process, guarded)
        task.let.parent = self._hub
        process.tasks.append(task)
        self._push(task, self.now + after)

    def run(self, limit_s: float) -> None:
        """Go on until all processes are over. Raises ``Stuck`` if that takes longer than ``limit_s``."""
        until = self.now + limit_s
        while True:
            self._wake()
            if self._ready:
                at = int(self.rng.random() * len(self._ready)) if len(self._ready) > 1 else 0
                self._resume(self._ready.pop(at))
            elif self._asleep:
                self.now = max(self.now, self._asleep[0][0])
            else:
                break
            if self.now > until:
                raise Stuck(self._standing(f"after {limit_s:g} s"))
        if any(not process.dead for process in self.processes):
            raise Stuck(self._standing("for each other"))

    def play(self, limit_s: float, wrong: Callable[[str], None]) -> None:
        """As ``run``, and unwind what is left: who still waits, or raised something, is told to ``wrong``."""
        try:
            self.run(limit_s)
        except Exception as stuck:  # noqa: BLE001 - whatever it is, the seed shows it
            wrong(str(stuck))
        finally:
            self.close()

    def _standing(self, how: str) -> str:
        names = [process.name for process in self.processes if not process.dead]
        return f"still waiting {how}: {', '.join(names)}"

    def _resume(self, task: Task) -> None:
        process = task.process
        if process.dead:
            if task.let:
                task.let.throw(Killed)
            return
        if process.frozen_until > self.now:
            self._push(task, process.frozen_until)
            return
        self.current = task
        task.let.switch()
        self.current = None

    def close(self) -> None:
        """Unwind all that did not end, so that nothing of it is left for the garbage collector."""
        for process in self.processes:
            process.end()
            for task in process.tasks:
                if task.let:
                    task.let.throw(Killed)

    def _push(self, task: Task, wake: float) -> None:
        self._number += 1
        heapq.heappush(self._asleep, (wake, self._number, task))

    def _wake(self) -> None:
        while self._asleep and self._asleep[0][0] <= self.now:
            self._ready.append(heapq.heappop(self._asleep)[2])

    # -- called by tasks

    def take_over(self) -> None:
        """The current process takes a lease or a lock, which others may have thought to be theirs."""
        process = self._task().process
        process.holds = True
        for each in self.overtakings:
            each.times -= process is not each.process

    def _count_down(self, process: Process) -> None:
        """An operation of ``process``: who waits for it to be about to do it wakes."""
        for each in tuple(self.overtakings):
            if each.times <= 0 and process is not each.process:
                each.operations -= 1
                if each.operations < 0:
                    self.overtakings.remove(each)
                    self._thaw(each.process)

    def _thaw(self, process: Process) -> None:
        until, process.frozen_until = process.frozen_until, self.now
        self._asleep = [
            (self.now if task.process is process and wake == until else wake, number, task)
            for wake, number, task in self._asleep
        ]
        heapq.heapify(self._asleep)

    def sleep(self, seconds: float) -> None:
        """The current task stands for so long."""
        task = self._task()
        self._push(task, self.now + seconds)
        self._leave(task)

    def block(self, queue: list[object]) -> None:
        """The current task stands until it is woken out of ``queue``."""
        task = self._task()
        queue.append(task)
        self._leave(task)

    def unblock(self, queue: list[object]) -> None:
        """All in ``queue`` go on."""
        self._ready.extend(queue)
        queue.clear()

    def point(self, operation: str, path: str) -> None:
        """Before an operation of the current task."""
        task = self._task()
        process = task.process
        self.now += TICK_S
        process.operations += 1
        if self.overtakings:
            self._count_down(process)
        if process.operations in process.faults or operation in process.failing:
            self._fail(task, operation, path)
        if process.slow_rename_s and operation in ("rename", "exchange"):
            self.sleep(process.slow_rename_s)
        elif self._others_can() and self.rng.random() < self.switch:
            self._ready.append(task)
            self._leave(task)
        if self.trace is not None:
            self.trace.append(f"{self.now - START:10.3f} {process.name:<12} {operation:<8} {path}")

    def _others_can(self) -> bool:
        return bool(self._ready) or bool(self._asleep and self._asleep[0][0] <= self.now)

    def note(self, text: str) -> None:
        """Say something in the trace."""
        if self.trace is not None:
            name = self.current.process.name if self.current else "-"
            self.trace.append(f"{self.now - START:10.3f} {name:<12} {text}")

    def draw_bits(self, count: int) -> int:
        """For an id that the running task asks for. What is left of an earlier world takes nothing of this one's seed:
        the garbage collector may end its frames at any moment.
        """
        running = self.current.let if self.current is not None else self._hub
        return self.rng.getrandbits(count) if getcurrent() is running else 0

    def _task(self) -> Task:
        task = self.current
        if task is None or task.process.dead or getcurrent() is not task.let:
            raise Killed
        return task

    def _leave(self, task: Task) -> None:
        self._hub.switch()
        if task.process.dead:
            raise Killed

    def _fail(self, task: Task, operation: str, path: str) -> None:
        """What the seed wants to happen here."""
        process = task.process
        counted = process.of_kind
        of_area = f"{operation} {area_of(path)}"
        counted[operation] = number = counted.get(operation, 0) + 1
        counted[of_area] = number_there = counted.get(of_area, 0) + 1
        for place in (process.operations, f"{operation} {number}", f"{of_area} {number_there}"):
            if (fault := process.faults.get(place)) is not None:
                self._strike(task, fault)

    def _strike(self, task: Task, fault: Fault) -> None:
        process = task.process
        process.faulted |= process.holds or fault.kind == "kill"
        self.note(f"-- {fault.kind} {fault.seconds:.1f} s")
        if fault.kind == "kill":
            process.killed = True
            process.end()
            raise Killed
        if fault.kind == "freeze":
            process.frozen_until = self.now + fault.seconds
            if fault.overtaken:
                self.overtakings.append(Overtaking(process, fault.overtaken, fault.operations))
        began = self.now
        self.sleep(fault.seconds)
        process.faulted |= self.now - began > BRIEF_S
