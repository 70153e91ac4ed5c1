"""A small model of Airflow and of driver programs around launch tasks that run each other's steps.

::

    K   claims a, takes s ── a ── s ──┐ killed, cleared, retried at any moment
    L   waits for its upstreams ── claims r ── s is K's: waits ── r
    mirrors  look at all launch tasks; records say what is done, as commits do

Claims, what is ready, whom to wait for and the mirrors' verdicts are the product's; which of what is ready is taken is
drawn, for an estimate may be anything. A step's value has its inputs' values in it, and the round it was made in.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from airflow_dagsched.launch.moves.claims import Claim
from airflow_dagsched.launch.moves.eligible import Sight, add_needed, list_eligible
from airflow_dagsched.launch.moves.elsewhere import BUSY, Seen, find_done_elsewhere, list_behind
from airflow_dagsched.launch.protocol.events import Failure, StepDone
from airflow_dagsched.launch.protocol.feed import (
    FINISHED,
    NOT_BEGUN,
    End,
    Feed,
    decide_elsewhere,
    decide_verdict,
    has_ended_well,
)
from airflow_dagsched.launch.protocol.identity import TryId
from airflow_dagsched.launch.protocol.wire import encode_plain
from airflow_dagsched.model.validate import build_valid_graph
from airflow_dagsched.plan.problem.rules import apply_rules
from airflow_dagsched.plan.settings import Settings
from airflow_dagsched.provider.mirrors.mirror import View, update_view
from airflow_dagsched.provider.moving.claims_file import ClaimsFile
from airflow_dagsched.provider.moving.moves import Moves
from tests.simulation.drawn_runs import draw_run
from tests.simulation.world import Fault, Faults, Process, World

RETRIES = 3
SUPERVISED_S = 5.0
"""So long a worker's supervisor does not know that its try does not count any more."""
LIMIT_S = 5_000.0
DONE = ("success", "skipped")


@dataclass
class Instance:
    """A task instance."""

    made: float
    round: int = 0
    state: str | None = None
    tries: int = 0
    worker: Worker | None = None


@dataclass
class Record:
    """What a step made: the newest round's counts."""

    round: int
    value: str
    inputs: tuple[str, ...]


