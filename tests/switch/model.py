"""A small world in which the protocol is played in every order that there is: drivers, two executors, one crash.

::

    source "a"     5  15  25  35  45              one query reads both, a row of each in a batch
    source "b"    16   6  36  26  46              lateness 10, so no row is late; windows of ten seconds

    executor 1, 2     look ── act                 what they saw may be long past when they act
    driver            starting ── ready ── computed ── recorded ── ready       killed anywhere, or frozen with a batch
    carry             starting ── vetted ── ready      its graph is made before the fence, its queries start behind it

Stories, judgements and advice are the real ones. A world is known by what can still matter in it, so two orders that
come to the same are one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Literal, NamedTuple

from airflow_dagsched.switch.advising.advance import advance
from airflow_dagsched.switch.advising.advice import Advice, Append, Command, Deploy, FinishMoves, Halt, Wanted
from airflow_dagsched.switch.fold import find_broken_rule, fold
from airflow_dagsched.switch.judgement import judge_batch
from airflow_dagsched.switch.records import Batch, Record, Started
from airflow_dagsched.switch.signs import Seen, Sign
from airflow_dagsched.switch.state import find_state
from airflow_dagsched.switch.story import EpochStory, Story
from airflow_dagsched.switch.windows import find_end
from tests.switch.drawn import FIRST, WINDOW, make_batch, make_started, number, tell

ROWS = {"a": (5.0, 15.0, 25.0, 35.0, 45.0), "b": (16.0, 6.0, 36.0, 26.0, 46.0)}
LATENESS = 10.0
LENGTH = 5
Mode = Literal["replay", "sequential", "carry", "inbox"]
Phase = Literal["starting", "vetted", "ready", "computed", "recorded"]


class Driver(NamedTuple):
    """The process that runs an epoch, and its lease."""

    phase: Phase
    halted: bool = False


class Look(NamedTuple):
    """What an executor has seen, and not acted upon yet."""

    held: frozenset[int]
    vetted: tuple[int, ...] = ()
    """Epochs that wait for the state of the one before."""
    done: tuple[tuple[int, int], ...] = ()
    """As ``World.done``, where state is handed on: nobody asks for it elsewhere."""


class World(NamedTuple):
    """What there is at a moment."""

    story: tuple[object, ...]
    """Names a story, see ``Model.stories``."""
    drivers: tuple[tuple[int, Driver], ...]
    done: tuple[tuple[int, int], ...]
    """Epoch -> batches that Spark has committed."""
    looks: tuple[Look | None, ...]
    """Of each executor."""
    frozen: tuple[tuple[int, int], ...] = ()
    """Batches in drivers that nobody believes to be alive."""
    table: tuple[tuple[float, int], ...] = ()
    """Windows in the table, with the epoch they are from."""
    crashes: int = 1
    boxes: tuple[object, ...] = ()
    """What else there is, of models that have more."""


class Broken(Exception):
    """What may never be."""


@dataclass
class Model:
    """The world's rules."""

    mode: Mode
    length: int = LENGTH
    """Batches with rows; one without follows."""
    wanted: Wanted = field(init=False)
    stories: dict[tuple[object, ...], Story] = field(default_factory=dict)
    advices: dict[object, Advice] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.wanted = Wanted(
            "code 2", "run 2", "wanted", {"out": ("a", "b")}, WINDOW,
            channel=self.mode if self.mode in ("carry", "inbox") else "replay",  # type: ignore[arg-type]
            overlap="sequential" if self.mode == "sequential" else "beside",
        )  # fmt: skip

    def begin(self) -> World:
        """The owner has executed its first batch."""
        begun = (FIRST[0], FIRST[1], compute_batch(1, 0, 0, 0.0), FIRST[3])
        return World(self.keep(tell(*begun)), ((1, Driver("ready")),), ((1, 1),), (None,))

    def keep(self, story: Story) -> tuple[object, ...]:
        """The name of the story: all of it but the numbers of its records."""
        key = (story.owner, story.successor, *(name_epoch(each) for _, each in sorted(story.epochs.items())))
        self.stories.setdefault(key, story)
        return key

    # --- what may happen next

    def list_next(self, world: World) -> Iterator[tuple[str, World]]:
        """Each thing that may happen, and the world after it."""
        for at, look in enumerate(world.looks):
            yield from self.step_executor(world, at, look)
        for epoch, driver in world.drivers:
            yield from self.step_driver(world, epoch, driver)
        for each in world.frozen:
            left = world._replace(frozen=tuple(other for other in world.frozen if other != each))
            yield f"thaw {each}", self.record_batch(left, *each)

    def step_executor(self, world: World, at: int, look: Look | None) -> Iterator[tuple[str, World]]:
        """It looks; it acts on what it saw; or it dies with it."""
        if look is None:
            seen = self.look(world)
            if self.advise(world, seen).commands:
                yield f"executor {at} looks", put_look(world, at, seen)
            return
        after = put_look(world, at, None)
        yield f"executor {at} acts", self.do_all(after, look)
        if world.crashes:
            yield f"executor {at} is killed", after._replace(crashes=world.crashes - 1)

    def look(self, world: World) -> Look:
        held = frozenset(epoch for epoch, _ in world.drivers)
        if self.mode != "carry":
            return Look(held)
        return Look(held, tuple(epoch for epoch, driver in world.drivers if driver.phase == "vetted"), world.done)

    def advise(self, world: World, look: Look) -> Advice:
        key = (world.story, look)
        if key not in self.advices:
            self.advices[key] = advance(self.stories[world.story], make_seen(look), self.wanted)
        return self.advices[key]

    def do_all(self, world: World, seen: Look) -> World:
        """As an executor does: the record is judged anew by the log as it is, with what was seen before."""
        for command in self.advise(world, seen).commands:
            if isinstance(command, FinishMoves) and not world.drivers:
                break  # what drivers have recorded only a driver can deliver
            world = self.do(world, command)
        return world

    def do(self, world: World, command: Command) -> World:
        drivers = dict(world.drivers)
        match command:
            case Append(record):
                return self.append(world, record)
            case Deploy(epoch) if epoch not in drivers:
                return put_driver(world, epoch, Driver("starting"))
            case Halt(epoch) if epoch in drivers:
                return put_driver(world, epoch, drivers[epoch]._replace(halted=True))
        return world

    def append(self, world: World, record: Record) -> World:
        story = self.stories[world.story]
        record = number((record,), story.last + 1)[0]
        broken = find_broken_rule(story, record)
        if broken:
            raise Broken(f"{record}: {broken}")
        return world._replace(story=self.keep(fold(story, record)))

    def step_driver(self, world: World, epoch: int, driver: Driver) -> Iterator[tuple[str, World]]:
        """It goes on by one line; is killed; or stands still so long that its lease runs out."""
        batch = dict(world.done).get(epoch, 0)
        yield from self.go_on(world, epoch, driver, batch)
        if world.crashes:
            after = put_driver(world, epoch, None)._replace(crashes=world.crashes - 1)
            yield f"driver {epoch} is killed", after
            if driver.phase == "computed":
                yield f"driver {epoch} stands still", after._replace(frozen=(*after.frozen, (epoch, batch)))

    def go_on(self, world: World, epoch: int, driver: Driver, batch: int) -> Iterator[tuple[str, World]]:
        match driver.phase:
            case "starting" | "vetted" if driver.halted and self.is_carried(world, epoch):
                yield f"driver {epoch} ends", put_driver(world, epoch, None)
            case "starting" if self.is_carried(world, epoch):
                yield f"driver {epoch} has its graph", put_driver(world, epoch, driver._replace(phase="vetted"))
            case "vetted" if not self.stories[world.story].epochs[1].drained or 1 in dict(world.drivers):
                pass
            case "starting" | "vetted":
                yield f"driver {epoch} starts", self.start(world, epoch, driver)
            case "ready" if driver.halted:
                yield f"driver {epoch} ends", put_driver(world, epoch, None)
            case "ready" if self.has_rows(world, epoch, batch):
                yield f"driver {epoch} computes", put_driver(world, epoch, driver._replace(phase="computed"))
            case "computed":
                yield f"driver {epoch} records", self.record_batch(world, epoch, batch)
            case "recorded":
                done = {**dict(world.done), epoch: batch + 1}
                after = world._replace(done=tuple(sorted(done.items())))
                yield f"driver {epoch} commits", put_driver(after, epoch, driver._replace(phase="ready"))

    def is_carried(self, world: World, epoch: int) -> bool:
        """Whether it has not taken over yet the state that is handed on to it."""
        found = self.stories[world.story].epochs[epoch]
        return found.record.channel == "carry" and found.begun is None

    def has_rows(self, world: World, epoch: int, batch: int) -> bool:
        """Whether there is something to read."""
        return find_first_row(self.stories[world.story], epoch) + batch <= self.length

    def compute(self, world: World, epoch: int, batch: int) -> tuple[Batch, tuple[float, ...]]:
        """What a batch comes to, and its windows."""
        return compute_sink(self.stories[world.story], epoch, batch)

    def is_whole(self, world: World, epoch: int, window: float) -> bool:
        """Whether the graph has had all rows of the window."""
        return is_whole(self.stories[world.story], epoch, window)

    def start(self, world: World, epoch: int, driver: Driver) -> World:
        story = self.stories[world.story]
        if self.is_carried(world, epoch) and dict(world.done)[1] - 1 < story.epochs[1].queries["out"].last.batch:
            raise Broken("the state that is handed on is not on disk")
        record: Started = number((make_started(epoch),), story.last + 1)[0]  # type: ignore[assignment]
        if find_broken_rule(story, record):
            return put_driver(world, epoch, None)
        return put_driver(self.append(world, record), epoch, driver._replace(phase="ready"))

    def record_batch(self, world: World, epoch: int, batch: int) -> World:
        """What the sink does, also in a driver that should be dead."""
        story = self.stories[world.story]
        driver = dict(world.drivers).get(epoch)
        made, windows = self.compute(world, epoch, batch)
        judged = judge_batch(story, epoch, "out", batch, made.first, made.last)
        if judged.kind == "refused":
            return put_driver(world, epoch, None) if driver and driver.phase == "computed" else world
        if judged.kind != "repeated":
            after, upto = (judged.after or 0.0, judged.upto or 1e9) if judged.kind == "part" else (0.0, 1e9)
            kept = [each for each in windows if after < each <= upto] if judged.kind != "none" else []
            world = self.append(world, replace(made, kept=len(kept)))
            world = self.put_rows(world, epoch, kept)
        is_here = driver is not None and driver.phase == "computed" and dict(world.done).get(epoch, 0) == batch
        return put_driver(world, epoch, driver._replace(phase="recorded")) if driver and is_here else world

    def put_rows(self, world: World, epoch: int, kept: list[float]) -> World:
        table = dict(world.table)
        for window in kept:
            if window in table:
                raise Broken(f"window {window} of epoch {table[window]} comes again from epoch {epoch}")
            if not self.is_whole(world, epoch, window):
                raise Broken(f"window {window} of epoch {epoch} lacks rows")
            table[window] = epoch
        return world._replace(table=tuple(sorted(table.items())))

    def is_end(self, world: World) -> bool:
        """All windows that are closed are in the table, and the switch is over, or waits for rows that never come."""
        story = self.stories[world.story]
        drivers = dict(world.drivers)
        rows_end = all(self.is_idle(world, epoch, driver) for epoch, driver in world.drivers)
        state = find_state(story, drivers)
        is_over = state == "steady" and story.owner == 2 and 2 in drivers
        waits = rows_end and {1, 2} <= {*drivers} and state in ("catching_up", "fenced")
        waits_alone = rows_end and 1 in drivers and state == "fenced" and self.mode == "sequential"
        return (is_over or waits or waits_alone) and {window for window, _ in world.table} == self.list_closed()

    def list_closed(self) -> set[float]:
        """Windows that end before the newest rows of both sources, less the lateness."""
        ends = {find_end(row, WINDOW) for rows in ROWS.values() for row in rows}
        return {end for end in ends if end <= find_watermark(0, self.length, 0.0)}

    def is_idle(self, world: World, epoch: int, driver: Driver) -> bool:
        """Whether it has read all rows."""
        batch = dict(world.done).get(epoch, 0)
        return driver == Driver("ready") and find_first_row(self.stories[world.story], epoch) + batch > self.length


