"""A small model of Airflow around the real functions of a launch's feed and its mirrors.

::

    launch   try 1 ──► killed, frozen: no heartbeat ──► try 2 ──► cleared while it runs ──► try 3 of round 2 ...
    feed     try 1's        try 2's, over it: try 1's, which woke             try 3's
    mirrors  looks every 0.5 s ............. made anew by the clear ......... their ends

Each value a step returns is the round that it was made in, and its seconds are when its try began, so a mirror that
ends green with another round, or by a try from before it was cleared alone, is seen. Workers have no clock to go by.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from airflow_dagsched.launch.protocol import clocks
from airflow_dagsched.launch.protocol.events import StepDone
from airflow_dagsched.launch.protocol.feed import TOLERANCE_S, End, Feed, decide_verdict
from airflow_dagsched.launch.protocol.identity import TryId
from airflow_dagsched.launch.protocol.wire import encode_plain
from airflow_dagsched.provider.following.standing import Standing
from airflow_dagsched.provider.mirrors.mirror import View, update_view
from tests.simulation.world import Fault, Faults, Killed, Process, World

STEPS = ("a", "b", "c")
HEARTBEAT_S = 20.0
"""A worker that is silent for so long has failed."""
SUPERVISED_S = 5.0
"""So long a worker's supervisor does not know that its try does not count any more."""
STEPS_S = (0.3, 3.0, 10.0)
"""What a step takes: one that is pruned, no time."""
RETRIES = 2
LIMIT_S = 1_500.0


@dataclass
class Instance:
    """A task instance: ``made`` anew by each clear and each retry."""

    made: float
    state: str | None = None
    number: int = 0
    """Of its try, or of the one to come: the server knows each by its own."""
    is_alone: bool = False
    """Whether it was cleared without its launch task."""


@dataclass
class Server:
    """Airflow's database, behind its API. A round is what lies between two clears."""

    world: World
    launch: Instance = field(default_factory=lambda: Instance(0.0))
    run_started: float = 0.0
    mirrors: dict[str, Instance] = field(default_factory=dict)
    feed: object = None
    told: dict[str, str] = field(default_factory=dict)
    """How each step ended, as the try that counts says."""
    is_late: bool = False
    """Whether the feed is of a try that stood still between its look at its standing and its word, and came late."""
    missed: set[str] = field(default_factory=set)
    """Mirrors that failed because of that. No request of Airflow's can look and tell in one step."""
    incarnation: int = 0
    clears: int = 0
    tries: int = 0
    tries_of_round: int = 0
    violations: list[str] = field(default_factory=list)

    @property
    def round(self) -> str:
        return f"{self.incarnation}.{self.clears}"

    def wrong(self, what: str) -> None:
        self.world.note(f"!! {what}")
        self.violations.append(what)

    def begin_round(self) -> None:
        """A clear of the launch task with all downstream, in one transaction."""
        was_running = self.launch.state == "running"
        if self.launch.state in ("success", "failed"):
            self.run_started = self.world.now
        self.launch = Instance(self.world.now, "restarting" if was_running else None)
        self.mirrors = {step: Instance(self.world.now + 0.001) for step in STEPS}
        self.tries_of_round, self.told, self.missed = 0, {}, set()

    def delete_and_make_again(self) -> None:
        """The run goes, with its XComs, and another of its id comes."""
        self.incarnation, self.clears, self.tries, self.feed = self.incarnation + 1, 0, 0, None
        self.begin_round()
        self.launch.state = None

    def clear(self) -> None:
        self.clears += 1
        self.begin_round()

    def clear_alone(self) -> None:
        """A mirror without its launch task: nothing runs by that."""
        step = STEPS[len(self.told) % len(STEPS)]
        self.mirrors[step] = Instance(self.world.now, is_alone=True)