class Model:
    """One history."""

    def __init__(self, seed: int, folder: Path, *, moving: bool = True, trace: bool = False) -> None:
        self.rng = Random(seed)
        self.drawn = draw_run(self.rng)
        self.world = World(self.rng, self.rng.choice((0.1, 0.5, 0.9)), trace)
        self.file = ClaimsFile(folder / str(seed))
        self.moving = moving
        self.graph, self.rules = apply_rules(build_valid_graph(self.drawn.make_dataflow()), Settings())
        self.slots = self.rng.randint(1, 4)
        """Launch tasks at once, at most."""
        self.clears = self.tries = 0
        self.clears_left = self.rng.choice((0, 0, 1, 2))
        self.launches = {name: Instance(0.0) for name in self.drawn.groups}
        self.mirrors = {step: Instance(0.0) for step in self.drawn.home}
        self.tasks = {name: Instance(0.0) for name in self.drawn.tasks}
        self.feeds: dict[str, object] = dict.fromkeys(self.launches)
        self.records: dict[str, Record] = {}
        self.calling: dict[str, Worker] = {}
        self.moved = self.more = self.left = 0
        """Steps that were taken, of them by a launch task before its end, and of what others had offered."""
        self.violations: list[str] = []

    def wrong(self, what: str) -> None:
        self.world.note(f"!! {what}")
        self.violations.append(what)

    def play(self) -> list[str]:
        """What was wrong."""
        self.world.process("scheduler", self._schedule)
        self.world.process("triggerer", self._watch)
        for _ in range(self.clears_left):
            self.world.process("person", self._clear, at=self.rng.uniform(3, 120))
        self.world.play(LIMIT_S, self.wrong)
        self._settled()
        return self.violations

    def _settled(self) -> None:
        """All is green, and made of what there is now."""
        states = {name: each.state for name, each in (self.mirrors | self.launches).items()}
        if {*states.values()} != {"success"}:
            self.wrong(f"not all ended well: {states}")
        for step, record in self.records.items():
            now = tuple(self.records[up].value for up in self._list_steps_above(step))
            if record.inputs != now:
                self.wrong(f"{step} is made of {record.inputs}, there is {now}")

    def _list_steps_above(self, step: str) -> list[str]:
        return [up for up in self.drawn.above[step] if up in self.drawn.home]

    def _is_over(self) -> bool:
        return self.clears_left == 0 and all(
            each.state in FINISHED for each in (*self.mirrors.values(), *self.launches.values())
        )

    def find_state(self, name: str) -> str | None:
        """Of a mirror or an ordinary task."""
        return (self.mirrors.get(name) or self.tasks[name]).state

    def _clear(self, process: Process) -> None:
        """A launch task with all that is downstream, in one transaction."""
        self.world.point("clear", "")
        self.clears, self.clears_left = self.clears + 1, self.clears_left - 1
        names = self.drawn.find_below(self.rng.choice([*self.launches]))
        for name in names:
            if name in self.tasks:
                self.tasks[name] = Instance(self.world.now)
                continue
            before = self.launches[name]
            busy = before.state in ("running", "restarting")
            made = Instance(self.world.now, self.clears, "restarting" if busy else None, worker=before.worker)
            self.launches[name] = made
            for step in self.drawn.groups[name]:
                self.mirrors[step] = Instance(self.world.now + 0.001, self.clears)

    def _schedule(self, process: Process) -> None:
        while not self._is_over():
            for name, task in self.tasks.items():
                self._go_on_with_task(name, task)
            for name, launch in self.launches.items():
                self._go_on_with_launch(name, launch)
            process.sleep(1.0)

    def _go_on_with_task(self, name: str, task: Instance) -> None:
        if task.state is None and all(self.find_state(up) in FINISHED for up in self.drawn.above[name]):
            task.state, task.made = "running", self.world.now + self.rng.choice((0.0, 5.0, 30.0))
        elif task.state == "running" and self.world.now >= task.made:
            task.state = "success"

    def _go_on_with_launch(self, name: str, launch: Instance) -> None:
        dead = launch.worker is None or launch.worker.process.dead
        if launch.state == "restarting" and dead:
            launch.state = None
        if launch.state in ("running", "queued") and dead:
            self.fail(launch)
        if launch.state not in (None, "up_for_retry"):
            return
        busy = sum(each.state in ("queued", "running", "restarting") for each in self.launches.values())
        if busy < self.slots and all(self.find_state(up) in FINISHED for up in self.drawn.list_upstream(name)):
            launch.state, launch.tries = "queued", launch.tries + 1
            self.tries += 1
            worker = Worker(self, name, launch, TryId("2026", self.clears, self.tries))
            worker.process = self.world.process(
                f"{name} {worker.mine.clear_number}.{launch.tries}", worker.run,
                at=self.rng.choice((0.1, 5.0)), faults=self._draw_faults(launch),
            )  # fmt: skip
            launch.worker = worker

    def _draw_faults(self, launch: Instance) -> Faults:
        if launch.tries >= RETRIES or self.rng.random() < 0.5:
            return {}
        return {self.rng.randint(1, 40): Fault("kill")}

    def fail(self, launch: Instance) -> None:
        launch.state = "up_for_retry" if launch.tries < RETRIES else "failed"

    def _watch(self, process: Process) -> None:
        """The triggerer: each mirror looks at all launch tasks."""
        views = {name: View() for name in self.launches}
        while not self._is_over():
            asked = dict(self.mirrors)
            for name, launch in self.launches.items():
                self.world.point("state", name)
                state = launch.state
                self.world.point("feed", name)
                views[name] = update_view(views[name], state, self.feeds[name])
            for step, mirror in asked.items():
                end = self._judge(step, mirror, views)
                if isinstance(end, End) and mirror.state is None and self.mirrors[step] is mirror:
                    self._end(step, mirror, end)
            process.sleep(0.5)

    def _judge(self, step: str, mirror: Instance, views: dict[str, View]) -> object:
        own = self.drawn.home[step]
        for name, view in views.items():
            found = decide_elsewhere(view.state, view.feed, step, mirror.made) if name != own else None
            if isinstance(found, End):
                return found
        return decide_verdict(views[own].state, views[own].feed, step, mirror.made, own)

    def _end(self, step: str, mirror: Instance, end: End) -> None:
        mirror.state = end.state
        self.world.note(f"{step} ends {end.state}: {end.reason}")
        record = self.records.get(step)
        if end.state != "success" or record is None or record.round < mirror.round:
            self.wrong(f"{step} of round {mirror.round} ends {end.state} ({end.reason}) with {record}")