def compute_batch(epoch: int, batch: int, first_row: int, rows_from: float) -> Batch:
    """The batch of a graph that began at a row, and takes those from a time on."""
    return _compute(epoch, batch, first_row, rows_from)[0]


@cache
def _compute(epoch: int, batch: int, first_row: int, rows_from: float) -> tuple[Batch, tuple[float, ...]]:
    at = first_row + batch
    newest = find_newest(first_row, at, rows_from)
    watermark = find_watermark(first_row, at, rows_from)
    before = find_watermark(first_row, at - 1, rows_from) if batch else -1.0
    seen = [row for rows in ROWS.values() for row in rows[first_row : at + 1] if row >= rows_from]
    ends = {find_end(row, WINDOW) for row in seen}
    windows = tuple(sorted(end for end in ends if before < end <= watermark))
    made = make_batch(
        epoch, batch, windows[0] if windows else None, windows[-1] if windows else None, rows=len(windows),
        watermark=watermark, x_begin=dict.fromkeys(ROWS, at), x_newest=newest,
    )  # fmt: skip
    return made, windows


def compute_sink(story: Story, epoch: int, batch: int) -> tuple[Batch, tuple[float, ...]]:
    """What a batch of the epoch comes to: each time that it is run, the same."""
    record = story.epochs[epoch].record
    if record.channel == "carry":
        return _compute_carried(epoch, batch, find_first_row(story, epoch))
    return _compute(epoch, batch, find_first_row(story, epoch), record.x_rows_from or 0.0)


