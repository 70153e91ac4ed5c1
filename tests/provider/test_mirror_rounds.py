"""A launch task and its mirror through tries, clears and frozen workers, in any order: no green of an earlier round.

::

    queue ─► start ─► wipe ─► push ... ─► fail | finish       in between, at any time: clear, restart, wake, look
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_dagsched.launch.protocol.events import StepDone
from airflow_dagsched.launch.protocol.feed import FINISHED, TOLERANCE_S, End, Feed, Wait, decide_verdict
from airflow_dagsched.launch.protocol.identity import TryId
from airflow_dagsched.launch.protocol.wire import encode_plain
from airflow_dagsched.provider.mirrors.mirror import View, update_view

STEP_S = TOLERANCE_S + 1.0


@dataclass
class World:
    """One launch task, its mirror, and what Airflow keeps of both."""

    now: float = 100.0
    state: str | None = None
    clears: int = 0
    made: float = 100.0
    tries: list[Feed] = field(default_factory=list)
    stored: Any = None
    view: View = field(default_factory=View)
    ended: End | None = None
    ended_by: Feed | None = None

    def queue(self) -> None:
        if self.state in (None, "up_for_retry"):
            self.state = "queued"

    def start(self) -> None:
        if self.state == "queued":
            number = len(self.tries) + 1
            self.tries.append(Feed(f"n{number}", TryId("r", self.clears, number), began=self.now))
            self.state = "running"

    def wipe(self) -> None:
        if self.state == "running":
            self.stored = None

    def push(self) -> None:
        if self.state == "running":
            self._say(len(self.tries) - 1)

    def wake(self) -> None:
        """A try that was frozen between its last look at its standing and its push."""
        if len(self.tries) > 1:
            self._say(len(self.tries) - 2)

    def _say(self, at: int) -> None:
        self.tries[at] = self.tries[at].add([StepDone("s", "success")])
        self.stored = encode_plain(self.tries[at])

    def fail(self) -> None:
        if self.state == "running":
            self.state = "up_for_retry"

    def finish(self) -> None:
        if self.state == "running":
            self.push()
            self.state = "success"

    def clear(self) -> None:
        """Launch task and mirror."""
        self.state = "restarting" if self.state == "running" else None
        self.clears += 1
        self.made, self.ended = self.now, None

    def restarted(self) -> None:
        if self.state == "restarting":
            self.state = "up_for_retry"

    def triggerer_restarts(self) -> None:
        self.view = View()

    def look(self) -> None:
        self.view = update_view(self.view, self.state, self.stored)
        found = decide_verdict(self.view.state, self.view.feed, "s", self.made, "launch")
        if isinstance(found, End) and self.ended is None:
            self.ended, self.ended_by = found, self.view.feed


Operation = Callable[[World], None]
ALWAYS: tuple[Operation, ...] = (World.clear, World.wake, World.triggerer_restarts, World.look, World.look, World.look)
IN_STATE: dict[str | None, tuple[Operation, ...]] = {
    None: (World.queue,),
    "queued": (World.start,),
    "running": (World.wipe, World.push, World.push, World.fail, World.finish),
    "up_for_retry": (World.queue,),
    "restarting": (World.restarted,),
}


@settings(max_examples=400, deadline=None)
@given(st.lists(st.integers(0, 10_000), min_size=25, max_size=25))
def test_a_mirror_ends_well_only_by_a_try_of_its_round(draws: list[int]) -> None:
    world = World()
    for drawn in draws:
        world.now += STEP_S
        possible = (*ALWAYS, *IN_STATE.get(world.state, ()) * 3)
        possible[drawn % len(possible)](world)
        if world.ended is not None and world.ended.state == "success":
            assert world.ended_by is not None
            assert world.ended_by.began >= world.made
            assert world.ended_by.try_id.clear_number == world.clears
    world.look()
    assert world.state not in FINISHED or world.ended is not None


def test_the_world_turns_green_when_nothing_happens_to_it() -> None:
    world = World()
    for operation in (World.queue, World.start, World.wipe, World.look, World.push, World.look):
        assert world.ended is None
        operation(world)
    assert world.ended == End("success", "", StepDone("s", "success"))
    assert decide_verdict("queued", world.tries[0], "s", world.made, "launch") == Wait()