@dataclass(eq=False)
class Worker:
    """One try of a launch task, with its driver program."""

    model: Model
    name: str
    launch: Instance
    mine: TryId
    process: Process = field(init=False)
    feed: Feed = field(init=False)

    @property
    def own(self) -> tuple[str, ...]:
        return self.model.drawn.groups[self.name]

    @property
    def is_current(self) -> bool:
        """Whether Airflow takes it for the task that runs."""
        launch = self.model.launches[self.name]
        return launch is self.launch and launch.worker is self and launch.state in ("queued", "running")

    def run(self, process: Process) -> None:
        model, world = self.model, self.model.world
        world.point("start", self.name)
        if not self.is_current:
            process.end()
            return
        self.launch.state, model.feeds[self.name] = "running", None
        self.mine = TryId("2026", model.clears, self.mine.try_number)
        process.every(SUPERVISED_S, self._supervise, "supervisor")
        self.feed = Feed(f"{self.name} {self.mine}", self.mine, began=world.now)
        self._push()
        self._look_around()
        moves = Moves(model.file, Claim(self.name, self.mine), self._look, pause=process.sleep)
        if model.moving:
            moves.claim_own(step for step in self.own if step not in self.feed.steps)
            world.point("claimed", self.name)
            self._take(moves)
            world.point("taken", self.name)
        self._submit_ready(moves)
        while moves.awaited:
            world.point("look", self.name)
            self._tell(moves.settle_awaited().values())
            process.sleep(2.0)
            if not moves.awaited:
                self._look_around()
                self._submit_ready(moves)
        while model.moving and self._has_ended_well() and self._take_more(moves):
            world.point("taken more", self.name)
            self._submit_ready(moves)
        self._conclude()

    def _submit_ready(self, moves: Moves) -> None:
        """In one or two parts, each with room at once or not: then it is offered, as what comes behind it is."""
        model = self.model
        behind = list_behind([*model.drawn.home], {*moves.awaited}, model.drawn.above)
        names = {*self.own, *moves.taken} - {*behind} - self.feed.steps.keys()
        steps = [step for step in model.drawn.home if step in names]
        at = model.rng.randint(0, len(steps)) if model.moving else len(steps)
        moves.offer(steps[at:])
        for part in (steps[:at], steps[at:]):
            self._wait_for_room(moves, part)
            self._submit(self._begin(moves, part))

    def _wait_for_room(self, moves: Moves, part: list[str]) -> None:
        model = self.model
        if not model.moving or not part or model.rng.random() < 0.5:
            return
        moves.offer(part)
        for _ in range(model.rng.choice((1, 5, 30))):
            model.world.point("wait for room", self.name)
            if moves.find_left(part):
                return
            self.process.sleep(2.0)

    def _begin(self, moves: Moves, part: list[str]) -> list[str]:
        """What is left of it, as the product has it."""
        model = self.model
        if not model.moving:
            return part
        model.world.point("begin", self.name)
        model.left += len(moves.begin(part))
        behind = list_behind([*model.drawn.home], {*moves.awaited, *moves.lost}, model.drawn.above)
        moves.drop_taken(behind)
        return [step for step in part if step not in behind]

    def _take_more(self, moves: Moves) -> bool:
        """What became ready meanwhile; not of a try that does not count any more."""
        before = moves.taken
        self._look_around()
        if self.is_current:
            self._take(moves, is_over=True)
            self.model.more += len(moves.taken) - len(before)
        return moves.taken != before

    def _supervise(self) -> None:
        if not self.is_current:
            self.process.end()

    def _look_around(self) -> None:
        """The facts: what is closed, what has begun, what others say."""
        model = self.model
        model.world.point("facts", self.name)
        self.mirrors = {step: each.state for step, each in model.mirrors.items()}
        self.over = frozenset(name for name, each in model.tasks.items() if each.state in FINISHED)
        self.begun = {name for name, each in model.launches.items() if each.state not in NOT_BEGUN}
        self.busy = {name for name, each in model.launches.items() if each.state in BUSY}
        model.world.point("feeds", self.name)
        self.others = {name: seen.feed for name, seen in self._look(model.launches).items() if seen.feed is not None}
        self.others.pop(self.name, None)
        self._tell(find_done_elsewhere(self.own, self.others, self.mine.round).values())

    def _look(self, launches: Collection[str]) -> dict[str, Seen]:
        states = {name: self.model.launches[name].state for name in launches}
        self.model.world.point("look feeds", self.name)
        return {name: Seen(states[name], _read(self.model.feeds[name])) for name in launches}

    def _take(self, moves: Moves, *, is_over: bool = False) -> None:
        """Whatever is ready, drawn."""
        model = self.model
        current = [feed for feed in self.others.values() if feed.try_id.round == self.mine.round]
        done = {done.step for feed in (*current, self.feed) for done in feed.steps.values() if has_ended_well(done)}
        done |= {step for step, state in self.mirrors.items() if state in DONE}
        claims = model.file.read()
        waiting = [step for step, launch in model.drawn.home.items() if launch not in self.begun]
        ahead = {*claims.find_free(moves.mine, [*waiting, *claims.list_offered(moves.mine)], self.busy)}
        left = {step for step in ahead - done if self.mirrors[step] not in FINISHED}
        mine = frozenset(self.own) - (frozenset() if is_over else done | moves.awaited.keys())
        eligible = list_eligible(model.graph, model.rules, Sight(mine, frozenset(left), frozenset(done), self.over))
        wanted = [step for step in sorted(eligible) if model.rng.random() < 0.7]
        take = add_needed(model.graph, wanted, eligible)
        if mine and take:
            model.world.point("take", self.name)
            taken = moves.take({step: claims.claims.get(step) for step in model.drawn.home if step in take})
            model.moved += len(take) * taken

    def _submit(self, steps: Iterable[str]) -> None:
        asked = {*steps}
        for step in [name for name in self.model.drawn.home if name in asked and name not in self.feed.steps]:
            self.model.world.point("turn", step)
            above = [self.feed.steps.get(up) for up in self.model.drawn.above[step]]
            if any(done is not None and done.state in ("failed", "upstream_failed") for done in above):
                self._tell([StepDone(step, "upstream_failed")])
            else:
                self._tell([self._turn(step)])

    def _turn(self, step: str) -> StepDone:
        model, record = self.model, self.model.records.get(step)
        if record is not None and (record.round == self.mine.clear_number or self.mirrors[step] in DONE):
            return StepDone(step, "reused")
        other = model.calling.get(step)
        if other is not None and not other.process.dead and other.is_current and self.is_current:
            model.wrong(f"{step} is called by {other.name} and {self.name} at one moment")
        model.calling[step] = self
        self.process.sleep(model.rng.choice((0.3, 3.0, 20.0)))
        model.world.point("call ended", step)
        if model.calling.get(step) is self:
            del model.calling[step]
        mine = step in self.own
        if model.rng.random() < 0.1 and (not mine or self.launch.tries < RETRIES):
            return StepDone(step, "failed", failure=Failure("author", "no such column"))
        self._record(step)
        model.world.point("recorded", step)
        return StepDone(step, "success")

    def _record(self, step: str) -> None:
        model, at = self.model, self.mine.clear_number
        before = model.records.get(step)
        if before is not None and before.round >= at:
            if before.round == at and self.is_current:
                model.wrong(f"{step} was made twice in round {at}")
            return  # a commit of an earlier round than the newest is refused
        missing = [up for up in model._list_steps_above(step) if up not in model.records]
        if missing:
            model.wrong(f"{step} runs without {missing}")
            return
        inputs = tuple(model.records[up].value for up in model._list_steps_above(step))
        model.records[step] = Record(at, f"{step}@{at}({','.join(inputs)})", inputs)

    def _tell(self, ends: Iterable[StepDone]) -> None:
        self.feed = self.feed.add(ends)
        self._push()

    def _push(self) -> None:
        self.model.world.point("push", self.name)
        # Standing: a try that does not count tells nothing.
        if self.is_current:
            self.model.feeds[self.name] = encode_plain(self.feed)

    def _conclude(self) -> None:
        self.model.world.point("end", self.name)
        if not self.is_current:
            return
        if self._has_ended_well():
            self.launch.state = "success"
        else:
            self.model.fail(self.launch)

    def _has_ended_well(self) -> bool:
        return all(step in self.feed.steps and has_ended_well(self.feed.steps[step]) for step in self.own)


def _read(raw: object) -> Feed | None:
    from airflow_dagsched.launch.protocol.push_limit import read_feed

    return read_feed(raw) if raw is not None else None