@cache
def _compute_carried(epoch: int, batch: int, first_row: int) -> tuple[Batch, tuple[float, ...]]:
    """With the state of the graph before it: as if that went on."""
    made, windows = _compute(epoch, first_row + batch, 0, 0.0)
    return replace(made, batch=batch), windows


def find_first_row(story: Story, epoch: int) -> int:
    """Where the graph begins in each source."""
    found = story.epochs[epoch]
    if found.record.channel == "carry" and found.into is not None:
        old = story.epochs.get(found.into.from_)
        return old.queries["out"].last.batch + 1 if old else 0
    return min((found.record.start or {"a": 0}).values()) or 0


def find_newest(first_row: int, at: int, rows_from: float) -> dict[str, float | None]:
    read = {name: [row for row in rows[first_row:at] if row >= rows_from] for name, rows in ROWS.items()}
    return {name: max(rows, default=None) for name, rows in read.items()}


def find_watermark(first_row: int, at: int, rows_from: float) -> float:
    """That a batch begins with: it never goes back, and a source without a row keeps it where it is."""
    watermark = 0.0
    for end in range(first_row, at + 1):
        newest = find_newest(first_row, end, rows_from).values()
        if all(each is not None for each in newest):
            watermark = max(watermark, min(each for each in newest if each is not None) - LATENESS)
    return watermark


