"""The small world with an inbox for each source, and a query for each that routes.

::

    router     looks ── adds an entry            what it looked at may be long past when it adds
    executor   holds one inbox, then the other, then adds the fence: each line may be another's
    driver     its batch n reads what entry n of both inboxes has for its graph and later ones
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from airflow_dagsched.switch.advising.advice import Advice, Command, Hold
from airflow_dagsched.switch.inbox.entries import DEAD, Held, Routed
from airflow_dagsched.switch.inbox.holding import choose_fence, make_held
from airflow_dagsched.switch.inbox.inbox_story import InboxStory
from airflow_dagsched.switch.inbox.routing import make_route
from airflow_dagsched.switch.places import INBOX_SERVICE
from airflow_dagsched.switch.records import Batch
from airflow_dagsched.switch.story import EpochStory
from airflow_dagsched.switch.windows import find_end
from tests.switch.drawn import FIRST, WINDOW, make_batch, tell
from tests.switch.inbox.test_routing import choose_epoch
from tests.switch.model import LATENESS, ROWS, Broken, Driver, Look, Model, World


class Box(NamedTuple):
    """An inbox, and who routes into it."""

    epochs: tuple[int, ...] = ()
    """Of the rows that are in it, in their order."""
    held: tuple[int, float | None] | None = None
    """Epoch and newest row of the last hold."""
    known: tuple[object, ...] | None = None
    """What of the story that the router has looked at can matter to it; None: it looks again."""
    frozen: tuple[tuple[object, ...], int] | None = None
    """What a router had looked at that nobody believes to be alive, and its batch."""


@dataclass
class InboxModel(Model):
    """The world's rules, with inboxes."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.wanted = replace(self.wanted, sources=dict.fromkeys(ROWS, ""))

    def begin(self) -> World:
        first = replace(FIRST[0], channel="inbox", x_sources=dict.fromkeys(ROWS, ""))
        boxes = (Box((1,)), Box((1,)))
        story = tell(first, FIRST[1], compute(boxes, 1, 0)[0], FIRST[3])
        return World(self.keep(story), ((1, Driver("ready")),), ((1, 1),), (None,), boxes=boxes)

    def advise(self, world: World, look: Look) -> Advice:
        """Routers are started again by nobody: one is always there."""
        return super().advise(world, look._replace(held=look.held | {INBOX_SERVICE}))

    def list_next(self, world: World) -> Iterator[tuple[str, World]]:
        """Each thing that may happen; raises ``Broken`` where a row is not with its window's owner."""
        upto = self.stories[world.story].epochs[1].upto
        for name, box in list_boxes(world).items():
            for row, epoch in zip(ROWS[name], box.epochs, strict=False):
                if upto is not None and epoch != (1 if row < upto else 2):
                    raise Broken(f"row {row} of {name} is routed to epoch {epoch}, and the fence is {upto}")
        yield from super().list_next(world)
        for name, box in zip(ROWS, world.boxes, strict=True):
            assert isinstance(box, Box)
            yield from self.step_router(world, name, box)

    def step_router(self, world: World, name: str, box: Box) -> Iterator[tuple[str, World]]:
        """It looks, or adds an entry; is killed, which it does not notice but where it has looked; or stands still."""
        batch = len(box.epochs)
        if box.frozen is not None:
            known, its = box.frozen
            left = box._replace(frozen=None)
            thawed = self.route(name, left, known) if its == batch else left
            yield f"router of {name} thaws", put_box(world, name, thawed)
        if batch >= self.length:
            return
        if box.known is None:
            yield f"router of {name} looks", put_box(world, name, box._replace(known=self.keep_known(world)))
            return
        routed = self.route(name, box._replace(known=None), box.known)
        if box.known != self.keep_known(world) or routed.epochs != box.epochs:
            yield f"router of {name} adds", put_box(world, name, routed)
        if world.crashes:
            after = box._replace(known=None, frozen=(box.known, batch))
            yield f"router of {name} stands still", put_box(world, name, after)._replace(crashes=world.crashes - 1)

    def keep_known(self, world: World) -> tuple[object, ...]:
        """The name of the first story by which a router does what it does by this one."""
        story = self.stories[world.story]
        key = (story.owner, story.successor, *(name_ends(each) for _, each in sorted(story.epochs.items())))
        self.stories.setdefault(key, story)
        return key

    def route(self, name: str, box: Box, known: tuple[object, ...]) -> Box:
        """The next row, by whoever knows that story; unchanged where it has to wait."""
        route = make_route(self.stories[known], tell_inbox(name, box))
        if route is None:
            return box
        return box._replace(epochs=(*box.epochs, choose_epoch(route, ROWS[name][len(box.epochs)])))

    def do(self, world: World, command: Command) -> World:
        return self.hold(world, command.epoch) if isinstance(command, Hold) else super().do(world, command)

    def hold(self, world: World, epoch: int) -> World:
        """One line of it."""
        inboxes = {name: tell_inbox(name, box) for name, box in list_boxes(world).items()}
        for name, inbox in inboxes.items():
            held = make_held(inbox, epoch, inbox.last + 1, 0.0)
            if held is not None:
                box = list_boxes(world)[name]._replace(held=(held.epoch, held.newest))
                return put_box(world, name, box)
        fence = choose_fence(self.stories[world.story], inboxes, 0, 0.0)
        return self.append(world, fence) if fence is not None else world

    def has_rows(self, world: World, epoch: int, batch: int) -> bool:
        least = min(len(box.epochs) for box in list_boxes(world).values())
        return batch <= self.length and least >= min(batch + 1, self.length)

    def compute(self, world: World, epoch: int, batch: int) -> tuple[Batch, tuple[float, ...]]:
        return compute(tuple(list_boxes(world).values()), epoch, batch)

    def is_whole(self, world: World, epoch: int, window: float) -> bool:
        epochs = {name: box.epochs for name, box in list_boxes(world).items()}
        return all(
            epochs[name][at : at + 1] == (epoch,)
            for name, rows in ROWS.items()
            for at, row in enumerate(rows)
            if find_end(row, WINDOW) == window
        )