class Model:
    """One history."""

    def __init__(self, seed: int, *, trace: bool = False) -> None:
        self.rng = Random(seed)
        self.world = World(self.rng, self.rng.choice((0.1, 0.5, 0.9)), trace)
        self.server = Server(self.world)
        self.rounds_left = self.rng.choice((0, 1, 1, 2))
        self.clears_alone = seed % 4 == 1
        """Whether a person may clear single mirrors."""
        self.fails = self.rng.random() < 0.4
        """Whether steps may fail; then the triggerer stays, which knows of each try since."""

    def play(self) -> list[str]:
        """What was wrong."""
        server = self.server
        server.begin_round()
        self.world.process("scheduler", self._schedule)
        self.world.process("triggerer", self._watch)
        for _ in range(self.rounds_left):
            self.world.process(
                "person", self._interfere, at=self.rng.choice((self.rng.uniform(3, 9), self.rng.uniform(3, 90)))
            )
        self.world.play(LIMIT_S, server.wrong)
        self._settled()
        return server.violations

    def _settled(self) -> None:
        """After all: each mirror has ended, and all are green if the launch task is."""
        states = {step: mirror.state for step, mirror in self.server.mirrors.items()}
        if any(state is None for state in states.values()):
            self.server.wrong(f"mirrors wait for ever: {states}")
        alone = {step for step, mirror in self.server.mirrors.items() if mirror.is_alone}
        bad = {step for step, state in states.items() if state != "success"} - alone
        if self.server.launch.state == "success" and bad - self.server.missed:
            self.server.wrong(f"the launch task ended well, its mirrors as {states}")

    def _interfere(self, process: Process) -> None:
        self.world.point("clear", "")
        drawn = self.rng.random()
        if drawn < 0.3:
            self.server.delete_and_make_again()
        elif self.clears_alone and drawn < 0.7:
            self.server.clear_alone()
        else:
            self.server.clear()
        self.rounds_left -= 1

    def _schedule(self, process: Process) -> None:
        """The scheduler, until the last round is over."""
        worker: Process | None = None
        silent_since = 0.0
        while self.rounds_left or self.server.launch.state not in ("success", "failed"):
            launch = self.server.launch
            alive = worker is not None and not worker.dead and worker.frozen_until <= self.world.now
            silent_since = self.world.now if alive or worker is None else silent_since
            lost = self.world.now - silent_since > HEARTBEAT_S or (worker is not None and worker.dead)
            if launch.state in (None, "up_for_retry") or (launch.state == "restarting" and lost):
                worker, silent_since = self._queue(launch), self.world.now
            elif launch.state == "running" and lost:
                self.fail(launch)
            elif launch.state == "queued" and worker is not None and worker.dead:  # before it said that it runs
                worker, silent_since = self._queue(launch), self.world.now
            process.sleep(1.0)

    def _queue(self, launch: Instance) -> Process:
        server = self.server
        server.tries, server.tries_of_round = server.tries + 1, server.tries_of_round + 1
        launch.state, launch.number = "queued", launch.number + 1
        incarnation = f"2026-01-0{1 + server.incarnation}T00:00:00.000000Z"
        worker = Worker(self, launch, launch.number, TryId(incarnation, server.clears, server.tries), server.round)
        faults = self._faults() if server.tries_of_round <= RETRIES else {}
        at = self.rng.choice((0.1, 5.0))
        return self.world.process(
            f"try {worker.identity.clear_number}.{server.tries}", worker.run, at=at, faults=faults
        )

    def _faults(self) -> Faults:
        if self.rng.random() < 0.4:
            return {}
        kind = self.rng.choice(("kill", "freeze", "freeze", "overtaken"))
        if kind == "overtaken":  # it wakes while a later try is at work, or just when that ends
            fault = Fault("freeze", 200.0, overtaken=1, operations=self.rng.randint(1, 150))
        else:
            fault = Fault(kind, 0.0 if kind == "kill" else self.rng.choice((5.0, 40.0, 80.0)))
        return {self.rng.choice((self.rng.randint(1, 16), f"push {self.rng.randint(1, 3)}")): fault}

    def fail(self, launch: Instance) -> None:
        """A try failed: another one, while there are any."""
        launch.made, launch.number = self.world.now, launch.number + 1
        launch.state = "up_for_retry" if self.server.tries_of_round <= RETRIES else "failed"

    def _watch(self, process: Process) -> None:
        """The triggerer: one look at the launch task for all mirrors that wait."""
        view, server = View(), self.server
        while self.rounds_left or any(mirror.state is None for mirror in server.mirrors.values()):
            asked = dict(server.mirrors)
            if not any(mirror.state is None for mirror in asked.values()) or self._is_replaced():
                view = View()  # nobody waited; or another triggerer took over
            self.world.point("state", "")
            state = server.launch.state
            self.world.point("feed", "")
            view = update_view(view, state, server.feed)
            for step, mirror in asked.items():
                end = decide_verdict(state, view.feed, step, mirror.made, "launch")
                if isinstance(end, End) and mirror.state is None and server.mirrors[step] is mirror:
                    self._end(step, mirror, end)
            process.sleep(0.5)

    def _is_replaced(self) -> bool:
        return not self.fails and self.rng.random() < 0.02

    def _end(self, step: str, mirror: Instance, end: End) -> None:
        mirror.state = end.state
        self.world.note(f"{step} ends {end.state}: {end.reason}")
        if end.state == "success" and (end.done is None or end.done.value != self.server.round):
            self.server.wrong(f"{step} is green in round {self.server.round} with {end.done}")
        if end.state == "success" and end.done is not None and (end.done.seconds or 0.0) + TOLERANCE_S < mirror.made:
            self.server.wrong(f"{step}, made at {mirror.made}, is green by a try that began at {end.done.seconds}")
        if end.state == "success" and self.server.told.get(step) == "failed":
            self.server.wrong(f"{step} is green, and has failed in the try that counts")
        if end.state == "failed" and self.server.is_late:
            self.server.missed.add(step)