def is_whole(story: Story, epoch: int, window: float) -> bool:
    """Whether the graph has had all rows of the window, of both sources."""
    record = story.epochs[epoch].record
    first, rows_from = (
        (0, 0.0) if record.channel == "carry" else (find_first_row(story, epoch), record.x_rows_from or 0.0)
    )
    rows = [(at, row) for rows in ROWS.values() for at, row in enumerate(rows) if find_end(row, WINDOW) == window]
    return all(at >= first and row >= rows_from for at, row in rows)


def name_epoch(epoch: EpochStory) -> tuple[object, ...]:
    """All that can matter of an epoch: its batches are known by their numbers."""
    queries = tuple(
        (name, each.last.batch, each.newest_window, each.batches_past, tuple(one.batch for one in each.candidates))
        for name, each in sorted(epoch.queries.items())
    )
    start = tuple(sorted((epoch.record.start or {}).items()))
    upto = tuple(each.upto if each else None for each in (epoch.into, epoch.out))
    flags = (epoch.started is None, epoch.drained, epoch.current, epoch.stopped is None, epoch.aborted is None)
    return (epoch.record.epoch, start, epoch.record.boundary, *upto, *flags, queries)


def put_driver(world: World, epoch: int, driver: Driver | None) -> World:
    drivers = {**dict(world.drivers), epoch: driver}
    return world._replace(drivers=tuple((at, each) for at, each in sorted(drivers.items()) if each is not None))