def name_ends(epoch: EpochStory) -> tuple[object, ...]:
    return (epoch.record.epoch, epoch.into and epoch.into.upto, epoch.drained, epoch.aborted is not None)


def tell_inbox(name: str, box: Box) -> InboxStory:
    """Its story, but for the numbers of entries."""
    newest = max((row for row, epoch in zip(ROWS[name], box.epochs, strict=False) if epoch != DEAD), default=None)
    routed = Routed(n=1, at=0.0, batch=len(box.epochs) - 1, newest=newest, rows={}, dead={})
    held = Held(n=1, at=0.0, epoch=box.held[0], newest=box.held[1]) if box.held else None
    return InboxStory(1, routed, held)


def list_boxes(world: World) -> dict[str, Box]:
    return {name: box for name, box in zip(ROWS, world.boxes, strict=True) if isinstance(box, Box)}


def put_box(world: World, name: str, box: Box) -> World:
    return world._replace(boxes=tuple({**list_boxes(world), name: box}.values()))


def compute(boxes: tuple[Box, ...], epoch: int, batch: int) -> tuple[Batch, tuple[float, ...]]:
    """The batch of a graph: later graphs' rows move its watermark, and are not its own."""
    watermark, before = find_watermark(boxes, epoch, batch), find_watermark(boxes, epoch, batch - 1)
    ends = {
        find_end(row, WINDOW)
        for rows, box in zip(ROWS.values(), boxes, strict=True)
        for row, its in zip(rows[: batch + 1], box.epochs, strict=False)
        if its == epoch
    }
    windows = tuple(sorted(end for end in ends if (before if batch else -1.0) < end <= watermark))
    made = make_batch(
        epoch, batch, windows[0] if windows else None, windows[-1] if windows else None, rows=len(windows),
        watermark=watermark, x_begin=dict.fromkeys(ROWS, batch), x_newest=find_newest(boxes, epoch, batch),
    )  # fmt: skip
    return made, windows


def find_newest(boxes: tuple[Box, ...], epoch: int, at: int) -> dict[str, float | None]:
    read = zip(ROWS.items(), boxes, strict=True)
    return {
        name: max((row for row, its in zip(rows[: max(at, 0)], box.epochs, strict=False) if its >= epoch), default=None)
        for (name, rows), box in read
    }


def find_watermark(boxes: tuple[Box, ...], epoch: int, at: int) -> float:
    """That a batch begins with: it never goes back, and a source without a row keeps it where it is."""
    watermark = 0.0
    for end in range(at + 1):
        newest = find_newest(boxes, epoch, end).values()
        known = [each for each in newest if each is not None]
        if len(known) == len(newest):
            watermark = max(watermark, min(known) - LATENESS)
    return watermark