@dataclass
class Worker:
    """One try of the launch task."""

    model: Model
    launch: Instance
    number: int
    identity: TryId
    round: str
    counted_at: float | None = None
    """When its last look at its standing said that it counts."""
    began: float = 0.0

    @property
    def is_current(self) -> bool:
        """What the server says to who names a task instance by its id."""
        return self.model.server.launch is self.launch and self.launch.number == self.number

    @property
    def counts(self) -> bool:
        """Whether what it tells is what is going on."""
        return self.is_current and self.launch.state == "running"

    def run(self, process: Process) -> None:
        world, server = self.model.world, self.model.server
        world.point("start", "")
        if not self.is_current or self.launch.state != "queued":
            return
        self.launch.state, server.feed, server.is_late = "running", None, False
        world.take_over()
        process.every(SUPERVISED_S, lambda: self._supervise(process), "supervisor")
        self.began = world.now
        feed = Feed(str(self.identity), self.identity, began=self._asked_began())
        standing = Standing("launch", feed.nonce, self._state, self._feed, process.now, self.identity)
        while len(feed.steps) < len(STEPS) and "failed" not in ends_of(feed):
            self._push(feed, standing)
            process.sleep(self.model.rng.choice(STEPS_S[self.model.fails :]))
            feed = feed.add([self._next(feed)])
        self._push(feed, standing)
        self._conclude(feed)

    def _asked_began(self) -> float:
        """As a launch task finds it: the server is asked, and says whole seconds, or nothing."""
        now = None if self.identity.try_number % 3 == 0 else float(int(self.began))
        return clocks.compute_begin(self.launch.made, self.model.server.run_started, now)

    def _next(self, feed: Feed) -> StepDone:
        """How the next step ends."""
        fails = self.model.fails and self.model.rng.random() < 0.2
        return StepDone(STEPS[len(feed.steps)], "failed" if fails else "success", value=self.round, seconds=self.began)

    def _conclude(self, feed: Feed) -> None:
        self.model.world.point("end", "")
        if self.counts and "failed" in ends_of(feed):
            self.model.fail(self.launch)
        elif self.counts:
            self.launch.state = "success"

    def _supervise(self, process: Process) -> None:
        """A heartbeat, which the server refuses of a try that does not count."""
        if not self.counts:
            process.end()

    def _push(self, feed: Feed, standing: Standing) -> None:
        """Airflow takes an XCom of whoever sets it."""
        if not standing.holds():
            if self.counts:
                self.model.server.wrong(f"{self.identity} counts, and believes that it does not")
            raise Killed
        self.model.world.point("push", feed.nonce)
        self._set(feed)
        standing.said = True

    def _set(self, feed: Feed) -> None:
        server = self.model.server
        is_excused = not self.counts and self.counted_at is not None
        if is_excused and self.counted_at - feed.began < TOLERANCE_S:
            raise Killed  # it stood still in its first moments, in the one place where nobody can tell
        server.feed, server.is_late = encode_plain(feed), is_excused
        if self.counts:
            server.told = {step: done.state for step, done in feed.steps.items()}

    def _state(self) -> str | None:
        self.model.world.point("state", "")
        self.counted_at = self.model.world.now if self.counts else None
        return self.model.server.launch.state

    def _feed(self) -> object:
        self.model.world.point("feed", "")
        return self.model.server.feed


def ends_of(feed: Feed) -> set[str]:
    """How steps ended so far."""
    return {done.state for done in feed.steps.values()}