def make_seen(look: Look) -> Seen:
    """As an executor has it."""
    signs = {epoch: Sign(epoch, f"app {epoch}", 0.0, "ready") for epoch in look.vetted}
    return Seen(0.0, look.held, signs, committed={epoch: {"out": done - 1} for epoch, done in look.done})


def put_look(world: World, at: int, look: Look | None) -> World:
    looks = tuple(look if each == at else other for each, other in enumerate(world.looks))
    # The executors are alike: whose turn it is makes no other world.
    return world._replace(
        looks=tuple(sorted(looks, key=lambda each: (sorted(each.held), each[1:]) if each is not None else ([-1],)))
    )


@dataclass(frozen=True)
class Explored:
    """What a search has seen."""

    worlds: int
    ends: int
    stuck: tuple[World, ...]
    """From which no end is to be had any more."""
    states: frozenset[str]


def explore(model: Model, executors: int, crashes: int) -> Explored:
    """Play every order. Raises ``Broken`` with the way there."""
    first = model.begin()._replace(looks=(None,) * executors, crashes=crashes)
    came: dict[World, tuple[World | None, str]] = {first: (None, "")}
    before: dict[World, list[World]] = {}
    waiting = deque([first])
    while waiting:
        world = waiting.popleft()
        for what, after in follow(model, world, came):
            before.setdefault(after, []).append(world)
            if after not in came:
                came[after] = (world, what)
                waiting.append(after)
    ends = [world for world in came if model.is_end(world)]
    saved = reach_back(ends, before)
    states = frozenset(find_state(model.stories[world.story], {epoch for epoch, _ in world.drivers}) for world in came)
    return Explored(len(came), len(ends), tuple(world for world in came if world not in saved)[:3], states)


def follow(model: Model, world: World, came: dict[World, tuple[World | None, str]]) -> list[tuple[str, World]]:
    try:
        return [(what, after) for what, after in model.list_next(world) if after != world]
    except Broken as error:
        raise Broken("\n".join([*tell_way(came, world), str(error)])) from error


def tell_way(came: dict[World, tuple[World | None, str]], world: World) -> list[str]:
    """What happened, from the beginning to this world."""
    steps: list[str] = []
    at: World | None = world
    while at is not None:
        at, what = came[at]
        steps.append(what)
    return steps[::-1]


def reach_back(ends: list[World], before: dict[World, list[World]]) -> set[World]:
    """Worlds from which one of the ends can be reached."""
    saved, waiting = set(ends), deque(ends)
    while waiting:
        for world in before.get(waiting.popleft(), ()):
            if world not in saved:
                saved.add(world)
                waiting.append(world)
    return saved
